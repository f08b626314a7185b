"""Requests as bytes. What does not change is sent once: the first request of a kind makes a plan on every rank."""

from __future__ import annotations

import struct
from typing import Any

import msgspec
import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import Request, width

BIG = 1 << 16  # arrays of more bytes travel on their own, without a copy
SMALL = 16  # own rows of at most so many bytes a client go to all ranks, larger ones are scattered
MOST = 256  # most plans at a time
NUMBERS = {int: "q", float: "d", bool: "?", np.int64: "q", np.float64: "d", np.float32: "d", np.bool_: "?"}
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


def kind(request: Request) -> tuple[Any, ...]:
    """What two requests must share to be of one kind."""
    each = request.each
    return (
        request.method,
        request.reduce,
        request.last,
        request.evaluation,
        request.then,
        None if request.to is None else len(request.to),
        None if each is None else (each.dtype, each.shape[1:]),
        *[(a.dtype, a.shape) if isinstance(a, np.ndarray) else type(a) for a in request.args],
    )


def form(request: Request) -> Form:
    """The form of a request."""
    args = tuple(
        (a.dtype.str, a.shape) if isinstance(a, np.ndarray) else "" if a is None else NUMBERS[type(a)]
        for a in request.args
    )
    each = None if request.each is None else (request.each.dtype.str, request.each.shape[1:])
    then = None if request.then is None else request.then.__name__
    to = None if request.to is None else len(request.to)
    return Form(request.method, args, to, each, request.reduce, request.last, then, request.evaluation)


class Plan:
    """Where everything stands in the messages of one form.

    ``message`` begins with this plan's number, 0, round, call and ``patient``, and the numbers; small arrays follow,
    each at a multiple of 64 bytes. ``apart`` are the arrays that travel on their own. Both are buffers, reused for
    every message.
    """

    def __init__(self, number: int, form: Form, m: int) -> None:
        self.number, self.form = number, form
        self.front = struct.Struct("=5q" + "".join(a for a in form.args if isinstance(a, str)))
        specs = [a for a in form.args if not isinstance(a, str)]
        if form.to is not None:
            specs.append(("<i8", (form.to,)))
        self.scattered = False
        if form.each is not None:
            row = np.dtype(form.each[0]).itemsize * width(form.each[1])
            self.scattered = row > SMALL
            if not self.scattered:
                specs.append((form.each[0], (m if form.to is None else form.to, *form.each[1])))
        sizes = [np.dtype(dtype).itemsize * width(shape) for dtype, shape in specs]
        offset = aligned(self.front.size)
        self.message = np.zeros(offset + sum(aligned(size) for size in sizes if size <= BIG), np.uint8)
        self.arrays: list[Array] = []
        for (dtype, shape), size in zip(specs, sizes, strict=True):
            if size > BIG:
                self.arrays.append(np.empty(shape, dtype))
            else:
                self.arrays.append(self.message[offset : offset + size].view(dtype).reshape(shape))
                offset += aligned(size)
        self.big = [size > BIG for size in sizes]
        self.apart = [array for array, big in zip(self.arrays, self.big, strict=True) if big]
        self.patient = False  # how ranks wait for the replies and for the next message
        self.follower: Plan | None = None  # of the message that came next, the last time
        self.replies: Any = None  # how the replies travel

    def write(self, request: Request) -> list[Array]:
        """Put a request into the message; the arrays that travel apart."""
        numbers = [a for a, spec in zip(request.args, self.form.args, strict=True) if isinstance(spec, str) and spec]
        self.front.pack_into(self.message.data, 0, self.number, 0, *request.key, self.patient, *numbers)
        arrays = [a for a in request.args if isinstance(a, np.ndarray)]
        if request.to is not None:
            arrays.append(request.to)
        if request.each is not None and not self.scattered:
            arrays.append(request.each)
        apart = []
        for view, array, big in zip(self.arrays, arrays, self.big, strict=True):
            if big:
                apart.append(np.ascontiguousarray(array))
            else:
                view[...] = array
        return apart

    def read(self) -> Request:
        """The request in the message; its arrays are the buffers."""
        form = self.form
        _, _, round, call, self.patient, *rest = self.front.unpack_from(self.message.data)
        numbers, arrays = iter(rest), iter(self.arrays)
        args = tuple([(next(numbers) if a else None) if isinstance(a, str) else next(arrays) for a in form.args])
        to = None if form.to is None else next(arrays)
        each = None if form.each is None or self.scattered else next(arrays)
        return Request(form.method, args, to, each, form.reduce, form.last, None, (round, call), form.evaluation)


class Plans:
    """The plans of a rank; server and hosts make the same ones in the same order."""

    def __init__(self, m: int) -> None:
        self.m, self.count = m, 0
        self.numbered: dict[int, Plan] = {}
        self.by_kind: dict[Any, Plan] = {}
        self.before = self.none = Plan(-1, Form(""), m)

    @property
    def expected(self) -> Plan:
        """The plan of the next message, if it follows the last one as it did before."""
        return self.before.follower or self.none

    def make(self, form: Form, number: int) -> Plan:
        """A new plan; the oldest ones go when there are many."""
        if number % MOST == 0:
            self.numbered.clear()
            self.by_kind.clear()
            self.before = self.none
            self.none.follower = None
        self.count = number + 1
        self.numbered[number] = Plan(number, form, self.m)
        return self.numbered[number]

    def follow(self, plan: Plan) -> None:
        self.before.follower, self.before = plan, plan


def aligned(size: int) -> int:
    return -(-size // 64) * 64
