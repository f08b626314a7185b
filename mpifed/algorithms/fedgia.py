"""FedGiA, Algorithm 1 of S. Zhou, G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning",
arXiv:2205.01438 (2022)."""

from typing import NamedTuple

from mpifed.algorithms.parts import (
    METRIC_REQUIRES,
    AdaptiveChoice,
    AdaptiveServer,
    InexactADMM,
    LocalIterations,
    MetricChoice,
    PenaltyFactor,
    PlotStyle,
    Theorem,
    default_penalty_factor,
    invert_metric,
    row_norms,
)
from mpifed.extend import Array, Federation, Local, Participation, Supports


class Client(NamedTuple):
    pi: Array  # (c, n) dual variables
    w: Array  # (c, n) local models x_i where the Lagrangian is recorded, else (c, 0)


class Server(NamedTuple):
    x: Array  # (n,) model
    sigma: float  # penalty

    def next_state(self, mean: Array) -> "Server":
        return Server(mean, self.sigma)


class OneGradientADMM(InexactADMM):
    """Options and start of FedGiA and of its asynchronous form."""

    k0: LocalIterations = 10
    H: MetricChoice = "diagonal"
    t: PenaltyFactor = None
    adaptive: AdaptiveChoice = False

    requires = METRIC_REQUIRES
    common = True

    def message_size(self, n: int) -> tuple[float, float]:
        return n + self.adaptive, n + self.adaptive

    def init_client(self, f: Local) -> Client:
        return Client(self.first_duals(f), f.initial() if self.lagrangian else f.zeros(0))

    def init_server(self, fed: Federation) -> Server | AdaptiveServer:
        r = float(fed.max(self.smoothness))
        sigma = (self.t or default_penalty_factor(fed)) * r / fed.m  # Table III
        x = self.first_model(fed, fed.m * sigma)  # (11) at k = 0
        return AdaptiveServer.initial(x, sigma, r / fed.m) if self.adaptive else Server(x, sigma)

    @property
    def records_penalty(self) -> bool:
        return self.adaptive


class FedGiA(OneGradientADMM, tag="fedgia"):
    """Selected clients take k0 steps of inexact ADMM with one gradient, the others one gradient step.

    x⁺ = (1/m) Σ z_i;  selected: x_i ← x − (H_i/m + σI)⁻¹(ḡ_i + π_i), π_i ← π_i + σ(x_i − x), z_i = x_i + π_i/σ;
    others: x_i = x, π_i = −ḡ_i;  ḡ_i = ∇f_i(x)/m,  σ = t·max r_i/m.  Source: (11)–(17), Tables II and III, but for
    ``adaptive``: σ then travels with x.
    """

    title = "FedGiA"
    plot_style = PlotStyle("blue", 0)
    # Penalty and duals are state; σ comes from an exact maximum of r_i in round 0: no privacy.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Theorem("mpifed.theory.fedgia:certificate")

    participation = Participation.SELECTED_AND_ALL

    def round(self, fed: Federation, server: Server | AdaptiveServer) -> Server | AdaptiveServer:
        sigma = server.penalty if self.adaptive else server.sigma  # type: ignore[union-attr]
        selected = fed.mask(fed.select(server.x))
        return server.next_state(fed.mean(self.update, server.x, sigma, each=selected))  # (11)

    def update(
        self, f: Local, client: Client, x: Array, sigma: Array | float, selected: Array
    ) -> tuple[Client, object]:
        """Apply (12)–(17) with the gradient at x: k0 steps of selected clients, one step of the others."""
        g = f.grad(x) / f.m
        sigma = float(sigma)
        pi, z = -g, x - g / sigma  # (16), (17)
        if selected.any():
            gi = g[selected]
            pii = client.pi[selected]
            solve = invert_metric(f.take(selected), self.H, sigma)
            for _ in range(self.k0):
                step = -solve(gi + pii)  # (12): x_i − x
                pii = pii + sigma * step  # (13)
            pi[selected], z[selected] = pii, x + step + pii / sigma  # (14)
        state = Client(pi, z - pi / sigma if self.lagrangian else client.w)
        return state, (z, row_norms(g + sigma * (z - x))) if self.adaptive else z
