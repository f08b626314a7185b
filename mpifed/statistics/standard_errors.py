"""Standard errors of a model, by its likelihood and by client, and how many of them it is from its optimum."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, t

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.sample_columns import samples_of
from mpifed.experiment.prepare import Prepared
from mpifed.features.client_weights.feature import shares_among
from mpifed.statistics.determined import inverted
from mpifed.statistics.penalised_fit import clients, unit_of
from mpifed.statistics.table_units import TableUnits

ROUNDING = 1e-15  # of f: what Newton's step could lower it by is no more than that at the optimum


class Model(NamedTuple):
    """What a study makes of its samples; ``whole``: whether f is their mean loss."""

    samples: int
    whole: bool
    dispersion: float
    likelihood: float
    law: Any  # of coefficients over their standard errors


class Sums(NamedTuple):
    """What is added up over the clients at x: f, ∇f, ∇²f, Σ p_i² g_i g_iᵀ, and of all samples Pearson's statistic."""

    f: float
    gradient: Array  # (n,)
    hessian: Array  # (n, n)
    expected: Array  # (n, n): Σ (d_i/d) of the means of ∇²f_i over labels, or the Hessian
    meat: Array  # (n, n)
    pearson: float
    convexity: float

    @property
    def length(self) -> float:
        """‖∇f‖."""
        return float(np.linalg.norm(self.gradient))


def modelled(parts: Prepared, sums: Sums, x: Array) -> Model:
    """The model of a study: its dispersion and likelihood, NaN where f is not the likelihood of all samples."""
    problem = parts.setup.problem
    d = samples_of(parts.data)
    totals = parts.data.totals
    shares = shares_among(parts.features, len(totals))
    # f weighs clients, a likelihood weighs samples: they are the same where clients weigh as their samples do
    whole = np.allclose(shares / len(totals), totals / totals.sum(), 1e-12, 0)
    if not (whole and problem.has("log_likelihood")):
        return Model(d, whole, math.nan, math.nan, norm())
    if not problem.has("pearson"):
        return Model(d, whole, 1.0, logarithm(parts, x, 1.0), norm())
    free = d - len(x)
    if free <= 0:
        raise UserError(f"{d} samples are too few for {len(x)} coefficients and a dispersion")
    if sums.pearson == 0:
        raise UserError(f"the model fits all {d} samples exactly: a dispersion of 0 gives no standard errors")
    dispersion = sums.pearson / free
    if problem.normal:
        return Model(d, whole, dispersion, logarithm(parts, x, sums.pearson / d), t(free))
    return Model(d, whole, dispersion, logarithm(parts, x, dispersion), norm())


def added(parts: Prepared, x: Array) -> Sums:
    """The sums over all clients at x (n,)."""
    n = len(x)
    m = parts.setup.m
    problem = parts.setup.problem
    f = pearson = convexity = 0.0
    gradient = np.zeros(n)
    hessian, expected, meat = np.zeros((3, n, n))
    total = parts.data.totals.sum()
    for local in clients(parts):
        block = local.block
        values, G = local.value_grad(x)
        f += float(values.sum()) / m
        gradient += G.sum(axis=0) / m
        meat += G.T @ G / m**2
        hessian += local.hess(np.tile(x, (len(local), 1))).sum(axis=0) / m
        if problem.has("expected_hess"):
            shares = (block.d / total)[:, None, None]
            expected += (shares * problem.expected_hess(block, np.tile(x, (len(block), 1)))).sum(axis=0)
        if problem.has("pearson"):
            pearson += float(problem.pearson(block, x).sum())
        if problem.has("convexity"):
            convexity += float(local.convexity().sum()) / m
    if not problem.has("expected_hess"):
        expected = hessian
    return Sums(f, gradient, hessian, expected, meat, pearson, convexity)


def model_errors(parts: Prepared, sums: Sums, model: Model, inverse: Array, units: TableUnits) -> Array:
    """Standard errors of the model (n,), of the mean Hessian over labels, where that is not H."""
    found: Array | None = inverse if sums.expected is sums.hessian else inverted(sums.expected)
    if found is None:
        raise UserError("expected_hess at this model is singular, so there are no standard errors of the model")
    return np.sqrt(model.dispersion * units.variances(found) / parts.data.totals.sum())


def clustered(m: int) -> float:
    """The usual correction of variances by client for few of them, m/(m − 1); NaN for one client, which has none.

    Their scores add up to 0 at the optimum, so that one of them is not free.
    """
    return m / (m - 1) if m > 1 else math.nan


def client_errors(sums: Sums, inverse: Array, m: int, units: TableUnits) -> Array:
    """Standard errors by client (n,); one client has none."""
    return np.sqrt(units.variances(inverse @ sums.meat @ inverse) * clustered(m))


def decrement(sums: Sums, inverse: Array) -> float:
    """The square of the Newton decrement."""
    return max(0.0, float(sums.gradient @ inverse @ sums.gradient))


def distance(parts: Prepared, sums: Sums, model: Model, inverse: Array) -> float:
    """How many standard errors Newton's step from x is long: those of the model, else those by client.

    Of the latter it is the largest over coefficients. With one client, f stands for the dispersion that is not known.
    """
    squared = decrement(sums, inverse)
    m = parts.setup.m
    if squared <= ROUNDING * abs(sums.f):
        return 0.0
    if not math.isnan(model.dispersion):
        return math.sqrt(squared * model.samples / model.dispersion)
    if m == 1:
        return math.sqrt(squared * model.samples / unit_of(parts.setup.problem, sums.f))
    # far from the optimum the gradients of clients have their mean in common, which is no spread of theirs
    spread = sums.meat - np.outer(sums.gradient, sums.gradient) / m
    errors = np.sqrt(np.maximum(np.diag(inverse @ spread @ inverse), 0) * clustered(m))
    step = np.abs(inverse @ sums.gradient)
    return float(np.max(step / np.where(errors > 0, errors, math.inf)))


def logarithm(parts: Prepared, x: Array, dispersion: float) -> float:
    """The log-likelihood of all samples, with the dispersion that makes it largest or is known."""
    assert parts.host is not None
    problem = parts.setup.problem
    return sum(float(problem.log_likelihood(block, x, dispersion).sum()) for _, block, _ in parts.host.whole)
