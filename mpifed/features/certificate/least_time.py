"""Constants of an asynchronous study for the bounds of the least time; some are estimated."""

import math

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.certificate.constants import FINAL, MINIMUM
from mpifed.features.conditions import minibatch_size
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.feature import make_devices
from mpifed.federation.server import Federation
from mpifed.theory.least_time import LeastTimeInputs
from mpifed.theory.statements import ROUNDING, Constants

DRAWS = 64  # mini-batches from which a variance is estimated


def compute_setting(
    config: Experiment, fed: Federation, data: Dataset, constants: Constants, x: Array | None
) -> LeastTimeInputs:
    """Return τ, L, Δ, σ² of a study; with the final model x (n,) of its run, gradients there count too."""
    first = fed.initial()
    points = [first] if x is None else [first, x.astype(fed.dtype)]
    estimated = {"L": "an upper bound, max r_i"}
    delta, words = initial_gap(constants, config.problem.logistic_loss)
    if words:
        estimated["Δ"] = words
    tau = gradient_seconds(config, fed, data)
    if config.system is not None and config.system.jitter:
        estimated["τ_i"] = "means, for they vary"
    variance, words = gradient_variance(config, fed, points)
    if words:
        estimated["σ²"] = words
    same = all(same_gradients(config, fed, point) for point in points)
    return LeastTimeInputs(tau, constants.L_max, delta, variance, same, estimated)


def initial_gap(constants: Constants, logistic: bool) -> tuple[float, str]:
    """Return Δ = f(x⁰) − inf f, and how it was estimated; "" if f* was computed."""
    if constants.at == MINIMUM:
        return constants.f_first - constants.f, ""
    if logistic:
        return constants.f_first, "an upper bound: f >= 0"
    if constants.at == FINAL:
        return max(0.0, constants.f_first - constants.f), "from below: what f has lost in the run"
    return math.nan, "not known before a run"


def gradient_seconds(config: Experiment, fed: Federation, data: Dataset) -> Array:
    """Return τ_i, the seconds from one gradient of a client to its next: (m,).

    An upload is a gradient, or several of mini-batches: then its time is divided by their number. With messages in it τ
    is that of a client which computes nothing meanwhile, as in all methods here.
    """
    clients = make_devices(config, fed.setup, data)
    jitter = clients.system.jitter
    times = clients.round_times(np.arange(fed.m), math.exp(jitter**2 / 2))
    each = np.minimum(minibatch_size(config) or data.sizes, data.sizes)
    return np.asarray(times / np.maximum(1.0, clients.work / each))


def gradient_variance(config: Experiment, fed: Federation, points: list[Array]) -> tuple[float, str]:
    """Return σ², the variance of a client's gradient, and how it was estimated; "" if it is known."""
    size = minibatch_size(config)
    if not size:
        return fed.n * getattr(config.problem, "noise", 0.0) ** 2, ""
    inspected = [fed.inspect(config.algorithm.certify_variance, args=(point, size, DRAWS)) for point in points]
    where = "x⁰" if len(points) == 1 else "x⁰ and the last x"
    return float(np.max(inspected)), f"from {DRAWS} mini-batches at {where}"


def same_gradients(config: Experiment, fed: Federation, x: Array) -> bool:
    """Return whether all f_i have the same gradient at x, up to rounding."""
    squares, _ = fed.inspect(config.algorithm.certify_gradients, args=(x,))
    _, total = fed.inspect(config.algorithm.certify_objective, "sum", (x,))
    mean = np.asarray(total, float) / fed.m
    return bool(np.mean(squares) - mean @ mean <= math.sqrt(ROUNDING) * np.mean(squares))
