"""A final model as a statistical fit: standard errors from the Hessian, by model and by client, and what it cost.

The samples are read again, in this process and in double precision; nothing of it travelled in the run.
"""

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy.stats import norm, t

from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory, size_of
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.sample_columns import samples_of
from mpifed.data.sources.held import SHORT
from mpifed.experiment.housing import gathered
from mpifed.experiment.prepare import Prepared
from mpifed.experiment.stored_sizes import check_sizes
from mpifed.features.client_weights.feature import shares_among
from mpifed.features.guarantee.notes import of_fit
from mpifed.features.penalty.coefficients import names
from mpifed.features.settings import Experiment
from mpifed.results.coefficients import LEVEL, Fit, sent
from mpifed.results.result import Result
from mpifed.statistics.determined import NEAR, Place, determined, inverted
from mpifed.statistics.penalised_fit import clients, penalised_fit, unit_of
from mpifed.statistics.table_units import TableUnits, table_units

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


def fitted(result: Result, config: Experiment, cache: Cache | None = None) -> Fit:
    """The fit at the final model of a result. UserError where the problem has no Hessian, or it is singular."""
    problem = config.problem
    if not (problem.has("hess") or config.objective.penalised):
        raise UserError(f"{problem.label()} has no Hessian, from which standard errors are taken")
    if result.x is None:
        raise UserError("the result has no final model: the run did not come to its end")
    if not len(result.rounds.get("round", ())):
        raise UserError("the result has no round")
    parts = gathered(msgspec.structs.replace(config, dtype="float64", kernels="numpy"), cache)
    x = result.x.astype(float)
    if len(x) != parts.setup.start.size:
        raise UserError(
            f"the data have changed: the result has {len(x)} coefficients, and now there are {parts.setup.start.size}"
        )
    if not config.objective.penalised:
        check_memory(4 * size_of((len(x), len(x)), 8), f"4 matrices of {len(x):,} × {len(x):,} numbers")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return (penalised_fit if config.objective.penalised else summary)(result, config, parts, x)


def again(result: Result, config: Experiment) -> Experiment:
    """The experiment of a result whose samples are to be read again; ``config`` may say where they are now.

    UserError where they are not there, or are not those of the run.
    """
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


def summary(result: Result, config: Experiment, parts: Prepared, x: Array) -> Fit:
    """The fit without a penalty at coefficients x (n,) for the samples of ``parts``."""
    n = len(x)
    m = parts.setup.m
    sums = added(parts, x)
    inverse = determined(parts, Place(x, sums.f, sums.gradient, sums.hessian))
    model = modelled(parts, sums, x)
    units = table_units(result, config, parts, x)
    error = model_errors(parts, sums, model, inverse, units)
    robust = np.sqrt(units.variances(inverse @ sums.meat @ inverse) * clustered(m))
    away = distance(parts, sums, model, inverse)
    used = robust if np.isnan(model.dispersion) else error
    width = model.law.ppf((1 + LEVEL) / 2) * used
    x = units.of(x)
    length = float(np.linalg.norm(sums.gradient))
    return Fit(
        names=names(parts.data, n),
        x=x,
        error=error,
        robust=robust,
        law="t" if config.problem.normal and not np.isnan(model.dispersion) else "z",
        statistic=x / used,
        p=2 * model.law.sf(np.abs(x / used)),
        low=x - width,
        high=x + width,
        samples=model.samples,
        clients=m,
        dispersion=model.dispersion,
        likelihood=model.likelihood,
        aic=2 * n - 2 * model.likelihood,
        f=sums.f,
        gradient=length,
        distance=length / sums.convexity if sums.convexity > 0 else math.nan,
        decrement=math.sqrt(decrement(sums, inverse)),
        rounds=result.cr,
        bytes=sent(result),
        hessian_bytes=8 * m * (n * (n + 1) // 2 + 2 * n),  # x down, ∇f_i and half of ∇²f_i up
        notes=[*notes(config, model, m, n), *units.notes, *far(away, config, used is robust)],
        ratio=parts.setup.problem.ratio,
        intercepts=parts.data.intercepts,
        step=units.of(-inverse @ sums.gradient),
        standardised=units.T is not None,
    )


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


def notes(config: Experiment, model: Model, m: int, n: int) -> list[str]:
    """What the numbers do not cover."""
    problem = config.problem
    found = of_fit(config)
    penalty = next((key for key in ("lam", "mu") if getattr(problem, key, 0)), None)
    if penalty is not None:
        found.append(
            f"problem.{penalty} = {getattr(problem, penalty):g} draws coefficients towards 0: standard errors are "
            "those of the fit with it, and say nothing of this bias"
        )
    if not problem.has("log_likelihood"):
        found.append(f"{problem.label()} has no likelihood: standard errors are those by client alone")
    elif not model.whole:
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


def far(away: float, config: Experiment, by_client: bool) -> list[str]:
    """That a model is far from the optimum, ``away`` being how many standard errors."""
    if not away > math.sqrt(NEAR):
        return []
    newton = config.algorithm.label() == "newton"
    advice = "more rounds" if newton else 'more rounds or smaller steps, or take algorithm = "newton"'
    return [
        f"this model is {away:.2g} standard errors{' by client' * by_client} from the optimum, so these are not the "
        f"numbers of a fit: the run was too short, or it diverged; give it {advice}"
    ]
