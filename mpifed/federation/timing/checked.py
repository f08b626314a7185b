"""A distribution of a user's own: the property that it draws for every client."""

from typing import Any

import numpy as np

from mpifed.core.guards import Guard, Wrong, shown


def draw(distribution: Any, result: Any, rng: np.random.Generator, m: int) -> Any:
    """The property of m clients."""
    if not isinstance(result, np.ndarray) or result.shape != (m,) or result.dtype.kind not in "fiu":
        raise Wrong(f"returns {shown(result)}: it must return an array ({m},), a number for each client")
    if not np.isfinite(result).all() or (result < 0).any():
        raise Wrong(f"returns {result.min():g} for client {result.argmin()}: it must be finite and not negative")
    return result


GUARDS: dict[str, dict[str, Guard]] = {"distributions": {"draw": draw}}
