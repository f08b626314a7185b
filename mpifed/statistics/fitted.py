"""A final model as a statistical fit: standard errors from the Hessian, by model and by client, and what it cost.

The samples are read again, in this process and in double precision; this is not part of the run's communication.
"""

import math
from typing import Any

import msgspec
import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import bytes_of_shape, check_memory
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.sources.held import SHORT
from mpifed.experiment.housing import prepare_in_process
from mpifed.experiment.prepare import PreparedRun
from mpifed.experiment.resume import check_sizes
from mpifed.features.guarantee.notes import guarantee_fit_notes
from mpifed.features.penalty.coefficients import coefficient_names
from mpifed.features.settings import Experiment
from mpifed.results.coefficients import LEVEL, Fit, total_bytes
from mpifed.results.result import RunRecord
from mpifed.statistics.identifiability import NEAR, ModelPoint, invert_or_refuse
from mpifed.statistics.penalised_fit import penalised_fit
from mpifed.statistics.standard_errors import (
    Model,
    client_errors,
    decrement,
    distance,
    estimate_model,
    model_errors,
    sum_clients,
)
from mpifed.statistics.table_units import table_units


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
