"""Requests as bytes: the first request of a form makes a plan on every rank, and later ones send only values."""

import math
import struct
from typing import Any

import msgspec
import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import CODES, Request, entry_count, make_read_only, refuse_arguments

BIG = 1 << 16  # larger arrays (bytes) are sent apart, without a copy
SMALL = 16  # rows of ``each`` of at most so many bytes go to all ranks, longer ones are scattered
MOST = 256  # plans stored at a time
FRONT = struct.Struct("=3q")
ARRAY = "array"

ArrayShape = tuple[int, ...]


class MessageForm(msgspec.Struct, array_like=True, frozen=True):
    """The form of a request: the parts that requests of one plan share.

    ``codes`` are the types of the values that every message sends: q, d or ? for a number, "" for None, or ARRAY; the
    first ``count`` are arguments. ``arrays`` has type and shape of each array, in order.
    """

    method: str = ""
    reduce: str = "rows"
    last: str | None = None
    request_type: tuple[str, ...] = ()
    then: str | None = None
    transforms: tuple[str, ...] = ()
    count: int = 0
    codes: tuple[str, ...] = ()
    arrays: tuple[tuple[str, ArrayShape], ...] = ()


def list_values(request: Request) -> list[Any]:
    """Return the values of a request that every message sends: numbers, arrays and None."""
    return [*request.args, request.to, *request.transforms.values(), request.each]


def request_key(request: Request) -> tuple[Any, ...]:
    """Return the key that requests of one form share; it is cheaper than ``make_form``, which can be sent."""
    values = [(a.dtype, a.shape) if isinstance(a, np.ndarray) else type(a) for a in list_values(request)]
    head = request.method, request.reduce, request.last, request.request_type, name_of_then(request)
    return *head, *request.transforms, *values


def name_of_then(request: Request) -> str | None:
    """Return the name of the server's function of rows; the functions that a stage makes all have one name."""
    return None if request.then is None else request.then.__name__


def make_form(request: Request) -> MessageForm:
    """Return the form of a request; raise UserError for an argument that cannot travel."""
    refuse_arguments(request.method, request.args)
    values = list_values(request)
    codes = [CODES.get(type(value), ARRAY) for value in values]
    arrays = [(a.dtype.str, a.shape) for a, code in zip(values, codes, strict=True) if code == ARRAY]
    head = request.method, request.reduce, request.last, request.request_type
    return MessageForm(
        *head, name_of_then(request), tuple(request.transforms), len(request.args), tuple(codes), tuple(arrays)
    )


class MessagePlan:
    """The plan of messages of one form: the positions of all values, and their buffers.

    ``message`` begins with this plan's number, 0, round, call and ``patient``, and the numbers; small arrays follow,
    each at a multiple of 64 bytes. ``fields`` are the values: those at positions ``numbers`` are packed, arrays
    ``short_views`` are in the message, ``long_views`` are sent apart, in ``room`` bytes of ``memory``, and
    long rows of ``each`` are scattered. All arrays are buffers, reused for every message, and read-only in the requests
    that are read from them.
    """

    def __init__(self, number: int, form: MessageForm) -> None:
        self.number = number
        self.form = form
        self.numbers = [k for k, code in enumerate(form.codes) if code not in ("", ARRAY)]
        self.front = struct.Struct("=4q?" + "".join(form.codes[k] for k in self.numbers))
        positions = [k for k, code in enumerate(form.codes) if code == ARRAY]
        arrays = dict(zip(positions, form.arrays, strict=True))
        self.each: tuple[str, ArrayShape] | None = None  # type and shape of a row of ``each``, where rows are scattered
        last = len(form.codes) - 1
        if last in arrays:
            dtype, (_, *shape) = arrays[last]
            # a message reaches every rank, which needs only the rows of its own clients
            if np.dtype(dtype).itemsize * math.prod(shape) > SMALL:
                self.each = dtype, tuple(shape)
                del arrays[last]
        sizes = {k: np.dtype(dtype).itemsize * entry_count(shape) for k, (dtype, shape) in arrays.items()}
        offset = align_size(self.front.size)
        self.message = np.zeros(offset + sum(align_size(size) for size in sizes.values() if size <= BIG), np.uint8)
        self.data = self.message.data
        self.fields: list[Any] = [None] * len(form.codes)
        self.short_views: list[tuple[int, Array]] = []  # (position in ``fields``, view of the message)
        self.long = {k: code for k, code in arrays.items() if sizes[k] > BIG}
        self.room = sum(align_size(sizes[k]) for k in self.long)
        self.long_views: list[Array] = []  # their views of the memory
        self.memory: Array | None = None
        for k, code in arrays.items():
            if k not in self.long:
                self.short_views.append((k, self._make_view(k, code, self.message, offset)))
                offset += align_size(sizes[k])
        self.patient = False  # whether ranks sleep while they wait for replies and for the next message
        self.follower: MessagePlan | None = None  # plan of the message that followed this one last time
        self.replies: Any = None  # layout and transport of the replies

    def use_memory(self, memory: Array) -> None:
        """Place the long arrays in ``memory``, at least ``room`` bytes."""
        # plans share one memory, which moves when a message needs more; views of the old one are then stale
        if memory is self.memory:
            return
        self.memory = memory
        self.long_views = []
        offset = 0
        for k, spec in self.long.items():
            self.long_views.append(self._make_view(k, spec, memory, offset))
            offset += align_size(self.long_views[-1].nbytes)

    def _make_view(self, k: int, spec: tuple[str, ArrayShape], memory: Array, offset: int) -> Array:
        """Return a view of ``memory`` for the field at position ``k``."""
        dtype, shape = spec
        view = memory[offset : offset + np.dtype(dtype).itemsize * entry_count(shape)].view(dtype).reshape(shape)
        self.fields[k] = make_read_only(view)
        return view

    def write(self, request: Request) -> list[Array]:
        """Write a request to the message; return the arrays to send apart."""
        values = list_values(request)
        numbers = [values[k] for k in self.numbers]
        # in a note to another plan, the length of the second broadcast replaces the 0 (Service.receive)
        self.front.pack_into(self.data, 0, self.number, 0, *request.key, self.patient, *numbers)
        for k, view in self.short_views:
            view[...] = values[k]
        # a broadcast needs contiguous memory, and a method may send a column of a matrix
        return [np.ascontiguousarray(values[k]) for k in self.long] if self.long else []

    def read(self) -> Request:
        """Read the request from the message; its arrays are the buffers."""
        form, fields = self.form, self.fields
        _, _, round, call, self.patient, *numbers = self.front.unpack_from(self.data)
        for k, number in zip(self.numbers, numbers, strict=True):
            fields[k] = number
        args = tuple(fields[: form.count])
        to, *sent, each = fields[form.count :]
        transforms = dict(zip(form.transforms, sent, strict=True))
        return Request(
            form.method, args, to, each, form.reduce, form.last, None, (round, call), form.request_type, transforms
        )


class MessagePlans:
    """The plans of a rank; server and hosts make equal plans in the same order."""

    def __init__(self) -> None:
        self.count = 0
        self.by_number: dict[int, MessagePlan] = {}
        self.by_key: dict[Any, MessagePlan] = {}
        self.before = self.none = MessagePlan(-1, MessageForm())

    @property
    def expected(self) -> MessagePlan:
        """Plan of the next message, if it is the one that followed last time."""
        return self.before.follower or self.none

    def make(self, form: MessageForm, number: int) -> MessagePlan:
        """Make a plan; all older ones are deleted when there are many."""
        # all ranks count alike, so they delete the same plans at the same time without a message
        if number % MOST == 0:
            self.by_number.clear()
            self.by_key.clear()
            self.before = self.none
            self.none.follower = None
        self.count = number + 1
        self.by_number[number] = MessagePlan(number, form)
        return self.by_number[number]

    def follow(self, plan: MessagePlan) -> None:
        """Note that the message of ``plan`` followed the last one."""
        # rounds repeat their requests in order, so it is likely to follow again; all ranks expect the same
        self.before.follower = plan
        self.before = plan


def align_size(size: int) -> int:
    """Round a size up to a multiple of 64 bytes, a cache line: arrays that begin there are aligned for every type."""
    return -(-size // 64) * 64
