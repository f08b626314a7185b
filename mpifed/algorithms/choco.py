"""CHOCO-SGD, Algorithm 2 of A. Koloskova, S. U. Stich, M. Jaggi, "Decentralized stochastic optimization and gossip
algorithms with compressed communication", arXiv:1902.00340 (2019)."""

from typing import Annotated, NamedTuple

from mpifed.algorithms.parts import CompressedDifferences, PlotStyle, Rate, rate_at, to_tune
from mpifed.extend import Array, GraphFederation, Local, Supports, Unsupported, Upload


class Client(NamedTuple):
    x: Array  # (c, n) model
    h: Array  # (c, n) neighbours' copy of x


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    eta: float  # step size η
    gamma: float  # step size γ of mixing


class Choco(CompressedDifferences, tag="choco"):
    """Gradient steps, then a step towards the mean of the copies that nodes keep by compressed messages.

    x_i ← x_i − η∇f_i(x_i);  h_i ← h_i + C(x_i − h_i);  x_i ← x_i + γ Σ_j W_ij (h_j − h_i), h_i = 0 at first. Nodes end
    within O(η) of each other and of the minimiser, as those of dgd; with C(x) = x and γ = 1 it is dgd's order
    "adapt-combine". By default γ is δ of the compressor and η = 1/(2 max r_i) (mpifed's choice): γ of Theorem 2 is
    smaller by the square of W's spectral gap.
    Source: Algorithm 2; that nodes keep h_j of each neighbour, in place of sums of them, changes no number.
    """

    title = "CHOCO-SGD"
    plot_style = PlotStyle("wine", 4, 5)
    # A copy that neighbours keep is state of the node that sent it.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("those of arXiv:1902.00340 are about steps that fall and a weighted mean of all models")

    eta: Annotated[Rate | None, to_tune("step size η (default: 1/(2 max r_i))")] = None

    upload = Upload(content="compressed")

    def init_client(self, f: Local) -> Client:
        return Client(x=f.initial(), h=f.zeros())

    def init_server(self, net: GraphFederation) -> Server:
        eta = self.eta or 1 / float(2 * net.max(self.smoothness))
        return Server(net.initial(), rate_at(eta, net), self.mixing_step(net))

    def round(self, net: GraphFederation, server: Server) -> Server:
        net.local(self.descend, rate_at(self.eta or server.eta, net))
        net.mix("h", self.gossip, server.gamma, bits=self.bits(net))
        return server

    def descend(self, f: Local, client: Client, eta: float) -> tuple[Client, None]:
        x = client.x - eta * self.gradient(f, client.x)
        return Client(x, self.update_copy(f, x, client.h)), None

    def gossip(self, f: Local, client: Client, mixed: Array, gamma: float) -> tuple[Client, None]:
        return client._replace(x=client.x + gamma * (mixed - client.h)), None
