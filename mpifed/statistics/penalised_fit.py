"""A final model of F = f + h as a fit: coefficients, how many are 0, and how far F is above its minimum."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpifed.core.arrays import soft
from mpifed.core.typing import Array
from mpifed.data.sample_columns import count_samples
from mpifed.experiment.prepare import PreparedRun
from mpifed.features.guarantee import guarantee_fit_notes
from mpifed.features.penalty.coefficients import coefficient_names
from mpifed.features.penalty.feature import get_penalty
from mpifed.features.penalty.proximal import ElasticNetPenalty
from mpifed.features.settings import Experiment
from mpifed.federation.local import Local
from mpifed.problems.problem import Problem
from mpifed.results.coefficients import Fit, total_bytes
from mpifed.results.result import RunRecord
from mpifed.statistics.table_units import table_units
from mpifed.theory.statements import is_convex

STEPS = 20  # most steps of Newton's method over coefficients without a penalty
LEVEL = 1e-14  # their slopes, relative to f, that count as 0
CENTRED = 1e-3  # ⟨x, ∇f⟩ over them, relative to F: above it they are not at their minimum
ROUNDING = 1e-15  # relative error of a difference of values of F
FLAT = 1e-13  # lower over upper bound of the curvature that is rounding
WHY = (
    "there are no standard errors: a penalty draws coefficients towards 0, and with l1 the data decide which of them "
    "are 0, of which the Hessian at this model says nothing"
)


def iterate_clients(parts: PreparedRun) -> Iterator[Local]:
    """Yield the clients of a study, block by block, with the f_i whose plain mean is f."""
    host = parts.host
    assert host is not None
    for _, block, ids in host.full_blocks:
        yield Local(block, parts.setup, ids, (0, 0), [*host.local_transforms, *host.evaluation.local_transforms])


def penalised_fit(result: RunRecord, config: Experiment, parts: PreparedRun, x: Array) -> Fit:
    """Return the fit at coefficients x (n,) for the samples of ``parts``."""
    penalty = get_penalty(parts.features)
    f, g = pooled_value_grad(parts, x)
    mu = lower_curvature(parts)
    # both are bounds; which one is tighter depends on λ, on μ and on how far the run came
    gap = min(strong_gap(penalty, x, g, mu), dual_gap(parts, penalty, x, mu))
    convexity = mu + float(penalty.l2.min())
    units = table_units(result, config, parts, x)
    unknown: dict[str, Any] = dict.fromkeys(("dispersion", "likelihood", "aic", "decrement"), math.nan)
    unknown |= dict.fromkeys(("error", "robust", "statistic", "p", "low", "high"), np.full(len(x), np.nan))
    return Fit(
        **unknown,
        names=coefficient_names(parts.data, len(x)),
        x=units.convert(x),
        law="z",
        samples=count_samples(parts.data),
        clients=parts.setup.m,
        f=f + penalty.value(x),
        gradient=float(np.linalg.norm(penalty.residual(x, g))),
        distance=math.sqrt(2 * gap / convexity) if convexity > 0 and math.isfinite(gap) else math.nan,
        rounds=result.cr,
        bytes=total_bytes(result),
        hessian_bytes=0,
        notes=[*guarantee_fit_notes(config), WHY, *units.notes, *gap_notes(gap, parts, f)],
        penalised=True,
        zeros=int(np.sum(x == 0)),
        gap=gap if math.isfinite(gap) else math.nan,
        standardised=units.T is not None,
    )


def typical_dispersion(problem: Problem, f: float) -> float:
    """Return the typical dispersion, where f is the mean loss of samples: 1, or 2 f for labels with units."""
    has_units = problem.has("pearson") or (problem.takes() == "numbers" and not problem.has("log_likelihood"))
    return 2 * abs(f) if has_units else 1.0


def gap_notes(gap: float, parts: PreparedRun, f: float) -> list[str]:
    """Return a note if F may be above its minimum by more than a step of a standard error costs."""
    errors = math.sqrt(2 * gap * count_samples(parts.data) / typical_dispersion(parts.setup.problem, f))
    if not errors > 1 or math.isinf(gap):
        return []
    return [
        f"F may be {gap:.2g} above its least value, as much as a step of {errors:.2g} standard errors costs, so these "
        "are not the numbers of a fit: the run was too short, or it diverged; give it more rounds or smaller steps"
    ]


def pooled_value_grad(parts: PreparedRun, x: Array) -> tuple[float, Array]:
    """Return f(x) and ∇f(x) (n,)."""
    f = 0.0
    g = np.zeros(len(x))
    for local in iterate_clients(parts):
        values, G = local.value_grad(x)
        f += float(values.sum()) / parts.setup.m
        g += G.sum(axis=0) / parts.setup.m
    return f, g


def lower_curvature(parts: PreparedRun) -> float:
    """Return a lower bound μ >= 0 of the curvature of f, NaN if f is not known to be convex."""
    problem = parts.setup.problem
    if not (problem.has("least_curvature") or problem.has("convexity")):
        return math.nan
    below = np.concatenate([np.asarray(local.least_curvature(), float) for local in iterate_clients(parts)])
    if not is_convex(None, below):
        return math.nan
    # if columns depend on each other eigenvalues are rounding instead of 0, and bounds divide by μ
    above = [local.lipschitz() for local in iterate_clients(parts)] if problem.has("lipschitz") else [np.zeros(1)]
    return float(below.mean()) if below.mean() > FLAT * np.concatenate(above).mean() else 0.0


def strong_gap(penalty: ElasticNetPenalty, x: Array, g: Array, mu: float) -> float:
    """Return a bound of F(x) − F* for μ-strongly convex f with ∇f(x) = g, inf if there is none.

    max_y ⟨g, x − y⟩ − (μ/2)‖x − y‖² + h(x) − h(y), which y = soft(μx − g, λ₁)/(μ + λ₂) attains.
    Source: F >= f(x) + ⟨g, y − x⟩ + (μ/2)‖y − x‖² + h(y) at all y; D_g of H. Karimi, J. Nutini, M. Schmidt, "Linear
    convergence of gradient and proximal-gradient methods under the Polyak-Łojasiewicz condition", arXiv:1608.04636.
    """
    if not (mu + penalty.l2 > 0).all():
        return math.inf
    y = soft(mu * x - g, penalty.l1) / (mu + penalty.l2)
    delta = x - y
    slope = g + penalty.l2 * (x + y) / 2 - mu / 2 * delta
    # the quotient (|x| − |y|)/(x − y): near a solution both are tiny differences of large numbers
    rise = (np.abs(x) - np.abs(y)) / np.where(delta == 0, 1, delta)
    rise = np.where(x * y < 0, rise, np.sign(x + y))  # of |x|, exact where x and y have the same sign
    return max(float(delta @ (slope + penalty.l1 * rise)), 0.0)


def dual_gap(parts: PreparedRun, penalty: ElasticNetPenalty, x: Array, mu: float) -> float:
    """Return the duality gap at x for convex f, an upper bound of F(x) − F*, inf if there is none.

    F(x) + f*(c g) + h*(−c g) with the gradient g at x′, which is x with its unpenalised coefficients at their minimum,
    and c <= 1 such that |c g_j| <= λ₁ where λ₂ = 0. f*(c g) <= c (⟨x′, g⟩ − f(x′)) where c = 1 or f >= 0, as least
    squares and logistic losses are: f* is convex, f*(g) = ⟨x′, g⟩ − f(x′), f*(0) = −min f.
    Source: Fenchel's duality; for the lasso S.-J. Kim et al., "An interior-point method for large-scale
    l1-regularized least squares", IEEE Journal of Selected Topics in Signal Processing 1(4), 2007, section III.
    """
    problem = parts.setup.problem
    free = (penalty.l1 == 0) & (penalty.l2 == 0)
    if math.isnan(mu) or (free.any() and not problem.has("hessian")):
        return math.inf
    best = minimise_free(parts, x, free)
    f, g = pooled_value_grad(parts, best)
    value = pooled_value_grad(parts, x)[0] + penalty.value(x)
    # if Newton's method does not converge, as where e^z is 0, slopes are left, and h* is infinite
    if not abs(float(best[free] @ g[free])) <= CENTRED * abs(value):
        return math.inf
    # h* is infinite beyond λ₁ where λ₂ = 0: the dual point is scaled back to where it is finite
    bounded = (penalty.l2 == 0) & ~free
    c = float(np.min(penalty.l1[bounded] / np.maximum(np.abs(g[bounded]), penalty.l1[bounded]), initial=1.0))
    if c < 1 and not (problem.normal or problem.logistic_loss):
        return math.inf
    square = penalty.l2 > 0
    conjugate = float(np.sum(soft(c * g[square], penalty.l1[square]) ** 2 / (2 * penalty.l2[square])))
    return max(value + c * (float(best[~free] @ g[~free]) - f) + conjugate, ROUNDING * abs(value))


def minimise_free(parts: PreparedRun, x: Array, free: Any) -> Array:
    """Return x (n,) with the coefficients ``free`` (n,) bool at the minimum of f over them, by Newton's method."""
    x = x.copy()
    columns = np.flatnonzero(free)
    for _ in range(STEPS if len(columns) else 0):
        f, g = pooled_value_grad(parts, x)
        if np.abs(g[free]).max() <= LEVEL * max(abs(f), 1e-300):
            break
        H = np.zeros((len(columns), len(columns)))
        for local in iterate_clients(parts):
            apply = local.hessian(np.tile(x, (len(local), 1)))
            for k, j in enumerate(columns):
                e = np.zeros((len(local), len(x)))
                e[:, j] = 1
                H[:, k] += apply(e).sum(axis=0)[columns] / parts.setup.m
        # columns that depend on each other make H singular, and then any solution has the same f
        x[free] -= np.linalg.lstsq(H, g[free])[0]
    return x
