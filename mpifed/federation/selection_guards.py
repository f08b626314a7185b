"""Selections and distributions of a user's own: the clients of every round, and the properties of their devices."""

from typing import Any

import numpy as np

from mpifed.core.arrays import is_numeric
from mpifed.core.guards import Guard, Wrong, array, checked, is_whole, shown
from mpifed.core.typing import Array
from mpifed.federation.ids import numbers

EACH = array(
    lambda distribution, rng, m: (m,),
    ": it must return an array {shape}, a number for each client",
    lambda result: is_numeric(result) and result.dtype.kind != "b",
)


def draw(distribution: Any, result: Any, rng: np.random.Generator, m: int) -> Any:
    """The property of m clients."""
    EACH(distribution, result, rng, m)
    good = np.isfinite(result) & (result >= 0)
    if not good.all():
        raise Wrong(f"returns {result[~good][0]:g} for client {good.argmin()}: it must be finite and not negative")
    return result


def selector(selection: Any, result: Any, seed: int, m: int, rounds: int) -> Any:
    """The selector with a check of the clients it selects, which it may name in any order or by a mask."""
    right = "it must return a mpifed.Selector(size, select)"
    if not hasattr(result, "select") or not callable(result.select):
        raise Wrong(f"returns {shown(result)}: {right}")
    size = result.size
    if not is_whole(size, 1) or size > m:
        raise Wrong(f"returns a selector of size {size}: it must be a whole number from 1 to the {m} clients")
    if result.weights is not None and np.shape(result.weights) != (m,):
        raise Wrong(f"returns a selector whose weights are {shown(result.weights)}: they have shape ({m},)")
    scored = result.batch_size is not None

    def selected(round: int, ids: Any, again: int) -> Array | None:
        if ids is None:
            found = None
            count = m
        else:
            try:
                found = np.sort(numbers(ids, m))
            except Wrong as wrong:
                raise Wrong(f"returns clients that cannot be, in round {round}: the array {wrong}") from None
            count = len(found)
        if not count:
            raise Wrong(f"selects nobody in round {round}: it must select {size} clients")
        if not scored and result.learn is None and count != size:
            raise Wrong(f"selects {count} clients in round {round}, and its selector says size = {size}")
        return found

    learn = result.learn
    if learn is not None:
        again = learn
        learn = lambda replies: selector(selection, again(replies), seed, m, rounds)  # noqa: E731 - the same, checked
    return result._replace(select=checked(result.select, selected), learn=learn)


GUARDS: dict[str, dict[str, Guard]] = {"selections": {"selector": selector}, "distributions": {"draw": draw}}
