"""Newton direction, backtracking along it, and explanations of singular Hessians."""

from collections.abc import Callable

import numpy as np

from mpifed.core.errors import SingularHessian
from mpifed.core.typing import Array

ROUNDING = 4  # values of f that differ by fewer units of its last place count as the same
SMALLEST_STEP = 2.0**-50  # no smaller step is tried
PART = 0.01  # smallest entry of a null vector that counts, as a fraction of its largest entry
SHOWN = 6  # coefficients named at most


def newton_direction(H: Array, g: Array, name: str, x: Array) -> Array:
    """Return −H⁻¹ g (n,) for H (n, n) at x; raise Singular, which names the method, for a singular H.

    H counts as singular where the diagonal of its Cholesky factor says that its condition is that of rounding.
    """
    if not is_regular(H):
        raise SingularHessian(name, explain_singular(H), x)
    return -np.linalg.solve(H, g)


def is_regular(H: Array) -> bool:
    """Return whether H (n, n) is positive definite and better conditioned than rounding."""
    try:
        # in every round, and so by a factorisation, which takes much less time than eigenvalues
        diagonal = np.diagonal(np.linalg.cholesky(H))
    except np.linalg.LinAlgError:
        return False
    return bool(diagonal.min() ** 2 > len(H) * np.finfo(H.dtype).eps * diagonal.max() ** 2)


def explain_singular(H: Array) -> str:
    """Explain why the clients' mean Hessian H (n, n) is singular, and what helps."""
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
    scaled = H * scale * scale[:, None]
    values, vectors = np.linalg.eigh(scaled)
    if values[0] < -np.sqrt(np.finfo(H.dtype).eps):
        return (
            f"{mean} is not positive definite: f is not convex at this model, so lower a regularisation that is not "
            "convex, or begin elsewhere with start; where a column separates the classes, f is flat but for rounding: "
            "leave it out"
        )
    if is_regular(scaled):
        low = diagonal.argmin()
        high = diagonal.argmax()
        return (
            f"the diagonal of {mean} goes from {diagonal[low]:.1e} (coefficient {low}, counted from 0) to "
            f"{diagonal[high]:.1e} (coefficient {high}): bring columns of different size to one, as data.standardise = "
            '"pooled" does; where a column is that of a category without events, or separates classes, leave it out'
        )
    return explain_dependence(vectors[:, 0])


def explain_dependence(v: Array) -> str:
    """Explain which coefficients depend on each other by v (n,), the eigenvector of the least eigenvalue."""
    mean = "the mean of the clients' Hessians"
    sizes = np.abs(v)
    large = np.flatnonzero(sizes > PART * sizes.max())
    if len(large) > SHOWN:
        return (
            f"{mean} is not positive definite: there are fewer samples than coefficients, or many columns depend on "
            "each other, so set the problem's regularisation above 0"
        )
    return (
        f"the coefficients {', '.join(map(str, large))} (counted from 0) depend on each other in {mean}: leave out a "
        "column that is given twice or follows from the others, take bias = false where they are biases, and set the "
        "problem's regularisation above 0 where it is softmax without, or there are fewer samples than coefficients"
    )


def backtrack(f: Callable[[float], float], start: float, slope: float, c: float, shrink: float) -> float:
    """Return the first s of 1, shrink, shrink² … with f(s) <= f(0) + c s ``slope``, to rounding; ``start`` is f(0)."""
    step = 1.0
    # at the optimum f cannot fall by more than its rounding, and the search would go down to the smallest step
    slack = ROUNDING * np.spacing(abs(start))
    while step > SMALLEST_STEP and f(step) > start + c * step * slope + slack:
        step *= shrink
    return step
