"""Local Exact-Diffusion, Algorithm 1 of S. A. Alghunaim, "Local Exact-Diffusion for decentralized optimization and
learning", arXiv:2302.00620 (2023)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import PlotStyle, Rate, rate_at, to_tune
from mpifed.extend import Array, GraphAlgorithm, GraphFederation, Local, Requirement, Supports, Unsupported


class Client(NamedTuple):
    x: Array  # (c, n) model
    y: Array  # (c, n) correction


class Server(NamedTuple):
    x: Array  # (n,) mean of the nodes' models, for the record
    alpha: float  # step size α


class LED(GraphAlgorithm, tag="led"):
    """Exact diffusion with tau corrected gradient steps between two exchanges.

    φ = x_i;  tau times φ ← φ − α∇f_i(φ) − βy_i;  x_i = Σ_j W_ij φ_j;  y_i ← y_i + φ_i − x_i, y_i = 0 at first. The
    corrections add up to 0 over the nodes. By default α = 1/(2 tau max r_i) and β = 1/(2 tau) (mpifed's choice). W must
    be the same in all rounds.
    Source: the library decent_bench, for Algorithm 1 of the paper, whose abstract alone was at hand.
    """

    title = "LED"
    plot_style = PlotStyle("blue", 5, 4)
    # Corrections are a sum over rounds, which y has; W is the same in all.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("those of arXiv:2302.00620 could not be read, and its abstract names no conditions")

    tau: Annotated[int, Meta(ge=1, description="gradient steps τ between two exchanges")] = 5
    alpha: Annotated[Rate | None, to_tune("step size α (default: 1/(2τ max r_i))")] = None
    beta: Annotated[Rate | None, Meta(description="step size β of the correction (default: 1/(2τ))")] = None

    requires = (Requirement("lipschitz", unless=("alpha",)),)
    fixed_weights = "its correction takes the same weights in all rounds"

    def sample_gradients(self, d: Array) -> Array:
        return self.tau * d

    def init_client(self, f: Local) -> Client:
        return Client(x=f.initial(), y=f.zeros())

    def init_server(self, net: GraphFederation) -> Server:
        return Server(net.initial(), rate_at(self.alpha or 1 / float(2 * self.tau * net.max(self.smoothness)), net))

    def round(self, net: GraphFederation, server: Server) -> Server:
        net.local(self.train, server.alpha)
        net.mix("x", self.correct)
        return server

    def train(self, f: Local, client: Client, alpha: float) -> tuple[Client, None]:
        correction = rate_at(self.beta or 1 / (2 * self.tau), f, k0=self.tau) * client.y
        x = f.point(client.x, self.tau, vectors=2)
        for j in range(self.tau):
            x = x - rate_at(self.alpha or alpha, f, j, self.tau) * f.grad(x) - correction
        return client._replace(x=f.array(x)), None

    def correct(self, f: Local, client: Client, mixed: Array) -> tuple[Client, None]:
        return Client(x=mixed, y=client.y + client.x - mixed), None
