"""BEER, Algorithm 1 of H. Zhao, B. Li, Z. Li, P. Richtárik, Y. Chi, "BEER: Fast O(1/T) rate for decentralized nonconvex
optimization with communication compression", arXiv:2201.13320 (2022)."""

from typing import Annotated, NamedTuple

from mpifed.algorithms.parts import CompressedDifferences, PlotStyle, Rate, rate_at, to_tune
from mpifed.extend import Array, GraphFederation, Local, Supports, Unsupported, Upload


class Client(NamedTuple):
    x: Array  # (c, n) model
    v: Array  # (c, n) estimate of the mean gradient
    d: Array  # (c, n) gradient at x, or its estimate
    h: Array  # (c, n) neighbours' copy of x
    g: Array  # (c, n) neighbours' copy of v
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
    v_i = ∇f_i(x_i) at first. Both messages travel together. By default γ is δ of the compressor and η = γ/(2 max r_i)
    (mpifed's choice): the paper's theorems ask for η of the order of γ times the square of W's spectral gap.
    Source: Algorithm 1.
    """

    title = "BEER"
    plot_style = PlotStyle("wine", 5, 6)
    # Gradients of the round before and neighbours' copies are state.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("those of arXiv:2201.13320 leave the constants of their step sizes open")

    eta: Annotated[Rate | None, to_tune("step size η (default: γ/(2 max r_i))")] = None

    upload = Upload(content="compressed", vectors=2)

    def init_client(self, f: Local) -> Client:
        x = f.initial()
        zero = f.zeros()
        d = self.gradient(f, x)
        return Client(x, v=d, d=d, h=zero, g=zero, mh=zero, mg=zero)

    def init_server(self, net: GraphFederation) -> Server:
        gamma = self.mixing_step(net)
        return Server(net.initial(), rate_at(self.eta or self.default_eta(net, gamma), net), gamma)

    def default_eta(self, net: GraphFederation, gamma: float) -> float:
        """Return the default η."""
        return gamma / float(2 * net.max(self.smoothness))

    def round(self, net: GraphFederation, server: Server) -> Server:
        net.local(self.descend, rate_at(self.eta or server.eta, net), server.gamma)
        net.mix(("h", "g"), self.compare, bits=self.bits(net))
        return server

    def descend(self, f: Local, client: Client, eta: float, gamma: float) -> tuple[Client, None]:
        x = client.x + gamma * client.mh - eta * client.v
        d = self.estimate(f, client.d, x)
        v = client.v + gamma * client.mg + d - client.d
        return client._replace(
            x=x, v=v, d=d, h=self.update_copy(f, x, client.h), g=self.update_copy(f, v, client.g)
        ), None

    def estimate(self, f: Local, before: Array, x: Array) -> Array:
        """Return the estimate of ∇f_i(x_i), given ``before``, that of the last model: (c, n)."""
        return self.gradient(f, x)

    def compare(self, f: Local, client: Client, h: Array, g: Array) -> tuple[Client, None]:
        return client._replace(mh=h - client.h, mg=g - client.g), None
