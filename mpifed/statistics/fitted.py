"""A final model as a statistical fit: standard errors from the Hessian, by model and by client, and what it cost.

The samples are read again, in this process and in double precision; nothing of it travelled in the run.
"""

import math
from typing import Any

import msgspec
import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory, size_of
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.sources.held import SHORT
from mpifed.experiment.housing import gathered
from mpifed.experiment.prepare import Prepared
from mpifed.experiment.stored_sizes import check_sizes
from mpifed.features.guarantee.notes import of_fit
from mpifed.features.penalty.coefficients import names
from mpifed.features.settings import Experiment
from mpifed.results.coefficients import LEVEL, Fit, sent
from mpifed.results.result import Result
from mpifed.statistics.determined import NEAR, Place, determined
from mpifed.statistics.penalised_fit import penalised_fit
from mpifed.statistics.standard_errors import (
    Model,
    added,
    client_errors,
    decrement,
    distance,
    model_errors,
    modelled,
)
from mpifed.statistics.table_units import table_units


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
    robust = client_errors(sums, inverse, m, units)
    away = distance(parts, sums, model, inverse)
    used = robust if np.isnan(model.dispersion) else error
    x = units.of(x)
    return Fit(
        names=names(parts.data, n),
        x=x,
        error=error,
        robust=robust,
        law="t" if config.problem.normal and not np.isnan(model.dispersion) else "z",
        **tested(model, x, used),
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
        bytes=sent(result),
        hessian_bytes=8 * m * (n * (n + 1) // 2 + 2 * n),  # x down, ∇f_i and half of ∇²f_i up
        notes=[*notes(config, model, m, n), *units.notes, *far(away, config, used is robust)],
        ratio=parts.setup.problem.ratio,
        intercepts=parts.data.intercepts,
        step=units.of(-inverse @ sums.gradient),
        standardised=units.T is not None,
    )


def tested(model: Model, x: Array, used: Array) -> dict[str, Any]:
    """Tests of coefficients x (n,) and their intervals, by these standard errors."""
    width = model.law.ppf((1 + LEVEL) / 2) * used
    p = 2 * model.law.sf(np.abs(x / used))
    return {"statistic": x / used, "p": p, "low": x - width, "high": x + width}


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
