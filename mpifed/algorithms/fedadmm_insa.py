"""FedADMM-InSa, the method of Y. Song, Z. Wang, E. Zuazua, "FedADMM-InSa: An inexact and self-adaptive ADMM for
federated learning", arXiv:2402.13989 (2024)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import AugmentedLagrangian, PlotStyle, RecordValues, Server, Sum, to_tune
from mpifed.extend import Algorithm, Array, Federation, Local, Requirement, Supports, Unsupported, Upload


class Client(NamedTuple):
    pi: Array  # (c, n) dual variables
    w: Array  # (c, n) last w_i
    beta: Array  # (c, 1)
    z: Array  # (c, n + 1) last upload: β_i w_i + π_i, β_i
    steps: Array  # (c,) inner steps so far


class FedADMMInSa(Algorithm, tag="fedadmm-insa"):
    """ADMM whose clients decide when their local problem is solved well enough, and adapt its penalty.

    w_i: ‖e_i(w_i)‖ ≤ θ_i ‖e_i(w)‖, e_i(v) = ∇f_i(v) + π_i + β_i(v − w), θ_i = 0.999/(1 + √(β_i/2c_i));
    π_i ← π_i + β_i(w_i − w);  p = β_i‖w_i − w_i⁻‖, d = ‖w_i − w‖: β_i ← tau β_i if mu p < d, β_i/tau if mu d < p;
    w = (Σ z_i/Σ β_i + memory w)/(1 + memory), of all last uploads z_i = β_i w_i + π_i. Steps are (3.12) of fedadmm.
    Source: the authors' program for the server, two public copies of it for the clients; the paper was not at hand.
    """

    title = "FedADMM-InSa"
    plot_style = PlotStyle("vermilion", 3, 4)
    # Penalties adapt to residuals that a client computes from its own state, β and w, alone.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of arXiv:2402.13989, for strongly convex f_i, could not be read")

    r0: Annotated[float, to_tune("first β_i = r0·r_i", gt=0)] = 0.2
    mu: Annotated[float, Meta(ge=1, description="how far p and d may be apart; huge: β_i stays")] = 5.0
    tau: Annotated[float, Meta(gt=1, description="factor of β_i")] = 2.0
    memory: Annotated[float, Meta(ge=0, description="weight of the old model")] = 0.01
    c: Annotated[float, Meta(gt=0, description="c_i of θ_i: the strong convexity of f_i, or a guess")] = 0.01
    inner_max: Annotated[int, Meta(ge=1, description="most inner steps a round")] = 10
    requires = (Requirement("lipschitz"),)
    upload = Upload(last_upload="z")

    def sample_gradients(self, d: Array) -> Array:
        return self.inner_max * d  # at most

    def message_size(self, n: int) -> tuple[float, float]:
        return n, n + 1

    def init_client(self, f: Local) -> Client:
        w = f.initial()
        beta = f.xp.astype(self.r0 * f.lipschitz(), w.dtype)[:, None]
        return Client(f.zeros(), w, beta, z=f.xp.concat([beta * w, beta], axis=1), steps=f.xp.zeros(len(f)))

    def init_server(self, fed: Federation) -> Server:
        return Server(fed.initial())

    def round(self, fed: Federation, server: Server) -> Server:
        z = fed.sum(self.update, server.x, to=fed.select(server.x), last="z")
        return Server((z[:-1] / z[-1] + self.memory * server.x) / (1 + self.memory))

    def update(self, f: Local, client: Client, w: Array) -> tuple[Client, Array]:
        """Descend until the test holds, step the dual variables, and adapt the penalty for the next round."""
        xp = f.xp
        curvature = xp.astype(f.lipschitz()[:, None], w.dtype)
        beta, r = (xp.repeat(a, f.n, axis=1) / f.m for a in (client.beta, curvature))
        pi, g = client.pi / f.m, f.grad(w) / f.m
        eps = (0.999 / (1 + xp.sqrt(client.beta[:, 0] / (2 * self.c)))) ** 2 * xp.vecdot(g + pi, g + pi)
        wi, taken = AugmentedLagrangian(f, w, r, beta, g, r * w + beta * w).descend(pi, eps, self.inner_max)
        pi = client.pi + client.beta * (wi - w)
        z = xp.concat([client.beta * wi + pi, client.beta], axis=1)
        p, d = (xp.linalg.vector_norm(v, axis=1, keepdims=True) for v in (client.beta * (wi - client.w), wi - w))
        one = xp.ones_like(p)
        factor = xp.where(p < d / self.mu, self.tau * one, xp.where(d < p / self.mu, 1 / self.tau * one, one))
        return Client(pi, wi, client.beta * factor, z, client.steps + taken), z

    def record(self, f: Local, client: Client, x: Array) -> RecordValues:
        return {"inner_steps": Sum(client.steps)}
