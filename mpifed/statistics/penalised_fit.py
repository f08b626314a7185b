"""A final model of F = f + h as a fit: coefficients, how many are 0, and how far F is from its least value."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpifed.core.soft_threshold import soft
from mpifed.core.typing import Array
from mpifed.data.sample_columns import samples_of
from mpifed.experiment.prepare import Prepared
from mpifed.features.guarantee.notes import of_fit
from mpifed.features.penalty.coefficients import names
from mpifed.features.penalty.feature import penalty_among
from mpifed.features.penalty.penalty import Penalty
from mpifed.features.settings import Experiment
from mpifed.federation.local import Local
from mpifed.problems.problem import Problem
from mpifed.results.coefficients import Fit, sent
from mpifed.results.result import Result
from mpifed.statistics.table_units import table_units
from mpifed.theory.statements import is_convex

STEPS = 20  # of Newton's method over coefficients without a penalty
LEVEL = 1e-14  # of their slopes, as a part of f, which is 0 to rounding
CENTRED = 1e-3  # ⟨x, ∇f⟩ over them, as a part of F: above it they are not at their best, where their slopes are 0
ROUNDING = 1e-15  # a difference of values of F has no more digits
FLAT = 1e-13  # a bound of the curvature from below, as a part of that from above, that is rounding
WHY = (
    "there are no standard errors: a penalty draws coefficients towards 0, and with l1 the data decide which of them "
    "are 0, of which the Hessian at this model says nothing"
)


def clients(parts: Prepared) -> Iterator[Local]:
    """The clients of a study, block by block, with the f_i whose plain mean is f."""
    host = parts.host
    assert host is not None
    for _, block, ids in host.whole:
        yield Local(block, parts.setup, ids, (0, 0), [*host.views, *host.evaluation.views])


def penalised_fit(result: Result, config: Experiment, parts: Prepared, x: Array) -> Fit:
    """The fit at coefficients x (n,) for the samples of ``parts``."""
    penalty = penalty_among(parts.features)
    f, g = pooled(parts, x)
    least = curvature(parts)
    # both are bounds, and which is the tighter one depends on λ, on μ and on how far the run came
    gap = min(strong_gap(penalty, x, g, least), dual_gap(parts, penalty, x, least))
    convexity = least + float(penalty.l2.min())
    units = table_units(result, config, parts, x)
    unknown: dict[str, Any] = dict.fromkeys(("dispersion", "likelihood", "aic", "decrement"), math.nan)
    unknown |= dict.fromkeys(("error", "robust", "statistic", "p", "low", "high"), np.full(len(x), np.nan))
    return Fit(
        **unknown,
        names=names(parts.data, len(x)),
        x=units.of(x),
        law="z",
        samples=samples_of(parts.data),
        clients=parts.setup.m,
        f=f + penalty.value(x),
        gradient=float(np.linalg.norm(penalty.residual(x, g))),
        distance=math.sqrt(2 * gap / convexity) if convexity > 0 and math.isfinite(gap) else math.nan,
        rounds=result.cr,
        bytes=sent(result),
        hessian_bytes=0,
        notes=[*of_fit(config), WHY, *units.notes, *high(gap, parts, f)],
        penalised=True,
        zeros=int(np.sum(x == 0)),
        gap=gap if math.isfinite(gap) else math.nan,
        standardised=units.T is not None,
    )


def unit_of(problem: Problem, f: float) -> float:
    """What the dispersion is about, where f is the mean loss of samples: 1, or for numbers that have units 2 f."""
    own = problem.has("pearson") or (problem.takes() == "numbers" and not problem.has("log_likelihood"))
    return 2 * abs(f) if own else 1.0


def high(gap: float, parts: Prepared, f: float) -> list[str]:
    """That F may be above its least value by more than a step of a standard error costs."""
    errors = math.sqrt(2 * gap * samples_of(parts.data) / unit_of(parts.setup.problem, f))
    if not errors > 1 or math.isinf(gap):
        return []
    return [
        f"F may be {gap:.2g} above its least value, as much as a step of {errors:.2g} standard errors costs, so these "
        "are not the numbers of a fit: the run was too short, or it diverged; give it more rounds or smaller steps"
    ]


def pooled(parts: Prepared, x: Array) -> tuple[float, Array]:
    """f(x) and ∇f(x) (n,)."""
    f = 0.0
    g = np.zeros(len(x))
    for local in clients(parts):
        values, G = local.value_grad(x)
        f += float(values.sum()) / parts.setup.m
        g += G.sum(axis=0) / parts.setup.m
    return f, g


def curvature(parts: Prepared) -> float:
    """A lower bound μ >= 0 of the curvature of f, NaN where f is not known to be convex."""
    problem = parts.setup.problem
    if not (problem.has("least_curvature") or problem.has("convexity")):
        return math.nan
    found = np.concatenate([np.asarray(local.least_curvature(), float) for local in clients(parts)])
    if not is_convex(None, found):
        return math.nan
    # where columns depend on each other eigenvalues have rounding in the place of 0, and bounds divide by μ
    above = [local.lipschitz() for local in clients(parts)] if problem.has("lipschitz") else [np.zeros(1)]
    return float(found.mean()) if found.mean() > FLAT * np.concatenate(above).mean() else 0.0


def strong_gap(penalty: Penalty, x: Array, g: Array, mu: float) -> float:
    """A bound of F(x) − F* for μ-strongly convex f with ∇f(x) = g, inf where there is none.

    max_y ⟨g, x − y⟩ − (μ/2)‖x − y‖² + h(x) − h(y), which y = soft(μx − g, λ₁)/(μ + λ₂) attains.
    Source: F >= f(x) + ⟨g, y − x⟩ + (μ/2)‖y − x‖² + h(y) at all y; D_g of H. Karimi, J. Nutini, M. Schmidt, "Linear
    convergence of gradient and proximal-gradient methods under the Polyak-Łojasiewicz condition", arXiv:1608.04636.
    """
    if not (mu + penalty.l2 > 0).all():
        return math.inf
    y = soft(mu * x - g, penalty.l1) / (mu + penalty.l2)
    away = x - y
    slope = g + penalty.l2 * (x + y) / 2 - mu / 2 * away
    # |x| − |y| over x − y, and not their difference: near a solution both are tiny differences of large numbers
    rise = (np.abs(x) - np.abs(y)) / np.where(away == 0, 1, away)
    rise = np.where(x * y < 0, rise, np.sign(x + y))  # of |x|, exact where x and y have the same sign
    return max(float(away @ (slope + penalty.l1 * rise)), 0.0)


def dual_gap(parts: Prepared, penalty: Penalty, x: Array, mu: float) -> float:
    """The duality gap at x for convex f, an upper bound of F(x) − F*, inf where there is none.

    F(x) + f*(c g) + h*(−c g) with the gradient g at x′, x with its coefficients without a penalty at their best, and
    c <= 1 such that |c g_j| <= λ₁ where λ₂ = 0. f*(c g) <= c (⟨x′, g⟩ − f(x′)) where c = 1 or f >= 0, as least squares
    and logistic losses are: f* is convex, f*(g) = ⟨x′, g⟩ − f(x′), f*(0) = −min f.
    Source: Fenchel's duality; for the lasso S.-J. Kim et al., "An interior-point method for large-scale
    l1-regularized least squares", IEEE Journal of Selected Topics in Signal Processing 1(4), 2007, section III.
    """
    problem = parts.setup.problem
    free = (penalty.l1 == 0) & (penalty.l2 == 0)
    if math.isnan(mu) or (free.any() and not problem.has("hessian")):
        return math.inf
    best = centred(parts, x, free)
    f, g = pooled(parts, best)
    value = pooled(parts, x)[0] + penalty.value(x)
    # where Newton's method does not arrive, as where e^z is 0, slopes are left, and h* is infinite
    if not abs(float(best[free] @ g[free])) <= CENTRED * abs(value):
        return math.inf
    # h* is infinite beyond λ₁ where λ₂ = 0: the dual point is drawn back to where it is not
    bounded = (penalty.l2 == 0) & ~free
    c = float(np.min(penalty.l1[bounded] / np.maximum(np.abs(g[bounded]), penalty.l1[bounded]), initial=1.0))
    if c < 1 and not (problem.normal or problem.logistic_loss):
        return math.inf
    square = penalty.l2 > 0
    conjugate = float(np.sum(soft(c * g[square], penalty.l1[square]) ** 2 / (2 * penalty.l2[square])))
    return max(value + c * (float(best[~free] @ g[~free]) - f) + conjugate, ROUNDING * abs(value))


def centred(parts: Prepared, x: Array, free: Any) -> Array:
    """x with the coefficients ``free`` (n,) bool at the minimum of f over them, by Newton's method: (n,)."""
    x = x.copy()
    columns = np.flatnonzero(free)
    for _ in range(STEPS if len(columns) else 0):
        f, g = pooled(parts, x)
        if np.abs(g[free]).max() <= LEVEL * max(abs(f), 1e-300):
            break
        H = np.zeros((len(columns), len(columns)))
        for local in clients(parts):
            apply = local.hessian(np.tile(x, (len(local), 1)))
            for k, j in enumerate(columns):
                e = np.zeros((len(local), len(x)))
                e[:, j] = 1
                H[:, k] += apply(e).sum(axis=0)[columns] / parts.setup.m
        # columns that depend on each other make H singular, and then any of its solutions has the least f
        x[free] -= np.linalg.lstsq(H, g[free])[0]
    return x
