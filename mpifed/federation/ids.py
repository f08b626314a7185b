"""Client numbers of calls, in any order or as a mask, and the order of the replies."""

from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.guards import InvalidReturn, describe_value
from mpifed.core.typing import Array
from mpifed.federation.request import Request


def parse_clients(given: Any, m: int) -> Array:
    """Return client numbers in the order of ``given``: whole numbers 0 … m − 1, each once, or a mask (m,)."""
    rule = f"clients are whole numbers from 0 to {m - 1}, or a mask of {m} entries"
    ids = as_array(given)
    if ids is None:
        raise InvalidReturn(f"is {describe_value(given)}: {rule}")
    if ids.dtype == bool:
        if ids.shape != (m,):
            raise InvalidReturn(f"is {describe_value(ids)}: a mask has one entry for each of the {m} clients")
        return np.flatnonzero(ids)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise InvalidReturn(f"is {describe_value(ids)}: {rule}")
    wrong = ids[(ids < 0) | (ids >= m)]
    if wrong.size:
        raise InvalidReturn(f"names client {wrong[0]}: clients are numbered from 0 to {m - 1}")
    distinct, counts = np.unique(ids, return_counts=True)
    if len(distinct) < len(ids):
        raise InvalidReturn(f"names client {distinct[counts.argmax()]} twice")
    return ids.astype(np.int64)


def as_array(given: Any) -> Array | None:
    """Return ``given`` as an array, or None if it has no length, unequal rows or masked entries."""
    try:
        values = np.asarray(given)
    except ValueError:  # rows have unequal lengths
        return None
    return values if values.ndim and not isinstance(given, np.ma.MaskedArray) else None


def parse_client_argument(given: Any, m: int, what: str) -> Array:
    """Return ``numbers(given, m)``; raise UserError that begins with ``what``, the name of the argument."""
    try:
        return parse_clients(given, m)
    except InvalidReturn as wrong:
        raise UserError(f"{what} {wrong}") from None


def is_rising(ids: Any, m: int) -> bool:
    """Return whether ``ids`` is an array of client numbers as requests have it: each once, in rising order."""
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype != np.int64:
        return False
    return not len(ids) or (ids[0] >= 0 and ids[-1] < m and bool((ids[1:] > ids[:-1]).all()))


def sort_clients(request: Request, m: int) -> Array | None:
    """Sort the clients of a request, and the rows of ``each`` with them.

    Return the order (c,) that turns sorted replies into those asked for, or None if they are in order.
    """
    clients = request.to
    if clients is None or is_rising(clients, m):
        return None
    clients = parse_client_argument(clients, m, f"to= in a call of {request.method}")
    order = clients.argsort()
    request.to = clients[order]
    if request.each is not None:
        require_rows(request, len(clients))
        request.each = request.each[order]
    return order.argsort()


def require_rows(request: Request, count: int) -> None:
    """Make ``each`` of a request an array; raise UserError unless it has a row for each of ``count`` clients."""
    rows = request.each
    request.each = as_array(rows)
    if request.each is None or len(request.each) != count or request.each.dtype.kind not in "fiub":
        raise UserError(
            f"each= in a call of {request.method} is {describe_value(rows)}: it must be an array with a row for each "
            "of "
            f"the {count} clients that are called, of real numbers"
        )


def restore_order(replies: Any, places: Array) -> Any:
    """Reorder rows of replies: row k becomes row ``places[k]`` of the replies of sorted clients."""
    if isinstance(replies, tuple):
        return tuple([restore_order(part, places) for part in replies])
    if isinstance(replies, dict):
        return {name: restore_order(part, places) for name, part in replies.items()}
    return None if replies is None else replies[places]


def match_arrived(
    given: Any, weights: Array | None, arrived: Array | None, m: int
) -> tuple[Array, Array | None, Array]:
    """Return (clients, weights, order) of the uploads asked for, with sorted clients, like ``sort_clients``.

    Raise UserError unless they are the clients that ``arrived`` (None: all).
    """
    clients = parse_client_argument(given, m, "of=")
    order = clients.argsort()
    of = clients[order]
    if not np.array_equal(of, np.arange(m) if arrived is None else arrived):
        count = m if arrived is None else len(arrived)
        raise UserError(
            f"of= names {len(of)} clients, and it must name the {count} whose uploads fed.arrivals said are there: "
            "uploads are asked for once, of all of them"
        )
    return of, None if weights is None else weights[order], order.argsort()
