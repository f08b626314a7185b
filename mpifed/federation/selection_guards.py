"""Checks of users' selections and distributions: the clients of each round, and the properties of devices."""

from typing import Any

import numpy as np

from mpifed.core.arrays import is_numpy_array
from mpifed.core.guards import Guard, InvalidReturn, describe_value, is_integer, require_array, wrap_with_guard
from mpifed.core.typing import Array
from mpifed.federation.ids import parse_clients

EACH = require_array(
    lambda distribution, rng, m: (m,),
    ": it must return an array {shape}, a number for each client",
    lambda result: is_numpy_array(result) and result.dtype.kind != "b",
)


def draw(distribution: Any, result: Any, rng: np.random.Generator, m: int) -> Any:
    """Return a property of m clients; raise InvalidReturn unless it is finite and not negative."""
    EACH(distribution, result, rng, m)
    good = np.isfinite(result) & (result >= 0)
    if not good.all():
        raise InvalidReturn(
            f"returns {result[~good][0]:g} for client {good.argmin()}: it must be finite and not negative"
        )
    return result


def selector(selection: Any, result: Any, seed: int, m: int, rounds: int) -> Any:
    """Return the selector with a check of its clients, which it may name in any order or by a mask."""
    size = result.size
    if not is_integer(size, 1) or size > m:
        raise InvalidReturn(f"returns a selector of size {size}: it must be a whole number from 1 to the {m} clients")
    if result.weights is not None and np.shape(result.weights) != (m,):
        raise InvalidReturn(
            f"returns a selector whose weights are {describe_value(result.weights)}: they have shape ({m},)"
        )
    q = result.probability
    if q is not None and not 0 < q <= 1:
        raise InvalidReturn(f"returns a selector of probability {q}: it must be above 0 and at most 1")
    scored = result.batch_size is not None

    def select(round: int, ids: Any, again: int) -> Array | None:
        if ids is None:
            clients = None
            count = m
        else:
            try:
                clients = np.sort(parse_clients(ids, m))
            except InvalidReturn as wrong:
                raise InvalidReturn(f"returns clients that cannot be, in round {round}: the array {wrong}") from None
            count = len(clients)
        if result.varies:
            return clients
        if not count:
            raise InvalidReturn(f"selects nobody in round {round}: it must select {size} clients")
        if not scored and result.learn is None and count != size:
            raise InvalidReturn(f"selects {count} clients in round {round}, and its selector says size = {size}")
        return clients

    among = result.among
    if among is not None:
        among = wrap_with_guard(among, require_present if result.varies else require_some_present, name="among")
    learn = result.learn
    if learn is not None:
        learn_unchecked = learn
        learn = lambda replies: selector(selection, learn_unchecked(replies), seed, m, rounds)  # noqa: E731
    return result._replace(select=wrap_with_guard(result.select, select), learn=learn, among=among)


def require_present(seed: int, ids: Any, size: int, round: int, again: int, present: Array) -> Array:
    """Return selected clients, rising; raise InvalidReturn unless all of them are present."""
    clients = np.sort(parse_clients(ids, present.max(initial=0) + 1))
    if not np.isin(clients, present).all():
        raise InvalidReturn(f"selects clients that are away, or nobody, in round {round}: it must name some present")
    return clients


def require_some_present(seed: int, ids: Any, size: int, round: int, again: int, present: Array) -> Array:
    """Return selected clients, rising; raise InvalidReturn unless they are some of those present."""
    clients = require_present(seed, ids, size, round, again, present)
    if not len(clients):
        raise InvalidReturn(f"selects clients that are away, or nobody, in round {round}: it must name some present")
    return clients


GUARDS: dict[str, dict[str, Guard]] = {"selections": {"selector": selector}, "distributions": {"draw": draw}}
