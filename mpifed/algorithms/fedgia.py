"""FedGiA, Algorithm 1 of S. Zhou, G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning",
arXiv:2205.01438 (2022)."""

import math
from typing import Annotated, Any, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Array, Federation, Local, PositiveFloat, to_tune
from mpifed.algorithms.bases.inexact_admm import InexactADMM, PenaltyState
from mpifed.algorithms.parts.fedgia_metric import NEEDS, MetricChoice, invert_metric
from mpifed.core.promises import Supports
from mpifed.federation.traits import Participation, PlotStyle, Theorem


class Client(NamedTuple):
    pi: Array  # (c, n) dual variables
    w: Array  # (c, n) local models x_i where the Lagrangian is recorded, else (c, 0)


class Server(NamedTuple):
    x: Array  # (n,) model
    sigma: float  # penalty

    def next_state(self, mean: Any) -> "Server":
        """Return the state after a round whose uploads have this mean."""
        return self._replace(x=mean)


class AdaptiveServer(NamedTuple):
    """Server state with an adaptive penalty: x⁺ = x − s/σ, with s about ∇f(x)/m.

    σ follows the curvature of f along the path of the model, by the rule of Y. Malitsky, K. Mishchenko, "Adaptive
    gradient descent without descent", arXiv:1910.09529 (2020).
    """

    x: Array  # (n,) model
    sigma: float  # penalty: its first value times a power of two
    before: Array  # (n,) the model before; x itself at the start and after a step back
    slope: Array  # (n,) s at the model before
    error: float  # a quarter of the mean of the clients' distances from s to ∇f(x)/m there
    most: float  # max r_i/m, which no curvature of f/m exceeds

    def next_state(self, mean: tuple[Array, float]) -> "AdaptiveServer":
        """Return the state after a round; ``mean`` holds the means of uploaded models and distances."""
        return follow_curvature(self, *mean)


class OneGradientADMM(InexactADMM):
    """Options and start of FedGiA and of its asynchronous form."""

    k0: Annotated[int, Meta(ge=1, description="local iterations a round")] = 10
    H: MetricChoice = "diagonal"
    t: Annotated[PositiveFloat | None, to_tune("σ = t·r/m (default: Table III, by problem)")] = None
    adaptive: Annotated[bool, Meta(description="only the first σ is t·r/m, and σ follows the curvature of f")] = False

    requires = NEEDS
    common = True

    def message_size(self, n: int) -> tuple[float, float]:
        return n + self.adaptive, n + self.adaptive

    def init_client(self, f: Local) -> Client:
        return Client(self.first_duals(f), f.initial() if self.lagrangian else f.zeros(0))

    def init_server(self, fed: Federation) -> Server | AdaptiveServer:
        r = float(fed.max(self.smoothness))
        sigma = self.scale(fed.problem.logistic_loss, fed.samples, fed.n) * r / fed.m
        x = self.first_model(fed, fed.m * sigma)  # (11) at k = 0
        return start_adaptive(x, sigma, r / fed.m) if self.adaptive else Server(x, sigma)

    def report(self, server: PenaltyState, row: dict[str, float], m: int) -> dict[str, float]:
        return super().report(server, row, m) | ({"penalty": server.sigma} if self.adaptive else {})

    def scale(self, logistic: bool, samples: int, n: int) -> float:
        """Return t of Table III for the loss of the problem."""
        return self.t or (max(0.025, 4 * math.log(samples) / n) if logistic else 0.15)


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
        sigma = np.asarray(server.sigma, fed.dtype) if self.adaptive else server.sigma  # an array is charged
        mean = fed.mean(self.update, server.x, sigma, each=fed.mask(fed.select(server.x)))  # (11)
        return server.next_state(mean)

    def update(self, f: Local, client: Client, x: Array, sigma: float, selected: Array) -> tuple[Client, Any]:
        """Apply (12)–(17) with the gradient at x: k0 steps of selected clients, one step of the others."""
        g = f.grad(x) / f.m
        sigma = float(sigma)
        (i,) = f.xp.nonzero(selected)
        pi, z = -g, x - g / sigma  # (16), (17)
        if i.shape[0]:
            gi = g[i]
            pii = client.pi[i]
            solve = invert_metric(f.take(i), self.H, sigma)
            for _ in range(self.k0):
                step = -solve(gi + pii)  # (12): x_i − x
                pii = pii + sigma * step  # (13)
            pi[i], z[i] = pii, x + step + pii / sigma  # (14)
        state = Client(pi, z - pi / sigma if self.lagrangian else client.w)
        if not self.adaptive:
            return state, z
        residual = g + sigma * (z - x)
        return state, (z, f.xp.sqrt(f.xp.vecdot(residual, residual)))


def start_adaptive(x: Array, sigma: float, L: float) -> AdaptiveServer:
    """Return the state before the first round."""
    return AdaptiveServer(x, float(x.dtype.type(sigma)), x, np.zeros_like(x), 0.0, L)


def follow_curvature(path: AdaptiveServer, x: Array, error: float) -> AdaptiveServer:
    """Return the state after the step from path.x to x, or one step back; ``error`` is the clients' mean distance.

    c = ‖s − s⁻‖/‖x − x⁻‖ is the curvature along the last step, s = σ(x − x⁺), give or take e = (error + error⁻)/‖x −
    x⁻‖. Where c − e > 2σ that step was too long: the model goes back to x⁻, and σ doubles until it is at least c − e.
    Else the next σ is the one nearest to 2(c + e), at least σ/2.
    """
    sigma = path.sigma
    slope = path.sigma * (path.x - x)
    error = float(error) / 4
    length = norm(path.x - path.before)
    if length > 0:
        change, error_sum = norm(slope - path.slope), error + path.error
        lower, c = (min(max(v, 0.0) / length, path.most) for v in (change - error_sum, change + error_sum))
        # by powers of two alone, so that σ is the same number in single and in double precision
        if lower > 2 * sigma:
            return path._replace(x=path.before, sigma=math.ldexp(sigma, math.ceil(math.log2(lower / sigma))))
        sigma = math.ldexp(sigma, max(-1, round(math.log2(2 * c / sigma))) if c > 0 else -1)
    return AdaptiveServer(x, sigma, path.x, slope, error, path.most)


def norm(x: Array) -> float:
    """Return ‖x‖ in double precision."""
    # near the end the last step is a few units of the last place in single precision
    return float(np.linalg.norm(x.astype(float)))
