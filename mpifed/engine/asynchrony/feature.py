"""Asynchronous runs, and states and uploads that clients under way have computed ahead, kept until they arrive."""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import numpy as np

from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.engine.asynchrony.arrivals import Arrivals
from mpifed.engine.plugin import EnginePlugin, HostDivision
from mpifed.features.message_conflicts import MESSAGES
from mpifed.features.simulated_time.feature import make_devices
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import Selector
from mpifed.federation.request import ARRIVE, FIELD, REST, RESTING, Request, split_reply
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import RunSpec
from mpifed.federation.transform import ClientBatch, Transform

UPLOAD = "upload "


class ComputedAhead(Transform):
    """New states and uploads of a host's clients, in ``client_state``; a row is valid from computing to arriving."""

    # Kept replies are in checkpoints; a sum lacks those that have not arrived.
    supports = Supports.EVERYTHING & ~Supports.SUMS
    name = RESTING

    def __init__(self, host: Host) -> None:
        self.host = host

    def rest(self, request: Request) -> Callable[..., tuple[Any, None]]:
        """Return the client call of REST: each client computes from its own start, and its host keeps the reply."""
        method = self.host.client_method(request.method)
        transforms = [self.host.find_transform(name) for name in request.transforms]

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
                for transform in transforms:
                    new, reply = transform.encode(one, group, new, reply)
                self.put(slots[rows], new, reply)
            return batch.state, None

        return compute

    def arrive(self, request: Request) -> Callable[..., tuple[Any, Any]]:
        """Return the client call of ARRIVE: clients go on from their kept states and reply their kept uploads."""

        def release(batch: ClientBatch) -> tuple[Any, Any]:
            slots = self.host.slot[batch.f.ids - self.host.lo]
            rows = {name: array[slots] for name, array in self.client_state.items()}
            new = type(batch.state)(*[rows[FIELD + name] for name in batch.state._fields])
            uploads = [rows[name] for name in sorted(rows, key=upload_number) if name.startswith(UPLOAD)]
            return new, tuple(uploads) or None

        return release

    def put(self, slots: Array, new: Any, reply: Any) -> None:
        """Store the new states and replies of the clients at ``slots``."""
        kept = self.client_state
        if not kept:
            # copies: the clients' state stays as it is until they arrive
            state = self.host.state
            kept |= {FIELD + name: field.copy() for name, field in zip(state._fields, state, strict=True)}
        for name, field in zip(new._fields, new, strict=True):
            kept[FIELD + name][slots] = field
        for k, part in enumerate(() if reply is None else split_reply(reply)[0]):
            if UPLOAD + str(k) not in kept:
                kept[UPLOAD + str(k)] = np.zeros((kept.count, *part.shape[1:]), part.dtype)
            kept[UPLOAD + str(k)][slots] = part


def upload_number(name: str) -> int:
    """Return the position of an array in an upload; −1 for a field of the state."""
    return int(name.removeprefix(UPLOAD)) if name.startswith(UPLOAD) else -1


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


class Asynchrony(EnginePlugin):
    """Clients that arrive one after the other."""

    # As [system]: who arrives first follows from seed and numbers of samples. A sum lacks the others.
    supports = Supports.EVERYTHING & ~Supports.SUMS
    conflicts = MESSAGES["asynchrony"]

    def schedule(self, setup: RunSpec, data: Dataset, selector: Selector) -> Schedule:
        assert self.config.asynchronous is not None
        return Arrivals(self.config.asynchronous, make_devices(self.config, setup, data))

    def extend_host(self, host: Host, division: HostDivision) -> None:
        ahead = ComputedAhead(host)
        host.request_handlers |= {REST[0]: ahead.rest, ARRIVE[0]: ahead.arrive}
        host.add_transform(ahead)
