"""Requests as bytes. What does not change is sent once: the first request of a kind makes a plan on every rank."""

import math
import struct
from typing import Any

import msgspec
import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import CODES, Request, protected, refuse_arguments, width

BIG = 1 << 16  # arrays of more bytes travel on their own, without a copy
SMALL = 16  # own rows of at most so many bytes a client go to all ranks, larger ones are scattered
MOST = 256  # most plans at a time
FRONT = struct.Struct("=3q")
ARRAY = "array"

Shape = tuple[int, ...]


class Form(msgspec.Struct, array_like=True, frozen=True):
    """What requests of one kind share.

    ``codes`` are of the values that each message has anew (``carried``): q, d or ? for a number, "" for None, or ARRAY;
    the first ``count`` of them are arguments. ``arrays`` has type and shape of each array among them, in order.
    """

    method: str = ""
    reduce: str = "rows"
    last: str | None = None
    verb: tuple[str, ...] = ()
    then: str | None = None
    stages: tuple[str, ...] = ()
    count: int = 0
    codes: tuple[str, ...] = ()
    arrays: tuple[tuple[str, Shape], ...] = ()


def carried(request: Request) -> list[Any]:
    """The values of a request that each message has anew: numbers, arrays and None."""
    return [*request.args, request.to, *request.stages.values(), request.each]


def kind(request: Request) -> tuple[Any, ...]:
    """What two requests must share to be of one kind, as a key; ``form`` says the same in words that travel."""
    values = [(a.dtype, a.shape) if isinstance(a, np.ndarray) else type(a) for a in carried(request)]
    head = request.method, request.reduce, request.last, request.verb, then_of(request)
    return *head, *request.stages, *values


def then_of(request: Request) -> str | None:
    """The name of the server's function of rows: a stage makes one for each request, all of which have the same."""
    return None if request.then is None else request.then.__name__


def form(request: Request) -> Form:
    """The form of a request; UserError for an argument that cannot travel."""
    refuse_arguments(request.method, request.args)
    values = carried(request)
    codes = [CODES.get(type(value), ARRAY) for value in values]
    arrays = [(a.dtype.str, a.shape) for a, code in zip(values, codes, strict=True) if code == ARRAY]
    head = request.method, request.reduce, request.last, request.verb
    return Form(*head, then_of(request), tuple(request.stages), len(request.args), tuple(codes), tuple(arrays))


class Plan:
    """Where everything stands in the messages of one form.

    ``message`` begins with this plan's number, 0, round, call and ``patient``, and the numbers; small arrays follow,
    each at a multiple of 64 bytes. ``fields`` are the values that are carried: those at the positions ``numbers`` are
    packed, the arrays ``inside`` stand in the message, long ones travel ``apart``, in ``room`` bytes that ``place``
    gives them, and wide rows of ``each`` are scattered. All arrays are buffers, reused for every message, and read-only
    in the requests that are read from them.
    """

    def __init__(self, number: int, form: Form) -> None:
        self.number = number
        self.form = form
        self.numbers = [k for k, code in enumerate(form.codes) if code not in ("", ARRAY)]
        self.front = struct.Struct("=4q?" + "".join(form.codes[k] for k in self.numbers))
        places = [k for k, code in enumerate(form.codes) if code == ARRAY]
        arrays = dict(zip(places, form.arrays, strict=True))
        self.each: tuple[str, Shape] | None = None  # type and shape of a row of ``each``, where rows are scattered
        last = len(form.codes) - 1
        if last in arrays:
            dtype, (_, *shape) = arrays[last]
            # a message reaches every rank: with wide rows each would get those of all clients, and need a few of them
            if np.dtype(dtype).itemsize * math.prod(shape) > SMALL:
                self.each = dtype, tuple(shape)
                del arrays[last]
        sizes = {k: np.dtype(dtype).itemsize * width(shape) for k, (dtype, shape) in arrays.items()}
        offset = aligned(self.front.size)
        self.message = np.zeros(offset + sum(aligned(size) for size in sizes.values() if size <= BIG), np.uint8)
        self.data = self.message.data
        self.fields: list[Any] = [None] * len(form.codes)
        self.inside: list[tuple[int, Array]] = []  # position and place
        self.long = {k: code for k, code in arrays.items() if sizes[k] > BIG}
        self.room = sum(aligned(sizes[k]) for k in self.long)
        self.apart: list[Array] = []  # their places
        self.memory: Array | None = None
        for k, code in arrays.items():
            if k not in self.long:
                self.inside.append((k, self._stand(k, code, self.message, offset)))
                offset += aligned(sizes[k])
        self.patient = False  # how ranks wait for the replies and for the next message
        self.follower: Plan | None = None  # of the message that came next, the last time
        self.replies: Any = None  # how the replies travel

    def place(self, memory: Array) -> None:
        """Have the long arrays stand in ``memory`` (room or more,), bytes."""
        # plans share one memory, which moves when a longer message needs more: then views into the old one are stale
        if memory is self.memory:
            return
        self.memory = memory
        self.apart = []
        offset = 0
        for k, spec in self.long.items():
            self.apart.append(self._stand(k, spec, memory, offset))
            offset += aligned(self.apart[-1].nbytes)

    def _stand(self, k: int, spec: tuple[str, Shape], memory: Array, offset: int) -> Array:
        """The place of the field at position ``k`` in ``memory``."""
        dtype, shape = spec
        place = memory[offset : offset + np.dtype(dtype).itemsize * width(shape)].view(dtype).reshape(shape)
        self.fields[k] = protected(place)
        return place

    def write(self, request: Request) -> list[Array]:
        """Put a request into the message; the arrays that travel apart."""
        values = carried(request)
        numbers = [values[k] for k in self.numbers]
        # the 0 is where a note to another plan has the length of the second broadcast: Service.receive looks there
        self.front.pack_into(self.data, 0, self.number, 0, *request.key, self.patient, *numbers)
        for k, view in self.inside:
            view[...] = values[k]
        # a broadcast takes one stretch of memory, and a method may send a column of a matrix
        return [np.ascontiguousarray(values[k]) for k in self.long] if self.long else []

    def read(self) -> Request:
        """The request in the message; its arrays are the buffers."""
        form, fields = self.form, self.fields
        _, _, round, call, self.patient, *numbers = self.front.unpack_from(self.data)
        for k, number in zip(self.numbers, numbers, strict=True):
            fields[k] = number
        args = tuple(fields[: form.count])
        to, *sent, each = fields[form.count :]
        stages = dict(zip(form.stages, sent, strict=True))
        return Request(form.method, args, to, each, form.reduce, form.last, None, (round, call), form.verb, stages)


class Plans:
    """The plans of a rank; server and hosts make the same ones in the same order."""

    def __init__(self) -> None:
        self.count = 0
        self.numbered: dict[int, Plan] = {}
        self.by_kind: dict[Any, Plan] = {}
        self.before = self.none = Plan(-1, Form())

    @property
    def expected(self) -> Plan:
        """The plan of the next message, if it follows the last one as it did before."""
        return self.before.follower or self.none

    def make(self, form: Form, number: int) -> Plan:
        """A new plan; the oldest ones go when there are many."""
        # all ranks count alike, so they forget the same plans at the same time and need not tell each other
        if number % MOST == 0:
            self.numbered.clear()
            self.by_kind.clear()
            self.before = self.none
            self.none.follower = None
        self.count = number + 1
        self.numbered[number] = Plan(number, form)
        return self.numbered[number]

    def follow(self, plan: Plan) -> None:
        # rounds repeat their requests in one order, so the next message is mostly the one that came next before; all
        # ranks guess alike, because they have seen the same messages
        self.before.follower = plan
        self.before = plan


def aligned(size: int) -> int:
    """The next multiple of 64, a line of the cache: an array that begins there is aligned for every type."""
    return -(-size // 64) * 64
