"""What methods with curvature share: the Newton direction, and backtracking along it."""

from collections.abc import Callable

import numpy as np

from mpifed.core.errors import Singular
from mpifed.core.typing import Array

ROUNDING = 4  # values of f that differ by fewer units of its last place count as the same
SMALLEST = 2.0**-50  # no smaller step is tried
PART = 0.01  # of the largest part of a direction along which H is 0: coefficients below have none
SHOWN = 6  # coefficients named at most


def direction(H: Array, g: Array, name: str, x: Array) -> Array:
    """−H⁻¹ g (n,) for H (n, n) at x; Singular, which names the method, where H is not positive definite.

    H counts as singular where the diagonal of its Cholesky factor says that its condition is that of rounding.
    """
    if not regular(H):
        raise Singular(name, advice(H), x)
    return -np.linalg.solve(H, g)


def regular(H: Array) -> bool:
    """Whether H (n, n) is positive definite, and its condition is not that of rounding."""
    try:
        # in every round, and so by a factorisation, which takes much less time than eigenvalues
        diagonal = np.diagonal(np.linalg.cholesky(H))
    except np.linalg.LinAlgError:
        return False
    return bool(diagonal.min() ** 2 > len(H) * np.finfo(H.dtype).eps * diagonal.max() ** 2)


def advice(H: Array) -> str:
    """Why the mean H (n, n) of the clients' Hessians is not regular, and what helps."""
    mean = "the mean of the clients' Hessians"
    diagonal = np.diagonal(H)
    if not np.isfinite(H).all():
        return f"{mean} has numbers that are not finite: the iterates diverge or the data do"
    if (flat := np.flatnonzero(diagonal == 0)).size:
        return (
            f"{mean} is 0 in row {flat[0]} (counted from 0), so its coefficient does not change f: its column is 0 in "
            "all rows, or is that of a category without events: leave it out"
        )
    # columns brought to one size first: else kilometres beside millimetres look like columns that depend on each other
    scale = 1 / np.sqrt(np.abs(diagonal))
    even = H * scale * scale[:, None]
    values, vectors = np.linalg.eigh(even)
    if values[0] < -np.sqrt(np.finfo(H.dtype).eps):
        return (
            f"{mean} is not positive definite: f is not convex at this model, so lower a regularisation that is not "
            "convex, or begin elsewhere with start; where a column separates the classes, f is flat but for rounding: "
            "leave it out"
        )
    if regular(even):
        least = diagonal.argmin()
        most = diagonal.argmax()
        return (
            f"the diagonal of {mean} goes from {diagonal[least]:.1e} (coefficient {least}, counted from 0) to "
            f"{diagonal[most]:.1e} (coefficient {most}): bring columns of different size to one, as data.standardise = "
            '"pooled" does; where a column is that of a category without events, or separates classes, leave it out'
        )
    return dependent(vectors[:, 0])


def dependent(v: Array) -> str:
    """What helps where coefficients depend on each other: those in the eigenvector v (n,) of the least eigenvalue."""
    mean = "the mean of the clients' Hessians"
    parts = np.abs(v)
    which = np.flatnonzero(parts > PART * parts.max())
    if len(which) > SHOWN:
        return (
            f"{mean} is not positive definite: there are fewer samples than coefficients, or many columns depend on "
            "each other, so set the problem's regularisation above 0"
        )
    return (
        f"the coefficients {', '.join(map(str, which))} (counted from 0) depend on each other in {mean}: leave out a "
        "column that is given twice or follows from the others, take bias = false where they are biases, and set the "
        "problem's regularisation above 0 where it is softmax without, or there are fewer samples than coefficients"
    )


def backtrack(f: Callable[[float], float], start: float, slope: float, c: float, shrink: float) -> float:
    """The first step s of 1, shrink, shrink² … with f(s) <= f(0) + c s ``slope``, to rounding; ``start`` is f(0)."""
    step = 1.0
    # at the optimum f cannot fall by more than its rounding, and the search would go down to the smallest step
    slack = ROUNDING * np.spacing(abs(start))
    while step > SMALLEST and f(step) > start + c * step * slope + slack:
        step *= shrink
    return step
