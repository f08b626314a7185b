"""What the server requests of clients, and what comes back."""

from __future__ import annotations

import math
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory
from mpifed.core.typing import Array


class Request(msgspec.Struct, eq=False):
    """What the server requests of the clients ``to`` (None: all)."""

    method: str  # a client method of the algorithm, or EVALUATE, ARRIVE, SAVE or REPLACE, which hosts have themselves
    args: tuple[Any, ...] = ()  # the same for all clients: numbers and arrays
    to: Array | None = None  # client numbers, rising
    each: Array | None = None  # row i for client to[i] alone
    reduce: str = "rows"  # rows: a row a client; sum, plain sum, MASKED, max: over the clients
    last: str | None = None  # reduce this field of the state of all clients instead of the replies
    then: Callable[..., Array] | None = None  # the server's function of the rows, by column: (m, w), args -> (w,)
    key: tuple[int, int] = (0, 0)  # round and call, for the random streams
    evaluation: bool = False  # for the record: charged neither to communication nor to local computation
    peers: Array | None = None  # the clients that agreed on masks, where these are not those called
    exact: bool = False  # replies are as they are, also under [compress]
    bits: int | None = None  # of one client's reply, where that is a compressed message
    rest: bool = False  # replies and new state rest with the clients until they arrive: args is a table of starts
    weights: Array | None = None  # (c,) factors of the replies of the clients ``to``, on their way to a sum
    down: tuple[int, int] | None = None  # bits of the arrays in args, and who receives them, where compressed
    near: tuple[str, tuple[str, ...]] | None = None  # what nodes of a graph get of their neighbours, of which fields


EVALUATE, SAVE = "evaluate", "save"
ARRIVE = "arrival"  # what rests with the clients ``to`` becomes their state and reply
REPLACE = "replace"  # the method of hosts that puts what nodes get of their neighbours into the fields it comes from
MASKED = "masked sum"  # of integers modulo 2^64, in any order
SCORES = ("score", "score_loss", "score_move")  # client methods that reply with one number, as it is
ANY_ORDER = ("plain sum", MASKED)


class HostReport(NamedTuple):
    """What hosts report of a request beside their replies: of one host, or of several together.

    Of several the first SUMMED numbers are added up, and of the others the largest counts. Between ranks it travels as
    float64 numbers in this order.
    """

    computing: float = 0.0  # seconds of client methods, of all hosts
    failed: float = 0.0  # hosts on which a client method raised an error
    slowest: float = 0.0  # seconds of client methods on the slowest host
    evaluating: float = 0.0  # seconds of evaluation on the slowest host
    signal: float = 0.0  # the number of the signal that tells a rank to end, or 0
    fault: float = 0.0  # m - the first client whose numbers are not finite, or 0


SUMMED, NUMBERS = 2, len(HostReport._fields)


def together(report: Array, other: Array) -> None:
    """Add to the report (NUMBERS,) of some hosts that of others."""
    report[:SUMMED] += other[:SUMMED]
    np.maximum(report[SUMMED:], other[SUMMED:], out=report[SUMMED:])


class Reply(msgspec.Struct, eq=False):
    """``rows`` (k, N): one for each client, for each subtree (sum), or a single one (plain sum, max)."""

    rows: Array
    layout: tuple[tuple[int, ...], ...] | None  # shapes of what a client replied; None where no client was called


class Collected:
    """The replies of ``count`` clients as rows in client order; with ``lend`` they may be a method's own array."""

    def __init__(self, count: int, dtype: Any, lend: bool) -> None:
        self.rows, self.lend = np.zeros((count, 0), dtype), lend
        self.layout: tuple[tuple[int, ...], ...] | None = None if count == 0 else ()

    def put(self, rows: slice | Array, parts: tuple[Array, ...]) -> None:
        """The replies of one block, which belong into ``rows``."""
        count, dtype = len(self.rows), self.rows.dtype
        if not self.layout:
            self.layout = tuple([part.shape[1:] for part in parts])
            alone = len(parts) == 1 and len(parts[0]) == count and isinstance(rows, slice)
            if self.lend and alone and parts[0].dtype == dtype:
                self.rows = parts[0].reshape(count, -1)
                return
            columns = sum(width(shape) for shape in self.layout)
            check_memory(count * columns * dtype.itemsize, f"the replies of {count:,} clients")
            self.rows = np.empty((count, columns), dtype)
        column = 0
        for part in parts:
            flat = part.reshape(len(part), -1)
            self.rows[rows, column : column + flat.shape[1]] = flat
            column += flat.shape[1]


def protected(value: Any) -> Any:
    """An array that can only be read, or a number as it is: what clients receive."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def refuse_writing(error: ValueError, method: str) -> None:
    """UserError where ``error`` says that a client method writes into an array that it received."""
    if "read-only" in str(error):
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise UserError(
            f"the client method {method} writes into an array that it received, which other clients read too: "
            f"change a copy of it, as in x = x.copy() ({place.filename}, line {place.lineno})"
        ) from error


def weighted(reply: Any, request: Request, ids: Array | None, rows: slice | Array) -> tuple[Array, ...]:
    """The arrays (c, …) that clients reply with, those at ``rows`` of ``ids`` (None: all), each times its weight."""
    parts = reply if isinstance(reply, tuple) else (reply,)
    if request.weights is None or ids is None or request.to is None:
        return parts
    own = request.weights[request.to.searchsorted(ids[rows])]
    return tuple([part * own.reshape(-1, *[1] * (part.ndim - 1)).astype(part.dtype) for part in parts])


def width(shape: tuple[int, ...]) -> int:
    """The number of entries of an array of this shape."""
    return math.prod(shape)


def unpack(reply: Reply) -> Any:
    """The arrays that a client method replied with, in the place of each the rows or the reduction of all."""
    rows, layout = reply.rows, reply.layout
    front = rows.shape[:-1]
    if not layout:
        return None
    if len(layout) == 1:
        return rows.reshape(front + layout[0])
    parts, column = [], 0
    for shape in layout:
        size = width(shape)
        parts.append(rows[..., column : column + size].reshape(front + shape))
        column += size
    return tuple(parts)
