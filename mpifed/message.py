"""Requests as messages: a head that says what is called and the shapes of what follows, then the arrays."""
from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from mpifed.data.clients import Array
from mpifed.host import Request, width

FRONT = 64        # bytes before the head: lengths of message and head
SMALL = 16        # own rows of at most so many bytes a client ride in the broadcast


class Head(msgspec.Struct, array_like=True):
    """What a message says before its arrays: shapes and types in ``specs``, in the order args, to, each."""

    method: str
    args: list[Any]                                   # numbers; None stands for an array
    reduce: str
    last: str | None
    place: tuple[int, int]
    evaluation: bool
    specs: list[tuple[str, tuple[int, ...]]]
    to: bool
    each: str                                         # "", "here" or "scattered"
    row: tuple[str, tuple[int, ...]] = ("", ())       # type and shape of one client's own row


def pack(request: Request) -> tuple[Head, list[Array]]:
    """The head of a request and the arrays that go with it."""
    arrays = [a for a in request.args if isinstance(a, np.ndarray)]
    numbers = [None if isinstance(a, np.ndarray) else a.item() if isinstance(a, np.generic) else a for a in request.args]
    if request.to is not None:
        arrays.append(request.to)
    each, row = "", ("", ())
    if request.each is not None:
        row = (request.each.dtype.str, request.each.shape[1:])
        each = "here" if request.each[:1].nbytes <= SMALL else "scattered"
        if each == "here":
            arrays.append(request.each)
    specs = [(a.dtype.str, a.shape) for a in arrays]
    return Head(request.method, numbers, request.reduce, request.last, request.place, request.evaluation, specs,
                request.to is not None, each, row), arrays


def join(head: Head, arrays: list[Array]) -> Array:
    """Head and arrays as one message, every array at a multiple of 64 bytes."""
    text = msgspec.msgpack.encode(head)
    places = [FRONT + aligned(len(text))]
    for array in arrays:
        places.append(places[-1] + aligned(array.nbytes))
    message = np.empty(places[-1], np.uint8)
    message[:16].view(np.int64)[:] = len(message), len(text)
    message[FRONT : FRONT + len(text)] = np.frombuffer(text, np.uint8)
    for place, array in zip(places, arrays, strict=False):
        message[place : place + array.nbytes] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return message


def unpack(message: Array) -> tuple[Request, Head]:
    """The request in a message; its arrays are views."""
    length = int(message[8:16].view(np.int64)[0])
    head = msgspec.msgpack.decode(message[FRONT : FRONT + length].data, type=Head)
    place, arrays = FRONT + aligned(length), []
    for kind, shape in head.specs:
        size = width(shape) * np.dtype(kind).itemsize
        arrays.append(message[place : place + size].view(kind).reshape(shape))
        place += aligned(size)
    each = arrays.pop() if head.each == "here" else None
    to = arrays.pop() if head.to else None
    rest = iter(arrays)
    args = tuple(next(rest) if a is None else a for a in head.args)
    return Request(head.method, args, to, each, head.reduce, head.last, head.place, head.evaluation), head


def aligned(size: int) -> int:
    return -(-size // 64) * 64
