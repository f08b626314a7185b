"""LT-ADMM with exact gradients, Algorithm 1 of X. Ren, N. Bastianello, K. H. Johansson, T. Parisini,
"Communication-efficient stochastic distributed learning", arXiv:2501.13516 (2025)."""

from typing import Annotated, Any, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import PlotStyle, Rate, rate_at, to_tune
from mpifed.extend import Array, GraphAlgorithm, GraphFederation, Local, Requirement, Supports, Unsupported


class Client(NamedTuple):
    x: Array  # (c, n) model
    apart: Array  # (c, n) Σ_j (x_i − x_j) over the neighbours
    a: Array  # (c, n) the sum of ``apart`` over all rounds


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    gamma: float  # step size γ
    beta: float  # step size β of the corrections


class LTADMM(GraphAlgorithm, tag="lt-admm"):
    """ADMM with a constraint x_i = x_j for each edge, solved by tau gradient steps between two exchanges.

    φ = x_i;  tau times φ ← φ − γ∇f_i(φ) − β(a_i + Σ_j (x_i − x_j));  x_i = φ;  a_i ← a_i + Σ_j (x_i − x_j).  The
    paper's z_ij add up to a_i and the sum over neighbours at node i, and β is its βρ/2: ρ appears in no other place.
    With tau = 1 and equal weights W_ij = 2β, it is extra. By default γ = 1/(2 tau max r_i) and
    β = 1/(2 tau (max d_i + 1)).
    Source: the library decent_bench, for Algorithm 1 and (3b) of the paper, whose text was not at hand;
    docs/studies/graph-methods.md.
    """

    title = "LT-ADMM"
    plot_style = PlotStyle("wine", 3, 2)
    # The sum of corrections over all rounds is state of nodes.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("those of arXiv:2501.13516 could not be read, and its abstract names no conditions")

    tau: Annotated[int, Meta(ge=1, description="gradient steps τ between two exchanges")] = 5
    gamma: Annotated[Rate | None, to_tune("step size γ (default: 1/(2τ max r_i))")] = None
    beta: Annotated[Rate | None, Meta(description="step size β (default: 1/(2τ(max d_i + 1)))")] = None

    requires = (Requirement("lipschitz", unless=("gamma",)),)

    def sample_gradients(self, d: Array) -> Array:
        return self.tau * d

    def init_client(self, f: Local) -> Client:
        return Client(x=f.initial(), apart=f.zeros(), a=f.zeros())

    def init_server(self, net: GraphFederation) -> Server:
        gamma = self.gamma or 1 / float(2 * self.tau * net.max(self.smoothness))
        beta = self.beta or 1 / float(2 * self.tau * (net.max(self.degrees) + 1))
        return Server(net.initial(), rate_at(gamma, net), rate_at(beta, net))

    def round(self, net: GraphFederation, server: Server) -> Server:
        net.local(self.train, server.gamma, server.beta)
        net.add("x", self.compare)
        return server

    def train(self, f: Local, client: Client, gamma: float, beta: float) -> tuple[Client, None]:
        x = f.point(client.x, self.tau, vectors=2)
        correction = rate_at(self.beta or beta, f, k0=self.tau) * (client.a + client.apart)
        for j in range(self.tau):
            x = x - rate_at(self.gamma or gamma, f, j, self.tau) * f.grad(x) - correction
        return client._replace(x=f.array(x)), None

    def compare(self, f: Local, client: Client, total: Array) -> tuple[Client, None]:
        apart = f.neighbours * client.x - total
        return client._replace(apart=apart, a=client.a + apart), None

    def degrees(self, f: Local, client: Any) -> tuple[Any, Array]:
        """Return the number d_i of neighbours, called before round one: (c,)."""
        return client, f.neighbours[:, 0]
