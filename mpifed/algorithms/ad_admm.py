"""AD-ADMM, the method of T. H. Chang, M. Hong, W. C. Liao, X. Wang, "Asynchronous distributed ADMM for large-scale
optimization, Part I: Algorithm and convergence analysis", arXiv:1509.02597 (2016)."""

from typing import Annotated, NamedTuple

from msgspec import Meta

from mpifed.algorithms.parts import NewtonSolver, PlotStyle, PositiveFloat, RegularisedLocal, Solver, Theorem, to_tune
from mpifed.extend import Algorithm, Array, Federation, Local, Requirement, Supports, Upload


class Client(NamedTuple):
    lam: Array  # (c, n) dual variables λ_i
    w: Array  # (c, n) local models x_i
    z: Array  # (c, n) last upload x_i + λ_i/ρ


class Server(NamedTuple):
    x: Array  # (n,) model x₀
    rho: float  # penalty ρ
    L: float  # L = max r_i


class ADADMM(Algorithm, tag="ad-admm"):
    """Asynchronous consensus ADMM: duals stay with the clients, and the server averages the last uploads of all.

    x_i = argmin f_i(x) + ⟨λ_i, x⟩ + (ρ/2)‖x − x₀‖²;  λ_i ← λ_i + ρ(x_i − x₀);  z_i = x_i + λ_i/ρ;
    x₀⁺ = (ρ Σ z_i + γ x₀)/(mρ + γ).  f_i is not divided by m here. Where no upload is more than τ − 1 rounds
    old, a large ρ and a γ that grows with τ² suffice: see ``certify``.
    ``objective.l1`` and ``l2`` are the paper's regulariser h: x₀⁺ = prox_{th} of that, t = m/(mρ + γ), for F = f + h.
    Source: the paper's method from memory: its text was not at hand. The proof in mpifed/theory/ad_admm.py is for this
    form.
    """

    title = "AD-ADMM"
    plot_style = PlotStyle("vermilion", 4, 3)
    # The server adds up last uploads, which clients keep in z, so that late ones come out of a checkpoint too.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Theorem("mpifed.theory.ad_admm:certificate", delayed=True)

    rho: Annotated[PositiveFloat | None, to_tune("penalty ρ (default: max r_i/4)")] = None
    gamma: Annotated[float, Meta(ge=0, description="weight γ of the server's proximal term")] = 0.0
    solver: Annotated[Solver, Meta(description="how clients minimise over x")] = NewtonSolver()

    requires = (Requirement("lipschitz"),)
    upload = Upload(last_upload="z")
    asynchronous = True

    def sample_gradients(self, d: Array) -> Array | None:
        return self.solver.sample_gradients(d)

    def init_client(self, f: Local) -> Client:
        return Client(lam=f.zeros(), w=f.initial(), z=f.initial())

    def init_server(self, fed: Federation) -> Server:
        L = float(fed.max(self.smoothness))
        return Server(x=fed.initial(), rho=self.penalty(L), L=L)

    def round(self, fed: Federation, server: Server) -> Server:
        fed.send(self.update, server.x, server.rho, server.L, to=fed.select(server.x))
        z = fed.mean(of=fed.arrivals(), last="z")
        weight = self.gamma / (fed.m * server.rho + self.gamma)
        return server._replace(x=(1 - weight) * z + weight * server.x)

    def proximal_step(self, server: Server, m: int) -> float:
        """Return t = m/(mρ + γ): x₀⁺ = argmin m h(x₀) + Σ (ρ/2)‖z_i − x₀‖² + (γ/2)‖x₀ − x₀ᵏ‖², f_i undivided."""
        return m / (m * server.rho + self.gamma)

    def update(self, f: Local, client: Client, x: Array, rho: float, L: float) -> tuple[Client, Array]:
        """Solve the worker's problem at the received model x₀, step λ_i, and upload z_i."""
        w = self.solver.minimise(RegularisedLocal(f, rho), rho * x - client.lam, client.w, rho, rho + L, 1.0)
        lam = client.lam + rho * (w - x)
        z = w + lam / rho
        return Client(lam, w, z), z

    def penalty(self, L: float) -> float:
        """Return ρ for L = max r_i."""
        return L / 4 if self.rho is None else self.rho
