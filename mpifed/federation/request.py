"""What the server requests of clients, and what comes back."""

import math
import traceback
from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec
import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.guards import shown
from mpifed.core.memory import SMALL, check_memory
from mpifed.core.typing import Array

CALL = ("call",)
EVALUATE = ("evaluate",)
SAVE = ("save",)  # verbs: what hosts do with a request
SERVICE = ("services",)  # what answers is beside a host's clients: a service of the name of the method
REST, ARRIVE = ("rest",), ("arrive",)
FOR_THE_RECORD = (EVALUATE, SAVE, SERVICE)  # charged neither to communication nor to local computation
WHOLE = "evaluate"
MAXIMA = "maxima"  # methods of the verb EVALUATE that hosts have themselves: all that is recorded
MASKED = "masked sum"  # a reduction: of integers modulo 2^64, in any order
ANY_ORDER = ("plain sum", MASKED)
INTEGERS = (int, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32)
CODES: dict[Any, str] = dict.fromkeys((float, np.float64, np.float32, np.float16), "d") | dict.fromkeys(INTEGERS, "q")
CODES |= {bool: "?", np.bool_: "?", type(None): ""}  # types of arguments but arrays, and how ``struct`` packs them
LARGE = 2**63  # whole numbers from here on do not fit into 64 bits
SCORES = ("score", "score_loss", "score_move")  # client methods that reply with one number, as it is


class Request(msgspec.Struct, eq=False):
    """What the server requests of the clients ``to`` (None: all)."""

    method: str  # a client method of the algorithm, or one that hosts have themselves
    args: tuple[Any, ...] = ()  # the same for all clients: numbers and arrays
    to: Array | None = None  # client numbers, rising
    each: Array | None = None  # row i for client to[i] alone
    reduce: str = "rows"  # rows: a row a client; sum, plain sum, MASKED, max: over the clients
    last: str | None = None  # reduce this field of the state of all clients instead of the replies
    then: Callable[..., Array] | None = None  # the server's function of the rows, by column: (m, w), args -> (w,)
    key: tuple[int, int] = (0, 0)  # round and call, for the random streams
    verb: tuple[str, ...] = CALL  # what hosts do, and the fields of the clients' state that it is about
    stages: dict[str, Array | None] = {}  # the stages that its messages pass, and what each sends along

    def count(self, m: int) -> int:
        """How many of m clients it calls."""
        return m if self.to is None else len(self.to)


class Layout(NamedTuple):
    """The shapes of the arrays that a client replied with, and their names where the reply is a dict."""

    shapes: tuple[tuple[int, ...], ...] = ()
    names: tuple[str, ...] = ()


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


SUMMED = 2
NUMBERS = len(HostReport._fields)


def add_report(report: Array, other: Array) -> None:
    """Add to the report (NUMBERS,) of some hosts that of others."""
    report[:SUMMED] += other[:SUMMED]
    np.maximum(report[SUMMED:], other[SUMMED:], out=report[SUMMED:])


class Reply(msgspec.Struct, eq=False):
    """``rows`` (k, N): one for each client, for each subtree (sum), or a single one (plain sum, max)."""

    rows: Array
    layout: Layout | None  # None where no client was called


class Collected:
    """The replies of ``count`` clients as rows in client order; with ``lend`` they may be a method's own array."""

    def __init__(self, count: int, dtype: Any, lend: bool) -> None:
        self.rows, self.lend = np.zeros((count, 0), dtype), lend
        self.layout: Layout | None = None if count == 0 else Layout()

    def put(self, rows: slice | Array, parts: tuple[Array, ...], names: tuple[str, ...] = ()) -> None:
        """The replies of one block, which belong into ``rows``."""
        count, dtype = len(self.rows), self.rows.dtype
        if self.layout is None or not self.layout.shapes:
            self.layout = Layout(tuple([part.shape[1:] for part in parts]), names)
            alone = len(parts) == 1 and len(parts[0]) == count and isinstance(rows, slice)
            # the method has made this array for us alone: a copy of all replies would take as much time as small
            # methods do
            if self.lend and alone and parts[0].dtype == dtype:
                self.rows = parts[0].reshape(count, -1)
                return
            columns = sum(width(shape) for shape in self.layout.shapes)
            # asked for before it is allocated: an overcommitting kernel would end the process later, without a word
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
    """Whether a value is an array of real numbers: what travels, and is charged."""
    return isinstance(value, np.ndarray) and value.dtype.kind == "f"


def protected(value: Any) -> Any:
    """An array that can only be read, or a number as it is: what clients receive."""
    if isinstance(value, np.ndarray):
        value = value.view()
        value.flags.writeable = False
    return value


def refuse_arguments(method: str, args: tuple[Any, ...]) -> None:
    """UserError where an argument is none that travels: an array, a number, or None."""
    for value in args:
        numbers = isinstance(value, np.ndarray) and value.dtype.kind in "fiub"
        large = isinstance(value, int) and abs(value) >= LARGE
        if large or not (numbers or type(value) in CODES):
            raise UserError(
                f"a call of {method} has {shown(value)} as an argument: what travels to clients are arrays of real "
                "numbers, single numbers of at most 64 bits and None"
            )


def refuse_writing(error: ValueError, method: str) -> None:
    """UserError where ``error`` says that a client method writes into an array that it received."""
    if "read-only" in str(error):
        place = traceback.extract_tb(error.__traceback__)[-1]
        raise UserError(
            f"the client method {method} writes into an array that it received, which other clients read too: "
            f"change a copy of it, as in x = x.copy() ({place.filename}, line {place.lineno})"
        ) from error


def width(shape: tuple[int, ...]) -> int:
    """The number of entries of an array of this shape."""
    return math.prod(shape)


def parts_of(reply: Any) -> tuple[tuple[Array, ...], tuple[str, ...]]:
    """The arrays of a reply, and their names where it is a dict."""
    if isinstance(reply, dict):
        return tuple(reply.values()), tuple(reply)
    return (reply if isinstance(reply, tuple) else (reply,)), ()


def unpack(reply: Reply) -> Any:
    """What a client method replied with, in the place of each array the rows or the reduction of all."""
    rows, layout = reply.rows, reply.layout
    if layout is None or not layout.shapes:
        return None
    front = rows.shape[:-1]
    if len(layout.shapes) == 1 and not layout.names:
        return rows.reshape(front + layout.shapes[0])
    parts = []
    column = 0
    for shape in layout.shapes:
        size = width(shape)
        parts.append(rows[..., column : column + size].reshape(front + shape))
        column += size
    return dict(zip(layout.names, parts, strict=True)) if layout.names else tuple(parts)
