"""Requests as bytes. What does not change is sent once: the first request of a kind makes a plan on every rank."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import Request, protected, width

BIG = 1 << 16  # arrays of more bytes travel on their own, without a copy
SMALL = 16  # own rows of at most so many bytes a client go to all ranks, larger ones are scattered
MOST = 256  # most plans at a time
CODES = {int: "q", float: "d", bool: "?", np.int64: "q", np.float64: "d", np.float32: "d", np.bool_: "?"}
FRONT = struct.Struct("=3q")

Shape = tuple[int, ...]


class Form(msgspec.Struct, array_like=True, frozen=True):
    """What requests of one kind share; ``args``: q, d or ? for a number, "" for None, or type and shape of an array."""

    method: str
    args: tuple[str | tuple[str, Shape], ...] = ()
    to: int | None = None  # how many clients are called
    each: tuple[str, Shape] | None = None  # type and shape of one client's own row
    reduce: str = "rows"
    last: str | None = None
    then: str | None = None
    evaluation: bool = False
    peers: int | None = None  # how many clients agreed on masks
    exact: bool = False
    rest: bool = False
    near: tuple[str, tuple[str, ...]] | None = None
    weighted: bool = False  # whether the clients' replies have weights


def kind(request: Request) -> tuple[Any, ...]:
    """What two requests must share to be of one kind."""
    each = request.each
    return (
        request.method,
        request.reduce,
        request.last,
        request.evaluation,
        request.exact,
        request.rest,
        request.weights is None,
        request.then,
        request.near,
        None if request.to is None else len(request.to),
        None if request.peers is None else len(request.peers),
        None if each is None else (each.dtype, each.shape[1:]),
        *[(a.dtype, a.shape) if isinstance(a, np.ndarray) else type(a) for a in request.args],
    )


def form(request: Request) -> Form:
    """The form of a request."""
    args = tuple(
        (a.dtype.str, a.shape) if isinstance(a, np.ndarray) else "" if a is None else CODES[type(a)]
        for a in request.args
    )
    each = None if request.each is None else (request.each.dtype.str, request.each.shape[1:])
    then = None if request.then is None else request.then.__name__
    to = None if request.to is None else len(request.to)
    peers = None if request.peers is None else len(request.peers)
    rest = then, request.evaluation, peers, request.exact, request.rest, request.near, request.weights is not None
    return Form(request.method, args, to, each, request.reduce, request.last, *rest)


class Plan:
    """Where everything stands in the messages of one form.

    ``message`` begins with this plan's number, 0, round, call and ``patient``, and the numbers; small arrays follow,
    each at a multiple of 64 bytes. ``fields`` are what a request says: its arguments, ``to``, ``peers``, ``weights``
    and ``each``; those at the positions ``numbers`` are packed, the arrays ``inside`` stand in the message. Long arrays
    travel ``apart``, in ``room`` bytes that ``place`` gives them. All arrays are buffers, reused for every message, and
    read-only in the requests that are read from them.
    """

    def __init__(self, number: int, form: Form, m: int) -> None:
        self.number = number
        self.form = form
        self.front = struct.Struct("=5q" + "".join(a for a in form.args if isinstance(a, str)))
        clients = ["" if count is None else ("<i8", (count,)) for count in (form.to, form.peers)]
        count = m if form.to is None else form.to
        specs = [*form.args, *clients, ("<f8", (count,)) if form.weighted else "", ""]
        self.scattered = False
        if form.each is not None:
            dtype, shape = form.each
            self.scattered = np.dtype(dtype).itemsize * width(shape) > SMALL
            if not self.scattered:
                specs[-1] = dtype, (count, *shape)
        self.numbers = [k for k, spec in enumerate(specs) if isinstance(spec, str) and spec]
        arrays = {k: spec for k, spec in enumerate(specs) if not isinstance(spec, str)}
        sizes = {k: np.dtype(dtype).itemsize * width(shape) for k, (dtype, shape) in arrays.items()}
        offset = aligned(self.front.size)
        self.message = np.zeros(offset + sum(aligned(size) for size in sizes.values() if size <= BIG), np.uint8)
        self.data = self.message.data
        self.fields: list[Any] = [None] * len(specs)
        self.inside: list[tuple[int, Array]] = []  # position and place
        self.long = {k: spec for k, spec in arrays.items() if sizes[k] > BIG}
        self.room = sum(aligned(sizes[k]) for k in self.long)
        self.apart: list[Array] = []  # their places
        self.memory: Array | None = None
        for k, spec in arrays.items():
            if k not in self.long:
                self.inside.append((k, self._stand(k, spec, self.message, offset)))
                offset += aligned(sizes[k])
        self.patient = False  # how ranks wait for the replies and for the next message
        self.follower: Plan | None = None  # of the message that came next, the last time
        self.replies: Any = None  # how the replies travel

    def place(self, memory: Array) -> None:
        """Have the long arrays stand in ``memory`` (room or more,), bytes."""
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
        fields = (*request.args, request.to, request.peers, request.weights, request.each)
        numbers = [fields[k] for k in self.numbers]
        self.front.pack_into(self.data, 0, self.number, 0, *request.key, self.patient, *numbers)
        for k, view in self.inside:
            view[...] = fields[k]
        return [np.ascontiguousarray(fields[k]) for k in self.long] if self.long else []

    def read(self) -> Request:
        """The request in the message; its arrays are the buffers."""
        form, fields = self.form, self.fields
        _, _, round, call, self.patient, *numbers = self.front.unpack_from(self.data)
        for k, number in zip(self.numbers, numbers, strict=True):
            fields[k] = number
        *args, to, peers, weights, each = fields
        key = round, call
        rest = form.last, None, key, form.evaluation, peers, form.exact
        request = Request(form.method, tuple(args), to, each, form.reduce, *rest, rest=form.rest, near=form.near)
        request.weights = weights
        return request


class Plans:
    """The plans of a rank; server and hosts make the same ones in the same order."""

    def __init__(self, m: int) -> None:
        self.m = m
        self.count = 0
        self.numbered: dict[int, Plan] = {}
        self.by_kind: dict[Any, Plan] = {}
        self.before = self.none = Plan(-1, Form(""), m)

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
        self.numbered[number] = Plan(number, form, self.m)
        return self.numbered[number]

    def follow(self, plan: Plan) -> None:
        self.before.follower = plan
        self.before = plan


def aligned(size: int) -> int:
    """The next multiple of 64, a line of the cache: an array that begins there is aligned for every type."""
    return -(-size // 64) * 64
