"""BEER, Algorithm 1 of H. Zhao, B. Li, Z. Li, P. Richtárik, Y. Chi, "BEER: Fast O(1/T) rate for decentralized nonconvex
optimization with communication compression", arXiv:2201.13320 (2022)."""

from typing import Annotated, NamedTuple

from mpifed.algorithms.bases.algorithm import Array, Local, Positive, tuned
from mpifed.algorithms.bases.compressed_differences import CompressedDifferences
from mpifed.algorithms.bases.graph_algorithm import Network
from mpifed.core.promises import Keeps
from mpifed.federation.traits import Look, Refused, Upload


class Client(NamedTuple):
    x: Array  # (c, n) model
    v: Array  # (c, n) estimate of the mean gradient
    d: Array  # (c, n) gradient at x, or what stands for it
    h: Array  # (c, n) what neighbours know of x
    g: Array  # (c, n) what neighbours know of v
    mh: Array  # (c, n) Σ_j W_ij (h_j − h_i)
    mg: Array  # (c, n) Σ_j W_ij (g_j − g_i)


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    eta: float  # step size η
    gamma: float  # step size γ of mixing


class BEER(CompressedDifferences, tag="beer"):
    """Gradient tracking with compressed messages of models and of estimates of the mean gradient; it is exact.

    x_i⁺ = x_i + γ Σ_j W_ij (h_j − h_i) − ηv_i;  h_i⁺ = h_i + C(x_i⁺ − h_i);
    v_i⁺ = v_i + γ Σ_j W_ij (g_j − g_i) + ∇f_i(x_i⁺) − ∇f_i(x_i);  g_i⁺ = g_i + C(v_i⁺ − g_i),  h_i = g_i = 0 and
    v_i = ∇f_i(x_i) at first. Both messages travel together. By default γ is δ of the compressor and η = γ/(2 max r_i),
    which is ours: the paper's theorems ask for η of the order of γ times the square of W's spectral gap.
    Source: Algorithm 1.
    """

    title = "BEER"
    look = Look("wine", 5, 6)
    # Gradients of the round before and what neighbours know are state.
    keeps = Keeps.REPEATED | Keeps.DEVICES
    theorem = Refused("those of arXiv:2201.13320 leave the constants of their step sizes open")

    eta: Annotated[Positive | None, tuned("step size η (default: γ/(2 max r_i))")] = None

    upload = Upload(kind="compressed", vectors=2)

    def join(self, f: Local) -> Client:
        x = f.initial()
        zero = f.zeros()
        d = self.gradient(f, x)
        return Client(x, v=d, d=d, h=zero, g=zero, mh=zero, mg=zero)

    def start(self, net: Network) -> Server:
        gamma = self.mixing(net)
        return Server(net.initial(), self.eta or self.longest(net, gamma), gamma)

    def longest(self, net: Network, gamma: float) -> float:
        """η by default."""
        return gamma / float(2 * net.max(self.smoothness))

    def round(self, net: Network, server: Server) -> Server:
        net.local(self.descend, server.eta, server.gamma)
        net.mix(("h", "g"), self.compare, bits=self.bits(net))
        return server

    def descend(self, f: Local, client: Client, eta: float, gamma: float) -> tuple[Client, None]:
        x = client.x + gamma * client.mh - eta * client.v
        d = self.estimate(f, client.d, x)
        v = client.v + gamma * client.mg + d - client.d
        return client._replace(x=x, v=v, d=d, h=self.sent(f, x, client.h), g=self.sent(f, v, client.g)), None

    def estimate(self, f: Local, before: Array, x: Array) -> Array:
        """What stands for ∇f_i(x_i), where it was ``before``: (c, n)."""
        return self.gradient(f, x)

    def compare(self, f: Local, client: Client, h: Array, g: Array) -> tuple[Client, None]:
        return client._replace(mh=h - client.h, mg=g - client.g), None
