"""What methods with curvature share: the Newton direction, and backtracking along it."""

from collections.abc import Callable

import numpy as np

from mpifed.core.errors import Trouble
from mpifed.core.typing import Array

ROUNDING = 4  # values of f that differ by fewer units of its last place count as the same
SMALLEST = 2.0**-50  # no smaller step is tried


def direction(H: Array, g: Array, name: str) -> Array:
    """−H⁻¹ g (n,) for H (n, n); Trouble, which names the method, where H is not positive definite.

    H counts as singular where the diagonal of its Cholesky factor says that its condition is that of rounding.
    """
    try:
        diagonal = np.diagonal(np.linalg.cholesky(H))
        regular = diagonal.min() ** 2 > len(H) * np.finfo(H.dtype).eps * diagonal.max() ** 2
    except np.linalg.LinAlgError:
        regular = False
    if not regular:
        raise Trouble(
            f"{name} finds no step: the mean of the clients' Hessians is not positive definite, so set the problem's "
            "regularisation above 0, and bias = false where there is one"
        )
    return -np.linalg.solve(H, g)


def backtrack(f: Callable[[float], float], start: float, slope: float, c: float, shrink: float) -> float:
    """The first step s of 1, shrink, shrink² … with f(s) <= f(0) + c s ``slope``, to rounding; ``start`` is f(0)."""
    step = 1.0
    slack = ROUNDING * np.spacing(abs(start))
    while step > SMALLEST and f(step) > start + c * step * slope + slack:
        step *= shrink
    return step
