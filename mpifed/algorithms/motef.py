"""MoTEF, Algorithm 1 of R. Islamov, Y. Gao, S. U. Stich, "Towards faster decentralized stochastic
optimization with communication compression", arXiv:2405.20114 (2024)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Array, Local, Positive, tuned
from mpifed.algorithms.bases.compressed_differences import CompressedDifferences
from mpifed.algorithms.bases.graph_method import Network
from mpifed.core.promises import Keeps
from mpifed.federation.traits import Look, Refused, Upload


class Client(NamedTuple):
    x: Array  # (c, n) model
    v: Array  # (c, n) estimate of the mean gradient
    u: Array  # (c, n) momentum, a running mean of gradients
    h: Array  # (c, n) what neighbours know of x
    g: Array  # (c, n) what neighbours know of v
    mh: Array  # (c, n) Σ_j W_ij (h_j − h_i)
    mg: Array  # (c, n) Σ_j W_ij (g_j − g_i)


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    eta: float  # step size η
    gamma: float  # step size γ of mixing


class MoTEF(CompressedDifferences, tag="motef"):
    """BEER with a running mean of stochastic gradients in the place of gradients, so that small batches are enough.

    x_i⁺ = x_i + γ Σ_j W_ij (h_j − h_i) − ηv_i;  h_i⁺ = h_i + C(x_i⁺ − h_i);
    u_i⁺ = (1 − λ)u_i + λ∇f_i(x_i⁺);  v_i⁺ = v_i + γ Σ_j W_ij (g_j − g_i) + u_i⁺ − u_i;  g_i⁺ = g_i + C(v_i⁺ − g_i),
    h_i = g_i = 0 and u_i = v_i = ∇f_i(x_i) at first. Both messages travel together; with λ = 1 it is beer. By default γ
    is δ of the compressor and η = λγ/(2 max r_i), which is ours.
    Source: Algorithm 1. From u_i = 0 and v_i = ∇f_i(x_i) it ends elsewhere, for mean v − mean u never changes.
    """

    title = "MoTEF"
    look = Look("brown", 7, 5)
    # Momentum and what neighbours know are state.
    keeps = Keeps.REPEATED | Keeps.DEVICES
    theorem = Refused("those of arXiv:2405.20114 could not be read")

    eta: Annotated[Positive | None, tuned("step size η (default: λγ/(2 max r_i))")] = None
    lam: Annotated[float, Meta(gt=0, le=1, description="weight λ of the newest gradient in the momentum")] = 0.5

    upload = Upload(kind="compressed", vectors=2)

    def join(self, f: Local) -> Client:
        x = f.initial()
        zero = f.zeros()
        u = self.gradient(f, x)
        return Client(x, v=u, u=u, h=zero, g=zero, mh=zero, mg=zero)

    def start(self, net: Network) -> Server:
        gamma = self.mixing(net)
        return Server(net.initial(), self.eta or self.lam * gamma / float(2 * net.max(self.smoothness)), gamma)

    def round(self, net: Network, server: Server) -> Server:
        net.local(self.descend, server.eta, server.gamma)
        net.mix(("h", "g"), self.compare, bits=self.bits(net))
        return server

    def descend(self, f: Local, client: Client, eta: float, gamma: float) -> tuple[Client, None]:
        x = client.x + gamma * client.mh - eta * client.v
        u = (1 - self.lam) * client.u + self.lam * self.gradient(f, x)
        v = client.v + gamma * client.mg + u - client.u
        return client._replace(x=x, v=v, u=u, h=self.sent(f, x, client.h), g=self.sent(f, v, client.g)), None

    def compare(self, f: Local, client: Client, h: Array, g: Array) -> tuple[Client, None]:
        return client._replace(mh=h - client.h, mg=g - client.g), None
