"""Sixty samples on three clients, a run on them, and a row of an installed package beside it."""

import importlib.metadata
import math
import warnings
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

import mpifed
from tests.agreement.row import Row, apart

SIZES = (12, 20, 28)
CLIENT = np.repeat(range(3), SIZES)
rng = np.random.default_rng(11)
A = rng.standard_normal((60, 4))
SCORES = A @ [0.5, -0.4, 0.3, 0.1]
NUMBERS = SCORES + rng.standard_normal(60)
COUNTS = rng.poisson(np.exp(1 + SCORES)).astype(float)
POSITIVE = rng.gamma(2.0, np.exp(1 + SCORES) / 2)
BINARY = (SCORES + rng.logistic(size=60) > 0).astype(float)
CLASSES = rng.integers(0, 3, 60).astype(float)
TIMES = 1 + np.floor(8 * rng.exponential(np.exp(-SCORES)))
EVENTS = (rng.random(60) < 0.7).astype(float)
SURVIVAL = np.where(EVENTS, TIMES, -TIMES)
WEIGHTS = rng.integers(1, 4, 60).astype(float)
SHIFTS = rng.normal(0, 0.3, 60)
ONE = np.column_stack([A, np.ones(60)])
WHERE = "60 samples on 3 clients"
Loss = Callable[[np.ndarray, np.ndarray], np.ndarray]


class Found(NamedTuple):
    """What a program finds: arrays with the unit of the model, all compared as one, and f."""

    x: tuple[object, ...]
    f: object = math.nan


def ours(problem: object, samples: object, labels: object, sizes: object = SIZES, **more: object) -> mpifed.Result:
    """A run of Newton's method to the end, or of what ``more`` says; ``columns``: weights and offsets of samples."""
    columns, sizes = more.pop("columns", {}), more.pop("sizes", sizes)
    study = {"algorithm": "newton", "objective": {"weights": "samples"}, "rounds": 40, "selection": "all"} | more
    return mpifed.run(study, problem=problem, data=mpifed.arrays(samples, labels, sizes, **columns))


def measured(method: str, package: str, compared: str, beside: Callable[[], tuple[Found, Found]]) -> Row:
    """A row of a package and its version; without numbers where it is not installed."""
    try:
        version = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return Row(method, package, "", compared, math.nan, math.nan)
    with warnings.catch_warnings():
        # Of the packages, such as of a tolerance that is very small.
        warnings.simplefilter("ignore")
        found, theirs = beside()
    x, other = (np.concatenate([np.ravel(part) for part in one.x]) for one in (found, theirs))
    return Row(method, package, version.partition("+")[0], compared, apart(x, other), apart([found.f], [theirs.f]))
