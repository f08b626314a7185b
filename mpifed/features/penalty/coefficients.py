"""Coefficients: what they are called, and which of them have the penalty."""

import numpy as np

from mpifed.algorithms.parts.decay import decaying
from mpifed.core.errors import unknown
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.problems.problem import Problem


def names(data: Dataset, n: int) -> list[str]:
    """The name of each of n coefficients: that of its column, or x with its number."""
    known = [str(name) for name in getattr(data, "features", ())]
    found = known if known else [f"x{j}" for j in range(min(n, data.n))]
    return found + ["intercept"] * (n - len(found)) if n - len(found) in (0, 1) else [f"x{j}" for j in range(n)]


def penalised(left_out: tuple[str, ...] | None, problem: Problem, data: Dataset) -> Array:
    """Which coefficients have the penalty: (n,) bool. By default all but intercepts and biases."""
    weights = decaying(problem, data)
    n = len(weights)
    if left_out is None:
        own = n == data.n  # a coefficient for each column
        return weights & (np.arange(n) < n - data.intercepts * own)
    known = names(data, n)
    for name in left_out:
        if name not in known:
            unknown("coefficient in objective.unpenalised", name, known)
    return np.array([name not in left_out for name in known], bool)
