"""Step sizes, optimisers and solvers of a user's own: the shapes of what they return."""

from typing import Any

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.guards import Guard, Wrong, array, returns, shown
from mpifed.core.typing import Array


def gamma(step: Any, result: Any, k: int, k0: int, d: Array) -> Any:
    """The step size of an iteration."""
    numbers = to_numpy(result)
    if np.shape(result) not in ((), np.shape(d)) or numbers.dtype.kind not in "fiu":
        raise Wrong(f"returns {shown(result)}: γ is one number, or has shape {np.shape(d)}, one for each client")
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        raise Wrong(f"returns γ = {np.min(numbers):g} in iteration {k}: it must be finite and not negative")
    return result


def direction(right: str) -> Guard:
    """A form: a direction of the shape of the gradients, and the new memory."""

    def guard(optimizer: Any, result: Any, memory: Any, g: Array, *args: Any) -> Any:
        if not isinstance(result, tuple) or hasattr(result, "_fields") or len(result) != 2:
            raise Wrong(f"returns {shown(result)}: it must return {right} and the new memory")
        if np.shape(result[0]) != np.shape(g):
            raise Wrong(f"returns d as {shown(result[0])}: it has shape {np.shape(g)}, as the gradients")
        return result

    return guard


GUARDS: dict[str, dict[str, Guard]] = {
    "steps": {"gamma": gamma},
    "optimizers": {"direction": direction("d (c, n)")},
    "server_optimizers": {
        "rate": returns(
            lambda rate, *args: np.shape(rate) == () and bool(np.isfinite(rate)), ": η is one finite number"
        ),
        "direction": direction("d (n,)"),
    },
    "solvers": {
        "minimise": array(lambda solver, f, *args: (len(f), f.n), ": it must be an array (c, n), here {shape}"),
    },
}
