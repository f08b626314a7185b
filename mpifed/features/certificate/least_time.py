"""The constants of an asynchronous study that the bounds of the least time speak of, and how some are estimated."""

import math

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.certificate.constants import FINAL, MINIMUM
from mpifed.features.findings import batch_size
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.feature import devices
from mpifed.federation.server import Federation
from mpifed.theory.least_time import Setting
from mpifed.theory.statements import ROUNDING, Constants

DRAWS = 64  # mini-batches from which a variance is estimated


def setting(config: Experiment, fed: Federation, data: Dataset, constants: Constants, x: Array | None) -> Setting:
    """τ, L, Δ, σ² of a study, or of its run with final model x (n,), where gradients are looked at too."""
    first = fed.initial()
    points = [first] if x is None else [first, x.astype(fed.dtype)]
    estimated = {"L": "an upper bound, max r_i"}
    delta, words = below(constants, config.problem.logistic_loss)
    if words:
        estimated["Δ"] = words
    tau = seconds(config, fed, data)
    if config.system is not None and config.system.jitter:
        estimated["τ_i"] = "means, for they vary"
    variance, words = noise(config, fed, points)
    if words:
        estimated["σ²"] = words
    same = all(alike(config, fed, point) for point in points)
    return Setting(tau, constants.L_max, delta, variance, same, estimated)


def below(constants: Constants, logistic: bool) -> tuple[float, str]:
    """Δ = f(x⁰) − inf f, and how it was estimated; "" where f* was computed."""
    if constants.at == MINIMUM:
        return constants.f_first - constants.f, ""
    if logistic:
        return constants.f_first, "an upper bound: f >= 0"
    if constants.at == FINAL:
        return max(0.0, constants.f_first - constants.f), "from below: what f has lost in the run"
    return math.nan, "not known before a run"


def seconds(config: Experiment, fed: Federation, data: Dataset) -> Array:
    """τ_i, the seconds from one gradient of a client to its next: (m,).

    An upload is a gradient, or several of mini-batches: then its time is divided by their number. With messages in it τ
    is that of a client which computes nothing meanwhile, as in all methods here.
    """
    own = devices(config, fed.setup, data)
    jitter = own.system.jitter
    times = own.usual(np.arange(fed.m), math.exp(jitter**2 / 2))
    each = np.minimum(batch_size(config) or data.sizes, data.sizes)
    return np.asarray(times / np.maximum(1.0, own.work / each))


def noise(config: Experiment, fed: Federation, points: list[Array]) -> tuple[float, str]:
    """σ², the variance of a client's gradient, and how it was estimated; "" where it is known."""
    size = batch_size(config)
    if not size:
        return fed.n * getattr(config.problem, "noise", 0.0) ** 2, ""
    inspected = [fed.inspect(config.algorithm.certify_variance, args=(point, size, DRAWS)) for point in points]
    where = "x⁰" if len(points) == 1 else "x⁰ and the last x"
    return float(np.max(inspected)), f"from {DRAWS} mini-batches at {where}"


def alike(config: Experiment, fed: Federation, x: Array) -> bool:
    """Whether all f_i have the same gradient at x, but for rounding."""
    squares, _ = fed.inspect(config.algorithm.certify_gradients, args=(x,))
    _, total = fed.inspect(config.algorithm.certify_objective, "sum", (x,))
    mean = np.asarray(total, float) / fed.m
    return bool(np.mean(squares) - mean @ mean <= math.sqrt(ROUNDING) * np.mean(squares))
