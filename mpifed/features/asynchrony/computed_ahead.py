"""What rests with clients that are under way in an asynchronous run: new states and uploads, until their time comes."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from mpifed.core.promises import Keeps
from mpifed.core.typing import Array
from mpifed.federation.host import Host
from mpifed.federation.request import Request, parts_of
from mpifed.federation.stage import FIELD, RESTING, HostStage, Visit

UPLOAD = "upload "


class ComputedAhead(HostStage):
    """New states and uploads of the clients of a host, in block order; each row counts from computing to arriving.

    ``fields`` are those of the clients' state, ``uploads`` the arrays of a reply: name or position -> (count, …).
    """

    # Replies that rest are in checkpoints; those that have not arrived lack in a sum.
    keeps = Keeps.EVERYTHING & ~Keeps.SUMS

    def __init__(self, host: Host, count: int) -> None:
        self.host, self.count = host, count
        self.fields: dict[str, Array] = {}
        self.uploads: dict[int, Array] = {}

    def rest(self, request: Request) -> Callable[..., tuple[Any, None]]:
        """What clients do at a REST: each computes from its own start, and what it replies rests with it."""
        method = self.host.client_method(request.method)
        stages = [self.host.stages[name] for name in request.stages]

        def computed(visit: Visit, keys: Array, *table: Array) -> tuple[Any, None]:
            *columns, own = table
            # the random streams are those of the round in which the client was sent its model, whenever it is computed
            f = visit.f.keyed((keys[own, 0], keys[own, 1]))
            places = self.host.slot[f.ids - self.host.lo]
            # clients that began together get shared arguments; the others are computed in groups of equal numbers
            for rows, args in starts(tuple(columns), own):
                state = type(visit.state)(*[field[rows] for field in visit.state])
                some = Visit(f.take(rows), places[rows], state)
                one = msgspec.structs.replace(request, args=args)
                new, reply = method(some.f, state, *args)
                for stage in stages:
                    new, reply = stage.up(one, some, new, reply)
                self.put(places[rows], new, reply)
            return visit.state, None

        return computed

    def arrive(self, request: Request) -> Callable[..., tuple[Any, Any]]:
        """What clients do at an ARRIVE: they go on from the state that rested, and its uploads are their reply."""

        def arrived(visit: Visit) -> tuple[Any, Any]:
            places = self.host.slot[visit.f.ids - self.host.lo]
            new = type(visit.state)(*[self.fields[name][places] for name in visit.state._fields])
            uploads = [self.uploads[k][places] for k in sorted(self.uploads)]
            return new, tuple(uploads) or None

        return arrived

    def put(self, places: Array, new: Any, reply: Any) -> None:
        """Keep what the clients at ``places`` have computed."""
        if not self.fields:
            # copies: the clients' state stays as it is until their time comes
            state = self.host.state
            self.fields = {name: field.copy() for name, field in zip(state._fields, state, strict=True)}
        for name, field in zip(new._fields, new, strict=True):
            self.fields[name][places] = field
        for k, part in enumerate(() if reply is None else parts_of(reply)[0]):
            if k not in self.uploads:
                self.uploads[k] = np.zeros((self.count, *part.shape[1:]), part.dtype)
            self.uploads[k][places] = part

    def saved(self) -> dict[str, Array]:
        """What a checkpoint has of it, in block order."""
        fields = {f"{RESTING}{FIELD}{name}": rows for name, rows in self.fields.items()}
        return fields | {f"{RESTING}{UPLOAD}{k}": rows for k, rows in self.uploads.items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take back what ``saved`` put among the arrays of a checkpoint."""
        for name in [name for name in arrays if name.startswith(RESTING)]:
            rows, what = arrays.pop(name), name.removeprefix(RESTING)
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
