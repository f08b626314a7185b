"""What rests with clients that are under way in an asynchronous run: new states and uploads, until their time comes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.request import Collected, Request, weighted

RESTING = "resting "  # of names in checkpoints
FIELD, UPLOAD = "field ", "upload "


class Resting:
    """New states and uploads of ``count`` clients, in block order; each row counts from computing to arriving.

    ``fields`` are those of the clients' state, ``uploads`` the arrays of a reply: name or position -> (count, …).
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.fields: dict[str, Array] = {}
        self.uploads: dict[int, Array] = {}

    def put(self, places: Array, state: Any, new: Any, reply: Any) -> None:
        """Keep what the clients at ``places`` have computed; ``state`` is that of all clients of the host."""
        if not self.fields:
            self.fields = {name: field.copy() for name, field in zip(state._fields, state, strict=True)}
        for name, field in zip(new._fields, new, strict=True):
            self.fields[name][places] = field
        parts = () if reply is None else reply if isinstance(reply, tuple) else (reply,)
        for k, part in enumerate(parts):
            if k not in self.uploads:
                self.uploads[k] = np.zeros((self.count, *part.shape[1:]), part.dtype)
            self.uploads[k][places] = part

    def arrive(self, places: Array, state: Any) -> tuple[Array, ...]:
        """Make what rests at ``places`` the clients' state; the arrays of their reply, in the order of ``places``."""
        for name, field in zip(state._fields, state, strict=True):
            field[places] = self.fields[name][places]
        return tuple([self.uploads[k][places] for k in sorted(self.uploads)])

    def saved(self, slot: Array) -> dict[str, Array]:
        """What a checkpoint has of it, in client order."""
        fields = {f"{RESTING}{FIELD}{name}": rows[slot] for name, rows in self.fields.items()}
        return fields | {f"{RESTING}{UPLOAD}{k}": rows[slot] for k, rows in self.uploads.items()}

    def restore(self, arrays: dict[str, Array], order: Array) -> None:
        """Take back what ``saved`` put among the arrays of a checkpoint."""
        for name in [name for name in arrays if name.startswith(RESTING)]:
            rows, what = arrays.pop(name)[order], name.removeprefix(RESTING)
            if what.startswith(FIELD):
                self.fields[what.removeprefix(FIELD)] = rows
            else:
                self.uploads[int(what.removeprefix(UPLOAD))] = rows


def starts(table: tuple[Array, ...], own: Array) -> Iterator[tuple[Array, tuple[Any, ...]]]:
    """Positions of clients and the arguments that they start from: row ``own`` (c,) of the ``table`` is each one's.

    Of the table, an array (K, …) is an argument that is an array, and a column (K,) one that is a number. Arrays come
    as rows (c, …), one for each client. Numbers come as numbers: clients whose numbers differ come in turn.
    """
    numbers = list(zip(*[column.tolist() for column in table if column.ndim == 1], strict=True))
    groups: dict[Any, int] = {}
    group = np.array([groups.setdefault(key, len(groups)) for key in numbers] or [0])[own if numbers else 0 * own]
    for one in np.unique(group):
        positions = np.flatnonzero(group == one)
        rows = own[positions]
        yield positions, tuple([a[rows[0]].item() if a.ndim == 1 else a[rows] for a in table])


def rest(host: Any, request: Request) -> tuple[Collected, Array | None]:
    """Let clients of a host compute, each from its own start; what they reply rests with them."""
    ids, slots, index = host.called(request.to)
    (keys, *table), method, first = request.args, getattr(host.algorithm, request.method), 0
    places = np.arange(len(host.order)) if slots is None else slots
    for picks, f in host.blocks_of(slots, request.key):
        begun = time.perf_counter()
        last = first + len(f)
        own, at = request.each[index[first:last]], places[first:last]  # type: ignore[index]
        first = last
        client = type(host.state)(*[field[picks] for field in host.state])
        f = Local(f.block, host.setup, f.ids, (keys[own, 0], keys[own, 1]))
        for rows, args in starts(tuple(table), own):
            some, old = f.take(rows), type(client)(*[field[rows] for field in client])
            one = msgspec.structs.replace(request, args=args)
            new, reply = host.uploads.through(one, at[rows], some, old, method(some, old, *args))
            host.resting.put(at[rows], host.state, new, reply)
        host.seconds[picks] += (time.perf_counter() - begun) / len(f)
    return Collected(len(index), host.dtype, False), ids


def arrivals(host: Any, request: Request) -> tuple[Collected, Array | None]:
    """The uploads that arrive, each times its weight; their clients go on from their new state."""
    ids, slots, index = host.called(request.to)
    found = Collected(len(index), host.dtype, False)
    if not len(index):
        return found, ids
    parts = host.resting.arrive(np.arange(len(host.order)) if slots is None else slots, host.state)
    if parts and request.last is None:
        found.put(index, weighted(parts, request, ids, index))
    return found, ids
