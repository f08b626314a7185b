"""FedADMM, Algorithm 1 of S. Zhou, G. Y. Li, "Federated learning via inexact ADMM", arXiv:2204.10607 (2022)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import (
    AugmentedLagrangian,
    InexactADMM,
    LocalIterations,
    PlotStyle,
    RecordValues,
    Sum,
    Theorem,
    namespace,
    to_tune,
)
from mpifed.extend import Array, Federation, Local, Requirement, Supports, Upload


class Client(NamedTuple):
    pi: Array  # (c, n) dual variables
    z: Array  # (c, n) last upload σ_i w_i + π_i
    eps: Array  # (c,) accuracy ε_i
    steps: Array  # (c,) inner steps so far


class Server(NamedTuple):
    x: Array  # (n,) model w
    sigma: float  # σ = Σ σ_i


class FedADMM(InexactADMM, tag="fedadmm"):
    """Selected clients minimise augmented Lagrangians inexactly, k0 times a round; the server adds all last uploads.

    w = (1/σ) Σ z_i;  ε_i ← nu ε_i;  w_i: ‖α_i∇f_i(w_i) + π_i + σ_i(w_i − w)‖² ≤ ε_i;  π_i ← π_i + σ_i(w_i − w);
    z_i = σ_i w_i + π_i;  α_i = 1/m, σ_i = r0 r_i/m.  Source: (3.3)–(3.8), (3.12); (3.5) at the new point (errata).
    With ``objective.l1`` or ``l2``: w = prox_{h/σ}((1/σ) Σ z_i). That is not in the paper, but the step of consensus
    ADMM with a regulariser, section 7.1.1 of Boyd et al. (2011), doi:10.1561/2200000016.
    """

    title = "FedADMM"
    plot_style = PlotStyle("vermilion", 1)
    # Accuracies and inner steps of clients are arrays of their state, not counters of the process.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Theorem("mpifed.theory.fedadmm:certificate")

    k0: LocalIterations = 10
    r0: Annotated[float, to_tune("σ_i = r0·r_i/m", gt=0)] = 0.2
    nu: Annotated[float, Meta(gt=0, lt=1, description="ν, the shrinking of ε_i")] = 0.95
    eps0: Annotated[Annotated[float, Meta(ge=0)] | None, Meta(description="first ε_i (default: k0²)")] = None
    inner_max: Annotated[int, Meta(ge=1, description="most inner steps an iteration")] = 3
    requires = (Requirement("lipschitz"),)
    upload = Upload(last_upload="z")
    asynchronous = True

    def sample_gradients(self, d: Array) -> Array:
        return (1 + self.k0 * (self.inner_max - 1)) * d  # at most: clients that reach ε_i stop early

    def init_client(self, f: Local) -> Client:
        eps = f.xp.full(len(f), float(self.k0**2 if self.eps0 is None else self.eps0))
        pi = self.first_duals(f)
        return Client(pi, z=self.sigma(f)[:, None] * f.initial() + pi, eps=eps, steps=f.xp.zeros(len(f)))

    def init_server(self, fed: Federation) -> Server:
        sigma = float(fed.sum(self.penalty))
        return Server(self.first_model(fed, sigma), sigma)  # (3.3) at k = 0

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.update, server.x, to=fed.select(server.x))
        return server._replace(x=fed.sum(of=fed.arrivals(), last="z") / server.sigma)  # (3.3)

    def proximal_step(self, server: Server, m: int) -> float:
        """Return 1/σ: with h, (3.3) is w = argmin h(w) + Σ (σ_i/2)‖z_i/σ_i − w‖², as in ADMM with a regulariser."""
        return 1 / server.sigma

    def update(self, f: Local, client: Client, w: Array) -> tuple[Client, Array]:
        """Apply (3.4)–(3.7) k0 times; the first gradient of each iteration is the one at w."""
        xp = f.xp
        w = f.point(w, 1 + self.k0 * (self.inner_max - 1), vectors=2)
        pair = (xp.astype(a[:, None], w.dtype) for a in (f.lipschitz() / f.m, self.sigma(f)))
        r, sigma = (xp.repeat(a, f.n, axis=1) if namespace(w) is xp else a for a in pair)
        lagrangian = AugmentedLagrangian(f, w, r, sigma, f.grad(w) / f.m, r * w + sigma * w)
        pi = client.pi
        eps = client.eps
        steps = client.steps
        for _ in range(self.k0):
            eps = self.nu * eps  # (3.4)
            wi, taken = lagrangian.descend(pi, eps, self.inner_max)  # (3.5)
            steps = steps + taken
            pi = pi + sigma * (wi - w)  # (3.6)
        z = f.array(sigma * wi + pi)  # (3.7)
        return Client(f.array(pi), z, eps, steps), z

    def record(self, f: Local, client: Client, x: Array) -> RecordValues:
        return {"inner_steps": Sum(client.steps)} | super().record(f, client, x)

    def local_variables(self, f: Local, client: Client) -> tuple[Array, Array]:
        sigma = self.sigma(f)
        return (client.z - client.pi) / sigma[:, None], sigma  # (3.7)

    def sigma(self, f: Local) -> Array:
        return self.r0 * f.lipschitz() / f.m  # σ_i: (c,)
