"""K-GT, Algorithm 1 of Y. Liu, T. Lin, A. Koloskova, S. U. Stich, "Decentralized gradient tracking with local steps",
arXiv:2301.01313 (2023)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import PlotStyle, Rate, rate_at, to_tune
from mpifed.extend import Array, GraphAlgorithm, GraphFederation, Local, Requirement, Supports, Unsupported, Upload


class Client(NamedTuple):
    x: Array  # (c, n) model
    c: Array  # (c, n) correction
    z: Array  # (c, n) mean of the corrected gradients of the local steps


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    gamma: float  # step size γ that all nodes have agreed on


class KGT(GraphAlgorithm, tag="k-gt"):
    """Gradient tracking with k0 corrected gradient steps between two exchanges.

    w = x_i;  k0 times w ← w − γ(∇f_i(w) + c_i);  z_i = (x_i − w)/(k0 γ);  c_i ← c_i − z_i + Σ_j W_ij z_j;
    x_i ← Σ_j W_ij (x_j − k0 γ η z_j), c_i = 0 at first. γ is the paper's η_c and η its η_s; the corrections add up to 0
    over the nodes, also where W changes. A schedule gives all steps of a round one γ. Two vectors travel along each
    edge. By default γ = 1/(4 k0 max r_i) (mpifed's choice).
    Source: the library decent_bench, for Algorithm 1 of the paper, whose abstract alone was at hand.
    """

    title = "K-GT"
    plot_style = PlotStyle("vermilion", 5, 5)
    # Corrections are a sum over rounds, which c has.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("those of arXiv:2301.01313 could not be read, and its abstract names no conditions")

    k0: Annotated[int, Meta(ge=1, description="gradient steps K between two exchanges")] = 5
    gamma: Annotated[Rate | None, to_tune("step size γ of a local step (default: 1/(4 k0 max r_i))")] = None
    eta: Annotated[Rate, Meta(description="η: how far a node goes along the sum of its local steps")] = 1.0

    upload = Upload(vectors=2)
    requires = (Requirement("lipschitz", unless=("gamma",)),)

    def sample_gradients(self, d: Array) -> Array:
        return self.k0 * d

    def init_client(self, f: Local) -> Client:
        return Client(x=f.initial(), c=f.zeros(), z=f.zeros())

    def init_server(self, net: GraphFederation) -> Server:
        return Server(net.initial(), rate_at(self.gamma or 1 / float(4 * self.k0 * net.max(self.smoothness)), net))

    def round(self, net: GraphFederation, server: Server) -> Server:
        gamma = rate_at(self.gamma or server.gamma, net, k0=self.k0)
        net.local(self.train, gamma)
        net.mix(("x", "z"), self.track, gamma)
        return server

    def train(self, f: Local, client: Client, gamma: float) -> tuple[Client, None]:
        w = f.point(client.x, self.k0, vectors=2)
        for _ in range(self.k0):
            w = w - gamma * (f.grad(w) + client.c)
        return client._replace(z=(client.x - f.array(w)) / (self.k0 * gamma or 1.0)), None

    def track(self, f: Local, client: Client, x: Array, z: Array, gamma: float) -> tuple[Client, None]:
        return Client(x=x - self.k0 * gamma * rate_at(self.eta, f) * z, c=client.c - client.z + z, z=client.z), None
