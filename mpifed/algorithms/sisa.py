"""SISA and PISA, the method of S. Zhou, O. Wang, Z. Luo, Y. Zhu, G. Y. Li, "Preconditioned inexact stochastic ADMM for
deep models", arXiv:2502.10784 (2025)."""

from typing import Annotated, Literal, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import BatchSize, PlotStyle, PositiveFloat, count_gradients, minibatch, to_tune
from mpifed.extend import Algorithm, Array, Federation, Local, Requirement, Supports, Unsupported, Upload


class Client(NamedTuple):
    pi: Array  # (c, n) dual variables
    m: Array  # (c, n) second moments
    s: Array  # (c, 1) first penalty
    z: Array  # (c, n) last upload, s_i (w_i + π_i/σ_i)


class Server(NamedTuple):
    x: Array  # (n,) model w
    total: float  # Σ s_i
    growth: float  # 1/γ^k after k rounds


class SISA(Algorithm, tag="sisa"):
    """Inexact ADMM with one mini-batch gradient a round and a diagonal preconditioner.

    w = Σ s_i(w_i + π_i/σ_i)/Σ s_i over all last uploads;  σ_i = s_i/γ^k;  u_i = π_i + ∇f_B(w) on a mini-batch B;
    w_i = w − (σ_i I + ρQ_i)⁻¹u_i;  π_i ← π_i + σ_i(w_i − w).  SISA: Q_i = diag(√m_i), m_i ← βm_i + (1 − β)u_i², from 0.
    Other Q_i: PISA. With γ < 1 steps shrink geometrically: the model comes to rest before it is a minimiser.
    Source: the authors' program, where σ_i follows a learning rate; γ is that of others. The paper was not at hand.
    """

    title = "SISA"
    plot_style = PlotStyle("vermilion", 2, 2)
    # Second moments and penalties of clients are state, and so is γ^k.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported(
        "that of arXiv:2502.10784 could not be read; its abstract speaks of a bounded region, which no run shows"
    )

    sigma: Annotated[PositiveFloat | None, to_tune("first penalty s_i (default: r_i)")] = None
    gamma: Annotated[float, Meta(gt=0, le=1, description="γ: the penalties grow by 1/γ a round")] = 1.0
    preconditioner: Annotated[Literal["second-moment", "smoothness"], Meta(description="Q_i: diag(√m_i) or r_i I")] = (
        "second-moment"
    )
    rho: Annotated[float, Meta(ge=0, description="weight ρ of Q_i; 0: no preconditioner")] = 1.0
    beta: Annotated[float, Meta(ge=0, lt=1, description="memory β of the second moments")] = 0.9
    batch_size: BatchSize = 0
    requires = (
        Requirement("lipschitz", unless=("sigma",)),
        Requirement("lipschitz", when={"preconditioner": "smoothness"}),
    )
    upload = Upload(last_upload="z")

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, 1, 0, self.batch_size)

    def init_client(self, f: Local) -> Client:
        s = f.zeros(1) + 1
        s *= f.lipschitz()[:, None] if self.sigma is None else self.sigma
        return Client(pi=f.zeros(), m=f.zeros(), s=s, z=s * f.initial())

    def init_server(self, fed: Federation) -> Server:
        return Server(fed.initial(), total=float(fed.sum(self.penalty)), growth=1.0)

    def round(self, fed: Federation, server: Server) -> Server:
        growth = min(server.growth / self.gamma, 1e30)  # far beyond the growth at which steps vanish in rounding
        z = fed.sum(self.update, server.x, growth, to=fed.select(server.x), last="z")
        return server._replace(x=z / server.total, growth=growth)

    def penalty(self, f: Local, client: Client) -> tuple[Client, Array]:
        return client, client.s[:, 0]

    def update(self, f: Local, client: Client, w: Array, growth: float) -> tuple[Client, Array]:
        """Renew Q_i, take one step of w_i and π_i from w, and upload z_i."""
        pi, m, s, _ = client
        batch = minibatch(f, self.batch_size)
        u, sigma = pi + batch.grad(w), s * growth
        m = self.beta * m + (1 - self.beta) * u * u
        q = f.xp.sqrt(m) if self.preconditioner == "second-moment" else f.xp.astype(f.lipschitz()[:, None], m.dtype)
        pi = pi - u / (1 + self.rho * q / sigma)  # π_i + σ_i(w_i − w)
        z = s * (w - u / (sigma + self.rho * q) + pi / sigma)
        return Client(pi, m, s, z), z
