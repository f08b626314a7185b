"""Checks of what a user's own step sizes, optimisers and solvers return."""

from typing import Any

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.guards import Guard, InvalidReturn, describe_value, require, require_array
from mpifed.core.typing import Array


def check_gamma(step: Any, result: Any, k: int, k0: int, d: Array) -> Any:
    """Return the step size of an iteration; raise Wrong unless it is finite, not negative and of d's shape."""
    numbers = to_numpy(result)
    if np.shape(result) not in ((), np.shape(d)) or numbers.dtype.kind not in "fiu":
        raise InvalidReturn(
            f"returns {describe_value(result)}: γ is one number, or has shape {np.shape(d)}, one for each client"
        )
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        raise InvalidReturn(f"returns γ = {np.min(numbers):g} in iteration {k}: it must be finite and not negative")
    return result


def check_direction(expected: str) -> Guard:
    """Return a check of (d, memory): d must have the shape of the gradients."""

    def guard(optimizer: Any, result: Any, memory: Any, g: Array, *args: Any) -> Any:
        if not isinstance(result, tuple) or hasattr(result, "_fields") or len(result) != 2:
            raise InvalidReturn(f"returns {describe_value(result)}: it must return {expected} and the new memory")
        if np.shape(result[0]) != np.shape(g):
            raise InvalidReturn(
                f"returns d as {describe_value(result[0])}: it has shape {np.shape(g)}, as the gradients"
            )
        return result

    return guard


GUARDS: dict[str, dict[str, Guard]] = {
    "steps": {"gamma": check_gamma},
    "optimizers": {"direction": check_direction("d (c, n)")},
    "server_optimizers": {
        "rate": require(
            lambda rate, *args: np.shape(rate) == () and bool(np.isfinite(rate)), ": η is one finite number"
        ),
        "direction": check_direction("d (n,)"),
    },
    "solvers": {
        "minimise": require_array(lambda solver, f, *args: (len(f), f.n), ": it must be an array (c, n), here {shape}"),
    },
}
