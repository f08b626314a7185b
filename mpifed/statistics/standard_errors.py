"""Standard errors of a model, by its likelihood and by client, and its distance from the optimum in such errors."""

import math
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, t

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.sample_columns import count_samples
from mpifed.experiment.prepare import PreparedRun
from mpifed.features.client_weights.feature import get_client_weights
from mpifed.statistics.identifiability import invert_hessian
from mpifed.statistics.penalised_fit import iterate_clients, typical_dispersion
from mpifed.statistics.table_units import TableUnits

ROUNDING = 1e-15  # relative to f: at the optimum Newton's step lowers f by no more


class Model(NamedTuple):
    """The statistical model of a study; ``by_samples``: whether f is the mean loss of all samples."""

    samples: int
    by_samples: bool
    dispersion: float
    likelihood: float
    law: Any  # distribution of coefficients over their standard errors


class Sums(NamedTuple):
    """Sums over the clients at x: f, ∇f, ∇²f, Σ p_i² g_i g_iᵀ, and Pearson's statistic of all samples."""

    f: float
    gradient: Array  # (n,)
    hessian: Array  # (n, n)
    expected: Array  # (n, n): Σ (d_i/d) of the means of ∇²f_i over labels, or the Hessian
    meat: Array  # (n, n)
    pearson: float
    convexity: float

    @property
    def length(self) -> float:
        """The norm ‖∇f‖."""
        return float(np.linalg.norm(self.gradient))


def estimate_model(parts: PreparedRun, sums: Sums, x: Array) -> Model:
    """Return the model of a study with its dispersion and likelihood, NaN if f is not the samples' likelihood."""
    problem = parts.setup.problem
    d = count_samples(parts.data)
    totals = parts.data.totals
    shares = get_client_weights(parts.features, len(totals))
    # f weighs clients, a likelihood weighs samples: they agree if clients weigh as their samples do
    by_samples = np.allclose(shares / len(totals), totals / totals.sum(), 1e-12, 0)
    if not (by_samples and problem.has("log_likelihood")):
        return Model(d, by_samples, math.nan, math.nan, norm())
    if not problem.has("pearson"):
        return Model(d, by_samples, 1.0, total_log_likelihood(parts, x, 1.0), norm())
    free = d - len(x)
    if free <= 0:
        raise UserError(f"{d} samples are too few for {len(x)} coefficients and a dispersion")
    if sums.pearson == 0:
        raise UserError(f"the model fits all {d} samples exactly: a dispersion of 0 gives no standard errors")
    dispersion = sums.pearson / free
    if problem.normal:
        return Model(d, by_samples, dispersion, total_log_likelihood(parts, x, sums.pearson / d), t(free))
    return Model(d, by_samples, dispersion, total_log_likelihood(parts, x, dispersion), norm())


def sum_clients(parts: PreparedRun, x: Array) -> Sums:
    """Return the sums over all clients at x (n,)."""
    n = len(x)
    m = parts.setup.m
    problem = parts.setup.problem
    f = pearson = convexity = 0.0
    gradient = np.zeros(n)
    hessian, expected, meat = np.zeros((3, n, n))
    total = parts.data.totals.sum()
    for local in iterate_clients(parts):
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


def model_errors(parts: PreparedRun, sums: Sums, model: Model, inverse: Array, units: TableUnits) -> Array:
    """Return standard errors of the model (n,), from the Hessian's mean over labels if that is not H."""
    covariance: Array | None = inverse if sums.expected is sums.hessian else invert_hessian(sums.expected)
    if covariance is None:
        raise UserError("expected_hess at this model is singular, so there are no standard errors of the model")
    return np.sqrt(model.dispersion * units.variances(covariance) / parts.data.totals.sum())


def cluster_correction(m: int) -> float:
    """Return the usual correction m/(m − 1) of variances by client; NaN for one client, which has none.

    The clients' scores add up to 0 at the optimum, so one of them is not free.
    """
    return m / (m - 1) if m > 1 else math.nan


def client_errors(sums: Sums, inverse: Array, m: int, units: TableUnits) -> Array:
    """Return standard errors by client (n,); NaN for one client."""
    return np.sqrt(units.variances(inverse @ sums.meat @ inverse) * cluster_correction(m))


def decrement(sums: Sums, inverse: Array) -> float:
    """Return the square of the Newton decrement."""
    return max(0.0, float(sums.gradient @ inverse @ sums.gradient))


def distance(parts: PreparedRun, sums: Sums, model: Model, inverse: Array) -> float:
    """Return the length of Newton's step from x in standard errors: of the model, or else by client.

    By client it is the largest over coefficients. With one client, f stands for the unknown dispersion.
    """
    squared = decrement(sums, inverse)
    m = parts.setup.m
    if squared <= ROUNDING * abs(sums.f):
        return 0.0
    if not math.isnan(model.dispersion):
        return math.sqrt(squared * model.samples / model.dispersion)
    if m == 1:
        return math.sqrt(squared * model.samples / typical_dispersion(parts.setup.problem, sums.f))
    # far from the optimum clients share a mean gradient, which is not part of their spread
    spread = sums.meat - np.outer(sums.gradient, sums.gradient) / m
    errors = np.sqrt(np.maximum(np.diag(inverse @ spread @ inverse), 0) * cluster_correction(m))
    step = np.abs(inverse @ sums.gradient)
    return float(np.max(step / np.where(errors > 0, errors, math.inf)))


def total_log_likelihood(parts: PreparedRun, x: Array, dispersion: float) -> float:
    """Return the log-likelihood of all samples, for this dispersion."""
    assert parts.host is not None
    problem = parts.setup.problem
    return sum(float(problem.log_likelihood(block, x, dispersion).sum()) for _, block, _ in parts.host.full_blocks)
