"""Step sizes, optimisers and solvers of a user's own: the shapes of what they return."""

from typing import Any

import numpy as np

from mpifed.core.arrays import is_real, to_numpy
from mpifed.core.guards import Guard, Wrong, shown
from mpifed.core.typing import Array


def gamma(step: Any, result: Any, k: int, k0: int, d: Array) -> Any:
    """The step size of an iteration."""
    numbers = to_numpy(result)
    if np.shape(result) not in ((), np.shape(d)) or numbers.dtype.kind not in "fiu":
        raise Wrong(f"returns {shown(result)}: γ is one number, or has shape {np.shape(d)}, one for each client")
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        raise Wrong(f"returns γ = {np.min(numbers):g} in iteration {k}: it must be finite and not negative")
    return result


def pair(result: Any, like: Array, right: str) -> Any:
    """A direction and the new memory."""
    if not isinstance(result, tuple) or hasattr(result, "_fields") or len(result) != 2:
        raise Wrong(f"returns {shown(result)}: it must return {right}")
    if np.shape(result[0]) != np.shape(like):
        raise Wrong(f"returns d as {shown(result[0])}: it has shape {np.shape(like)}, as the gradients")
    return result


def local_direction(optimizer: Any, result: Any, memory: Any, g: Array, w: Array) -> Any:
    """d of every client and the new memory."""
    return pair(result, g, "d (c, n) and the new memory")


def server_direction(optimizer: Any, result: Any, memory: Any, delta: Array) -> Any:
    """d of the server and the new memory."""
    return pair(result, delta, "d (n,) and the new memory")


def rate(optimizer: Any, result: Any, delta: Array, spread: float) -> Any:
    """The server's step size."""
    if np.shape(result) != () or not np.isfinite(result):
        raise Wrong(f"returns {shown(result)}: η is one finite number")
    return result


def minimise(solver: Any, result: Any, f: Any, Y: Array, *args: Any, **named: Any) -> Any:
    """Approximate minimisers."""
    if not is_real(result) or result.shape != (len(f), f.n):
        raise Wrong(f"returns {shown(result)}: it must be an array (c, n), here ({len(f)}, {f.n})")
    return result


GUARDS: dict[str, dict[str, Guard]] = {
    "steps": {"gamma": gamma},
    "optimizers": {"direction": local_direction},
    "server_optimizers": {"rate": rate, "direction": server_direction},
    "solvers": {"minimise": minimise},
}
