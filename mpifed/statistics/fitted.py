"""A final model as a statistical fit: standard errors from the Hessian, by model and by client, and what it cost.

The samples are read again, in this process and in double precision; this is not part of the run's communication.
"""

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy.stats import norm, t

from mpifed.core.errors import UserError
from mpifed.core.memory import bytes_of_shape, check_memory
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.sample_columns import count_samples
from mpifed.data.sources.held import SHORT
from mpifed.experiment.housing import prepare_in_process
from mpifed.experiment.prepare import PreparedRun
from mpifed.experiment.resume import check_sizes
from mpifed.features.client_weights import get_client_weights
from mpifed.features.guarantee import guarantee_fit_notes
from mpifed.features.penalty.coefficients import coefficient_names
from mpifed.features.settings import Experiment
from mpifed.results.coefficients import LEVEL, Fit, total_bytes
from mpifed.results.result import RunRecord
from mpifed.statistics.identifiability import NEAR, ModelPoint, invert_hessian, invert_or_refuse
from mpifed.statistics.penalised_fit import iterate_clients, penalised_fit, typical_dispersion
from mpifed.statistics.table_units import TableUnits, table_units

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


def fit_model(result: RunRecord, config: Experiment, cache: Cache | None = None) -> Fit:
    """Fit the final model of a result; raise UserError if the problem has no Hessian, or it is singular."""
    problem = config.problem
    if not (problem.has("hess") or config.objective.penalised):
        raise UserError(f"{problem.label()} has no Hessian, from which standard errors are taken")
    if result.x is None:
        raise UserError("the result has no final model: the run did not come to its end")
    if not len(result.rounds.get("round", ())):
        raise UserError("the result has no round")
    parts = prepare_in_process(msgspec.structs.replace(config, dtype="float64", kernels="numpy"), cache)
    x = result.x.astype(float)
    if len(x) != parts.setup.start.size:
        raise UserError(
            f"the data have changed: the result has {len(x)} coefficients, and now there are {parts.setup.start.size}"
        )
    if not config.objective.penalised:
        check_memory(4 * bytes_of_shape((len(x), len(x)), 8), f"4 matrices of {len(x):,} × {len(x):,} numbers")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return (penalised_fit if config.objective.penalised else summary)(result, config, parts, x)


def require_same_data(result: RunRecord, config: Experiment) -> Experiment:
    """Return ``config``, which may say where samples are now; raise UserError if they are not those of the run."""
    recorded = result.config.get("data", {}).get("sha256")
    if recorded and recorded != getattr(config.data, "sha256", ""):
        raise UserError(
            f"the data are not those of the run, whose sha256 is {recorded[:SHORT]}…: give the same ones, with the "
            "same clients and columns"
        )
    check_sizes(result, config)
    try:
        config.data.check()
    except UserError as error:
        if not hasattr(config.data, "path"):
            raise
        raise UserError(
            f"{error}; the fit of a result reads its samples again: data.path=FILE behind the result file, or in "
            'Python fit(data={"path": FILE}), says where they are now'
        ) from None
    return config


def summary(result: RunRecord, config: Experiment, parts: PreparedRun, x: Array) -> Fit:
    """Return the fit without a penalty at coefficients x (n,) for the samples of ``parts``."""
    n = len(x)
    m = parts.setup.m
    sums = sum_clients(parts, x)
    inverse = invert_or_refuse(parts, ModelPoint(x, sums.f, sums.gradient, sums.hessian))
    model = estimate_model(parts, sums, x)
    units = table_units(result, config, parts, x)
    error = model_errors(parts, sums, model, inverse, units)
    robust = client_errors(sums, inverse, m, units)
    errors_away = distance(parts, sums, model, inverse)
    used = robust if np.isnan(model.dispersion) else error
    x = units.convert(x)
    return Fit(
        names=coefficient_names(parts.data, n),
        x=x,
        error=error,
        robust=robust,
        law="t" if config.problem.normal and not np.isnan(model.dispersion) else "z",
        **wald_tests(model, x, used),
        samples=model.samples,
        clients=m,
        dispersion=model.dispersion,
        likelihood=model.likelihood,
        aic=2 * n - 2 * model.likelihood,
        f=sums.f,
        gradient=sums.length,
        distance=sums.length / sums.convexity if sums.convexity > 0 else math.nan,
        decrement=math.sqrt(decrement(sums, inverse)),
        rounds=result.cr,
        bytes=total_bytes(result),
        hessian_bytes=8 * m * (n * (n + 1) // 2 + 2 * n),  # x down, ∇f_i and half of ∇²f_i up
        notes=[*fit_notes(config, model, m, n), *units.notes, *distance_notes(errors_away, config, used is robust)],
        ratio=parts.setup.problem.ratio,
        intercepts=parts.data.intercepts,
        step=units.convert(-inverse @ sums.gradient),
        standardised=units.T is not None,
    )


def wald_tests(model: Model, x: Array, errors: Array) -> dict[str, Any]:
    """Return test statistics, p-values and intervals of coefficients x (n,), from their standard errors."""
    width = model.law.ppf((1 + LEVEL) / 2) * errors
    p = 2 * model.law.sf(np.abs(x / errors))
    return {"statistic": x / errors, "p": p, "low": x - width, "high": x + width}


def fit_notes(config: Experiment, model: Model, m: int, n: int) -> list[str]:
    """Return notes on what the numbers of a fit do not cover."""
    problem = config.problem
    found = guarantee_fit_notes(config)
    penalty = next((key for key in ("lam", "mu") if getattr(problem, key, 0)), None)
    if penalty is not None:
        found.append(
            f"problem.{penalty} = {getattr(problem, penalty):g} draws coefficients towards 0: standard errors are "
            "those of the fit with it, and say nothing of this bias"
        )
    if not problem.has("log_likelihood"):
        found.append(f"{problem.label()} has no likelihood: standard errors are those by client alone")
    elif not model.by_samples:
        weigh = "alike, whatever their sizes" if config.objective.weights == "clients" else "as objective.weights says"
        found.append(
            f'clients weigh {weigh}: with objective.weights = "samples" f is the likelihood of all samples, and there '
            "are standard errors of the model too"
        )
    elif problem.likelihood:
        found.append(f"the log-likelihood is {problem.likelihood}")
    if m == 1:
        found.append("there are no standard errors by client, for they compare clients, and there is one")
    elif m <= n:
        found.append(f"standard errors by client are too small with {m} clients for {n} coefficients")
    if not config.stop.gradient and config.algorithm.label() not in ("newton", "fednl"):
        found.append("the run had no stop.gradient: look at the Newton decrement for how far it came")
    return found


def distance_notes(errors: float, config: Experiment, by_client: bool) -> list[str]:
    """Return a note if a model is far from the optimum, ``errors`` standard errors."""
    if not errors > math.sqrt(NEAR):
        return []
    newton = config.algorithm.label() == "newton"
    advice = "more rounds" if newton else 'more rounds or smaller steps, or take algorithm = "newton"'
    return [
        f"this model is {errors:.2g} standard errors{' by client' * by_client} from the optimum, so these are not the "
        f"numbers of a fit: the run was too short, or it diverged; give it {advice}"
    ]
