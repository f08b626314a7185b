"""Names of coefficients, and which of them have the penalty."""

import numpy as np

from mpifed.algorithms.parts.decay import weight_mask
from mpifed.core.errors import raise_unknown
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.problems.problem import Problem


def coefficient_names(data: Dataset, n: int) -> list[str]:
    """Return the name of each of n coefficients: that of its column, or x with its number."""
    columns = [str(name) for name in getattr(data, "features", ())]
    names = columns if columns else [f"x{j}" for j in range(min(n, data.n))]
    return names + ["intercept"] * (n - len(names)) if n - len(names) in (0, 1) else [f"x{j}" for j in range(n)]


def select_penalised(left_out: tuple[str, ...] | None, problem: Problem, data: Dataset) -> Array:
    """Return which coefficients have the penalty: (n,) bool; by default all but intercepts and biases."""
    weights = weight_mask(problem, data)
    n = len(weights)
    if left_out is None:
        per_column = n == data.n  # a coefficient for each column
        return weights & (np.arange(n) < n - data.intercepts * per_column)
    coefficients = coefficient_names(data, n)
    for name in left_out:
        if name not in coefficients:
            raise_unknown("coefficient in objective.unpenalised", name, coefficients)
    return np.array([name not in left_out for name in coefficients], bool)
