"""Which clients a call names: numbers in any order, or a mask; replies come back in the order that was asked for."""

from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.guards import Wrong, shown
from mpifed.core.typing import Array
from mpifed.federation.request import Request


def numbers(given: Any, m: int) -> Array:
    """The clients that ``given`` names, in its order: whole numbers 0 … m − 1, each once, or a mask (m,)."""
    right = f"clients are whole numbers from 0 to {m - 1}, or a mask of {m} entries"
    ids = array(given)
    if ids is None:
        raise Wrong(f"is {shown(given)}: {right}")
    if ids.dtype == bool:
        if ids.shape != (m,):
            raise Wrong(f"is {shown(ids)}: a mask has one entry for each of the {m} clients")
        return np.flatnonzero(ids)
    if ids.ndim != 1 or (ids.size and ids.dtype.kind not in "iu"):
        raise Wrong(f"is {shown(ids)}: {right}")
    wrong = ids[(ids < 0) | (ids >= m)]
    if wrong.size:
        raise Wrong(f"names client {wrong[0]}: clients are numbered from 0 to {m - 1}")
    once, counts = np.unique(ids, return_counts=True)
    if len(once) < len(ids):
        raise Wrong(f"names client {once[counts.argmax()]} twice")
    return ids.astype(np.int64)


def array(given: Any) -> Array | None:
    """An array of what has a length and an order; None for what no array can be made of, and where some is masked."""
    try:
        found = np.asarray(given)
    except ValueError:  # rows of unequal lengths
        return None
    return found if found.ndim and not isinstance(given, np.ma.MaskedArray) else None


def numbers_or_refused(given: Any, m: int, what: str) -> Array:
    """The same; UserError with the words ``what`` for the argument that it is."""
    try:
        return numbers(given, m)
    except Wrong as wrong:
        raise UserError(f"{what} {wrong}") from None


def rising(ids: Any, m: int) -> bool:
    """Whether ``ids`` are the numbers of clients as requests have them: each once, in rising order."""
    if not isinstance(ids, np.ndarray) or ids.ndim != 1 or ids.dtype != np.int64:
        return False
    return not len(ids) or (ids[0] >= 0 and ids[-1] < m and bool((ids[1:] > ids[:-1]).all()))


def arranged(request: Request, m: int) -> Array | None:
    """Put the clients of a request, and the rows of ``each`` with them, into rising order.

    Returns where the rows of the replies belong: (c,), or None where they are in order.
    """
    asked = request.to
    if asked is None or rising(asked, m):
        return None
    asked = numbers_or_refused(asked, m, f"to= in a call of {request.method}")
    order = asked.argsort()
    request.to = asked[order]
    if request.each is not None:
        with_rows(request, len(asked))
        request.each = request.each[order]
    return order.argsort()


def with_rows(request: Request, count: int) -> None:
    """Make ``each`` of a request an array; UserError where it has no row for each of the ``count`` clients called."""
    given = request.each
    request.each = array(given)
    if request.each is None or len(request.each) != count or request.each.dtype.kind not in "fiub":
        raise UserError(
            f"each= in a call of {request.method} is {shown(given)}: it must be an array with a row for each of "
            f"the {count} clients that are called, of real numbers"
        )


def in_order(replies: Any, places: Array) -> Any:
    """Rows of replies as they were asked for: row k is that at ``places[k]`` of the clients in rising order."""
    if isinstance(replies, tuple):
        return tuple([in_order(part, places) for part in replies])
    if isinstance(replies, dict):
        return {name: in_order(part, places) for name, part in replies.items()}
    return None if replies is None else replies[places]


def there(given: Any, weights: Array | None, arrived: Array | None, m: int) -> tuple[Array, Array | None, Array]:
    """The clients whose uploads are asked for, rising, their weights, and where the rows of the replies belong.

    UserError where they are not those that ``arrived`` (None: all).
    """
    asked = numbers_or_refused(given, m, "of=")
    order = asked.argsort()
    of = asked[order]
    if not np.array_equal(of, np.arange(m) if arrived is None else arrived):
        count = m if arrived is None else len(arrived)
        raise UserError(
            f"of= names {len(of)} clients, and it must name the {count} whose uploads fed.arrivals said are there: "
            "uploads are asked for once, of all of them"
        )
    return of, None if weights is None else weights[order], order.argsort()
