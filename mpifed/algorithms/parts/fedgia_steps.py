"""Steps of the forms of FedGiA: systems with the matrices H_i, the factor t of the penalty, and an adaptive penalty."""

import math
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import to_tune
from mpifed.core.typing import Array, PositiveFloat
from mpifed.federation.local import Local
from mpifed.federation.server import Federation
from mpifed.federation.traits import Requirement
from mpifed.problems.problem import RowMap

MetricChoice = Annotated[Literal["diagonal", "gram", "zero"], Meta(description="H_i: r_i I, Gram matrix or 0")]
METRIC_REQUIRES = Requirement("lipschitz"), Requirement("majorizer_inverse", when={"H": "gram"})
PenaltyFactor = Annotated[PositiveFloat | None, to_tune("σ = t·r/m (default: Table III, by problem)")]
AdaptiveChoice = Annotated[bool, Meta(description="only the first σ is t·r/m, and σ follows the curvature of f")]


def invert_metric(f: Local, H: str, sigma: float) -> RowMap:
    """Return the map V -> (H_i/m + σI)⁻¹ v_i for rows V (c, n)."""
    if H == "gram":
        return f.majorizer_inverse(1 / f.m, sigma)
    h = (f.lipschitz() / f.m if H == "diagonal" else f.xp.zeros(len(f)))[:, None]
    factor = f.xp.astype(1 / (h + sigma), f.block.b.dtype)
    return lambda V: factor * V


def default_penalty_factor(fed: Federation) -> float:
    """Return t of Table III for the problem of a run; the penalty is σ = t·max r_i/m."""
    return max(0.025, 4 * math.log(fed.samples) / fed.n) if fed.problem.logistic_loss else 0.15


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

    @classmethod
    def initial(cls, x: Array, sigma: float, L: float) -> "AdaptiveServer":
        """Return the state before the first round; ``L`` is max r_i/m."""
        return cls(x, float(x.dtype.type(sigma)), x, np.zeros_like(x), 0.0, L)

    @property
    def penalty(self) -> Array:
        """The penalty as it travels: an array, which is charged, for clients do not know it."""
        return np.asarray(self.sigma, self.x.dtype)


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
