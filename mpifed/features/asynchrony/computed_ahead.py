"""States and uploads that clients under way have computed ahead in an asynchronous run, kept until they arrive."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.federation.host import Host
from mpifed.federation.request import Request, split_reply
from mpifed.federation.stage import FIELD, RESTING, ClientBatch, HostStage

UPLOAD = "upload "


class ComputedAhead(HostStage):
    """New states and uploads of a host's clients, in block order; a row is valid from computing to arriving.

    ``fields`` are those of the clients' state, ``uploads`` the arrays of a reply: name or position -> (count, …).
    """

    # Kept replies are in checkpoints; a sum lacks those that have not arrived.
    supports = Supports.EVERYTHING & ~Supports.SUMS

    def __init__(self, host: Host, count: int) -> None:
        self.host, self.count = host, count
        self.fields: dict[str, Array] = {}
        self.uploads: dict[int, Array] = {}

    def rest(self, request: Request) -> Callable[..., tuple[Any, None]]:
        """Return the client call of REST: each client computes from its own start, and its host keeps the reply."""
        method = self.host.client_method(request.method)
        stages = [self.host.stages[name] for name in request.stages]

        def compute(batch: ClientBatch, keys: Array, *table: Array) -> tuple[Any, None]:
            *columns, start = table
            # the random streams are those of the round in which the client was sent its model, whenever it is computed
            f = batch.f.with_key((keys[start, 0], keys[start, 1]))
            slots = self.host.slot[f.ids - self.host.lo]
            # clients that began together get shared arguments; the others are computed in groups of equal numbers
            for rows, args in group_starts(tuple(columns), start):
                state = type(batch.state)(*[field[rows] for field in batch.state])
                group = ClientBatch(f.take(rows), slots[rows], state)
                one = msgspec.structs.replace(request, args=args)
                new, reply = method(group.f, state, *args)
                for stage in stages:
                    new, reply = stage.up(one, group, new, reply)
                self.put(slots[rows], new, reply)
            return batch.state, None

        return compute

    def arrive(self, request: Request) -> Callable[..., tuple[Any, Any]]:
        """Return the client call of ARRIVE: clients go on from their kept states and reply their kept uploads."""

        def release(batch: ClientBatch) -> tuple[Any, Any]:
            slots = self.host.slot[batch.f.ids - self.host.lo]
            new = type(batch.state)(*[self.fields[name][slots] for name in batch.state._fields])
            uploads = [self.uploads[k][slots] for k in sorted(self.uploads)]
            return new, tuple(uploads) or None

        return release

    def put(self, slots: Array, new: Any, reply: Any) -> None:
        """Store the new states and replies of the clients at ``slots``."""
        if not self.fields:
            # copies: the clients' state stays as it is until they arrive
            state = self.host.state
            self.fields = {name: field.copy() for name, field in zip(state._fields, state, strict=True)}
        for name, field in zip(new._fields, new, strict=True):
            self.fields[name][slots] = field
        for k, part in enumerate(() if reply is None else split_reply(reply)[0]):
            if k not in self.uploads:
                self.uploads[k] = np.zeros((self.count, *part.shape[1:]), part.dtype)
            self.uploads[k][slots] = part

    def export_state(self) -> dict[str, Array]:
        """Return the arrays of a checkpoint, in block order."""
        fields = {f"{RESTING}{FIELD}{name}": rows for name, rows in self.fields.items()}
        return fields | {f"{RESTING}{UPLOAD}{k}": rows for k, rows in self.uploads.items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take the arrays of ``export_state`` out of those of a checkpoint."""
        for name in [name for name in arrays if name.startswith(RESTING)]:
            rows, key = arrays.pop(name), name.removeprefix(RESTING)
            if key.startswith(FIELD):
                self.fields[key.removeprefix(FIELD)] = rows
            else:
                self.uploads[int(key.removeprefix(UPLOAD))] = rows


def group_starts(table: tuple[Array, ...], start: Array) -> Iterator[tuple[Array, tuple[Any, ...]]]:
    """Yield positions of clients and the arguments of their starts: rows ``start`` (c,) of the ``table``.

    An array (K, …) of the table is an argument that is an array, a column (K,) one that is a number. Arrays come as
    rows (c, …), one for each client. Numbers come as numbers: clients whose numbers differ come in turn.
    """
    numbers = list(zip(*[column.tolist() for column in table if column.ndim == 1], strict=True))
    groups: dict[Any, int] = {}
    group = np.array([groups.setdefault(key, len(groups)) for key in numbers] or [0])[start if numbers else 0 * start]
    for one in np.unique(group):
        positions = np.flatnonzero(group == one)
        rows = start[positions]
        yield positions, tuple([a[rows[0]].item() if a.ndim == 1 else a[rows] for a in table])
