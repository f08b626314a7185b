"""Requests of the server to clients, and their replies."""

import math
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.guards import describe_value
from mpifed.core.memory import SMALL, check_memory
from mpifed.core.typing import Array

CALL = ("call",)
EVALUATE = ("evaluate",)
SAVE = ("save",)  # types of requests: what hosts do with them
SERVICE = ("services",)  # answered by the host itself, by a service with the name of the method
REST, ARRIVE = ("rest",), ("arrive",)
RESTING = "resting"  # name in checkpoints of results that clients have computed ahead …
FIELD = "field "  # … and after it, of fields of their state
FOR_THE_RECORD = (EVALUATE, SAVE, SERVICE)  # charged neither to communication nor to local computation
EVALUATE_SUMS = "evaluate"
EVALUATE_MAXIMA = "maxima"  # the evaluations that hosts have themselves: sums and maxima that are recorded
MASKED = "masked sum"  # a reduction: a sum of integers modulo 2^64, in any order
ANY_ORDER = ("plain sum", MASKED)
INTEGERS = (int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)
CODES: dict[Any, str] = dict.fromkeys((float, np.float64, np.float32, np.float16), "d") | dict.fromkeys(INTEGERS, "q")
CODES |= {bool: "?", np.bool_: "?", type(None): ""}  # types of arguments other than arrays, as ``struct`` packs them
LARGE = 2**63  # whole numbers from here on do not fit into 64 bits
SCORES = (
    "score",
    "score_loss",
    "score_dual_move",
)  # client methods that reply with one number, never changed on its way


class Request(msgspec.Struct, eq=False):
    """A request of the server to the clients ``to`` (None: all): a method to run, and how to reduce the replies.

    >>> class Counting(mpifed.extend.Transform):
    ...     def begin(self, request: mpifed.extend.Request, cost):
    ...         print(request.method, request.count(5))
    """

    method: str  # a client method of the algorithm, or one that hosts have themselves
    args: tuple[Any, ...] = ()  # the same for all clients: numbers and arrays
    to: Array | None = None  # client numbers, rising
    each: Array | None = None  # row i for client to[i] alone
    reduce: str = "rows"  # rows: a row a client; sum, plain sum, MASKED, max: over the clients
    last: str | None = None  # reduce this field of the state of all clients instead of the replies
    then: Callable[..., Array] | None = None  # the server's function of the rows, by column: (m, w), args -> (w,)
    key: tuple[int, int] = (0, 0)  # round and call, for the random streams
    request_type: tuple[str, ...] = CALL  # what hosts do, and the fields of the clients' state to exchange
    transforms: dict[str, Array | None] = {}  # name of each transform that its messages pass -> its data

    def count(self, m: int) -> int:
        """Return how many of m clients it calls."""
        return m if self.to is None else len(self.to)

    def find_model(self, shape: tuple[int, ...]) -> Array | None:
        """Return the model that clients receive: the first array of this shape; None without one."""
        return next((a for a in self.args if np.shape(a) == shape), None)


class ReplyLayout(NamedTuple):
    """Shapes of the arrays of a client's reply, and their names if the reply is a dict."""

    shapes: tuple[tuple[int, ...], ...] = ()
    names: tuple[str, ...] = ()


class HostReport(NamedTuple):
    """Times, signals and faults of a request on one host, or on several together.

    Of several hosts the first SUMMED numbers are sums, the others maxima. Between ranks it travels as float64 numbers
    in this order.
    """

    computing: float = 0.0  # seconds of client methods, of all hosts
    failed: float = 0.0  # hosts on which a client method raised an error
    slowest: float = 0.0  # seconds of client methods on the slowest host
    evaluating: float = 0.0  # seconds of evaluation on the slowest host
    signal: float = 0.0  # number of a signal to end that a rank received, or 0
    fault: float = 0.0  # m - the first client whose numbers are not finite, or 0


SUMMED = 2
NUMBERS = len(HostReport._fields)


def add_report(report: Array, other: Array) -> None:
    """Combine the report (NUMBERS,) of some hosts with that of others, in place."""
    report[:SUMMED] += other[:SUMMED]
    np.maximum(report[SUMMED:], other[SUMMED:], out=report[SUMMED:])


class Reply(msgspec.Struct, eq=False):
    """Replies of clients as ``rows`` (k, N): one for each client or subtree (sum), or one in all (plain sum, max)."""

    rows: Array
    layout: ReplyLayout | None  # None if no client was called
    count: int | None = None  # number of uploads that a sum stands for, if it is not that of the clients called


class RowBuffer:
    """A buffer of the replies of ``count`` clients, rows in client order; with ``lend`` it may be a method's array."""

    def __init__(self, count: int, dtype: Any, lend: bool) -> None:
        self.rows, self.lend = np.zeros((count, 0), dtype), lend
        self.layout: ReplyLayout | None = None if count == 0 else ReplyLayout()

    def put(self, rows: slice | Array, parts: tuple[Array, ...], names: tuple[str, ...] = ()) -> None:
        """Store the replies of one block in ``rows``."""
        count, dtype = len(self.rows), self.rows.dtype
        if self.layout is None or not self.layout.shapes:
            self.layout = ReplyLayout(tuple([part.shape[1:] for part in parts]), names)
            is_single = len(parts) == 1 and len(parts[0]) == count and isinstance(rows, slice)
            # nobody else uses the array that the method returned, and a copy would cost as much as a small method
            if self.lend and is_single and parts[0].dtype == dtype:
                self.rows = parts[0].reshape(count, -1)
                return
            columns = sum(entry_count(shape) for shape in self.layout.shapes)
            # checked before allocation: a kernel that overcommits would end the process later without a message
            size = count * columns * dtype.itemsize
            if size > SMALL:
                check_memory(size, f"the replies of {count:,} clients")
            self.rows = np.empty((count, columns), dtype)
        column = 0
        for part in parts:
            flat = part.reshape(len(part), -1)
            self.rows[rows, column : column + flat.shape[1]] = flat
            column += flat.shape[1]


def is_charged(value: Any) -> bool:
    """Return whether a value is charged to the ledger: arrays of real numbers are."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def make_read_only(value: Any) -> Any:
    """Return a read-only view of an array, or a number as it is: what clients receive."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def refuse_arguments(method: str, args: tuple[Any, ...]) -> None:
    """Raise UserError unless each argument can travel: arrays, numbers and None can."""
    for value in args:
        numbers = isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
        large = isinstance(value, int) and abs(value) >= LARGE
        if large or not (numbers or type(value) in CODES):
            raise UserError(
                f"a call of {method} has {describe_value(value)} as an argument: what travels to clients are arrays "
                "of real "
                "numbers, single numbers of at most 64 bits and None"
            )


def refuse_writing(error: ValueError, method: str) -> None:
    """Raise UserError if ``error`` says that a client method wrote into an array that it received."""
    if "read-only" in str(error):
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise UserError(
            f"the client method {method} writes into an array that it received, which other clients read too: "
            f"change a copy of it, as in x = x.copy() ({frame.filename}, line {frame.lineno})"
        ) from error


def entry_count(shape: tuple[int, ...]) -> int:
    """Return the number of entries of an array of this shape."""
    return math.prod(shape)


def split_reply(reply: Any) -> tuple[tuple[Array, ...], tuple[str, ...]]:
    """Return the arrays of a reply, and their names if it is a dict."""
    if isinstance(reply, dict):
        return tuple(reply.values()), tuple(reply)
    return (reply if isinstance(reply, tuple) else (reply,)), ()


def join_reply(reply: Any, arrays: tuple[Array, ...]) -> Any:
    """Return arrays in the structure of a reply, which ``split_reply`` has taken apart."""
    if isinstance(reply, dict):
        return dict(zip(reply, arrays, strict=True))
    return arrays if isinstance(reply, tuple) else arrays[0]


def unpack_reply(reply: Reply) -> Any:
    """Return replies in the structure that the client method returned: rows or a reduction for each of its arrays."""
    rows, layout = reply.rows, reply.layout
    if layout is None or not layout.shapes:
        return None
    front = rows.shape[:-1]
    if len(layout.shapes) == 1 and not layout.names:
        return rows.reshape(front + layout.shapes[0])
    parts = []
    column = 0
    for shape in layout.shapes:
        size = entry_count(shape)
        parts.append(rows[..., column : column + size].reshape(front + shape))
        column += size
    return dict(zip(layout.names, parts, strict=True)) if layout.names else tuple(parts)
