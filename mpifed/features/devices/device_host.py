"""Where clients live on a device: samples and state are tensors there, and what travels is numpy's.

Only client methods know of the device: what they receive is moved there, and what they return comes back. Servers,
messages, sums, compressors, masks and checkpoints work as they do with clients in memory.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any

import numpy as np

from mpifed.core.arrays import on, to_numpy
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.devices.device_memory import Alike, refuse_full
from mpifed.features.devices.device_sums import DeviceCollected, subtotals
from mpifed.features.devices.on_device import DeviceRows, on_device
from mpifed.federation.host import Answer, ClientMethod, Host
from mpifed.federation.request import Collected, Layout, Reply, Request
from mpifed.federation.setup import Setup
from mpifed.federation.stage import Visit
from mpifed.federation.sums import finite
from mpifed.kernels.blocks import Block
from mpifed.kernels.fill import SameSizeBlocks
from mpifed.kernels.sparse_tensor_products import tensors_of
from mpifed.kernels.tensor_products import FEW, Tensors, coarse, grouped

ROOM = 1 << 28  # bytes of samples that are computed on at a time, at most


class DeviceHost(Host):
    """The same as Host with samples and state on a ``device``.

    All blocks of clients of one size have the same number of clients, ``room``: fewer are filled up by repeating the
    first, and what comes of these is dropped. Then no bit of a client's result depends on who else is called. It is
    about as many as a round with ``cohort`` clients of all m calls, of those sizes.
    """

    def __init__(self, setup: Setup, data: Dataset, lo: int, hi: int, device: Any, cohort: int) -> None:
        super().__init__(setup, data, lo, hi)
        self.device = device
        self.adds = self.reductions["sum"]  # which this host does on its device, unless a stage has another
        self.collected = lambda count, dtype, lend: DeviceCollected(count, dtype, on(device))
        self.running = lambda ids, dtype, tree: DeviceCollected(len(ids), dtype, on(device))
        with fitting(f"the samples of clients {lo} to {hi - 1}"):
            self._move(data, cohort)
        self.lay()
        self.edges = np.cumsum([0, *map(len, self.same_size)])

    def _move(self, data: Dataset, cohort: int) -> None:
        """Move the samples to the device, one padded size after the other."""
        counts = np.bincount([coarse(int(-(-d // 4) * 4)) for d in data.sizes])
        groups = []
        for D, same in groupby(self.same_size, lambda group: coarse(group.blocks[0].b.shape[1])):
            share = -(-cohort * int(counts[D]) // self.setup.m)
            most = max(FEW, ROOM // max(1, D * data.n * self.dtype.itemsize))
            blocks = [block for group in same for block in group.blocks]
            groups.append(Alike(D, blocks, min(-(-share // FEW) * FEW, most)))
        refuse_full(self.device, groups)
        self.same_size = []
        self.blocks = []
        self.whole = []
        for alike in groups:
            self.same_size.append(self._grouped(alike, tensors_of(data.sparse, on(self.device), alike.room)))
            for block in alike.blocks:  # numpy's samples are freed now, not when Python looks for circles
                block.place = None
                block.tests.clear()
            alike.blocks.clear()

    def _grouped(self, alike: Alike, products: Tensors) -> SameSizeBlocks:
        """Clients on the device in groups, with their test samples."""
        group = grouped(alike.blocks, alike.D, products)
        begin = 0
        for block in alike.blocks:
            for rows, tests in block.tests:
                add_tests(group, begin + rows, products.moved([tests], tests.b.shape[1]))
            begin += len(block)
        return group

    def client_method(self, name: str, for_record: bool = False) -> ClientMethod:
        return on_device(super().client_method(name, for_record), name)

    def join(self) -> None:
        super().join()
        self._keep()

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self._keep()

    def _keep(self) -> None:
        """Put the state of all clients where it stays."""
        with fitting(f"the state of clients {self.lo} to {self.hi - 1}"):
            self.state = type(self.state)(*[DeviceRows(on(self.device).asarray(field)) for field in self.state])

    def _run(self, request: Request, answer: Answer) -> tuple[Collected, Array | None]:
        return super()._run(request, partial(filled, request.each is not None, answer))

    def _closed(self, request: Request, found: Any, ids: Array | None) -> tuple[Reply, int]:
        tensor = found.tensor
        layout = found.layout
        if request.last is not None:
            field = getattr(self.state, request.last)
            tensor = (field.rows if self.sorted else field.rows[self.slot]).reshape(len(field), -1)
            layout = Layout((field.shape[1:],))
            ids = None
        if request.reduce == "sum" and self.reductions["sum"] is self.adds:
            total = subtotals(tensor, ids, self.lo, self.tree)
            if finite(total):
                return Reply(total, layout), 0
        found.rows = to_numpy(tensor)
        return super()._closed(request, found, ids)


def add_tests(group: SameSizeBlocks, positions: Array, whole: Block) -> None:
    """Give test samples on the device to the blocks of the clients at ``positions`` of a group, rising."""
    numbers = group.starts.searchsorted(positions, "right") - 1
    for k in np.unique(numbers).tolist():
        found = np.flatnonzero(numbers == k)
        own = whole.part(slice(int(found[0]), int(found[-1]) + 1))
        rows = positions[found] - group.starts[k]
        group.blocks[k].tests.append((rows, own))
        own.training = group.blocks[k], rows


@contextmanager
def fitting(what: str) -> Iterator[None]:
    """UserError where ``what`` is put on a device does not fit there."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise UserError(
            f"{what} do not fit into the memory of the device: spread them over more ranks with a "
            'GPU each, or compute in memory with kernels = "auto"'
        ) from None


def filled(each: bool, answer: Answer, visit: Visit, *args: Any) -> tuple[Any, Any]:
    """The new state and the reply of the clients of a visit, computed with as many clients as their block has room for.

    ``each``: the last argument has a row for each client.
    """
    f, picks, state = visit
    count = len(f)
    room = f.block.products.room
    if count == room or (not f.block.parts and f.block.place is None):
        return answer(visit, *args)
    rows = np.concatenate([np.arange(count), np.zeros(room - count, np.intp)])
    if each:
        args = (*args[:-1], args[-1][rows])
    slots = np.arange(picks.start, picks.stop) if isinstance(picks, slice) else picks
    more = Visit(f.take(rows), slots[rows], type(state)(*[field[rows] for field in state]))
    more.f.block.tests = f.block.tests
    new, reply = answer(more, *args)
    if new is more.state:
        return state, first(reply, count)
    pairs = zip(state, more.state, new, strict=True)
    kept = type(state)(*[before if after is seen else after[:count] for before, seen, after in pairs])
    return kept, first(reply, count)


def first(reply: Any, count: int) -> Any:
    """The reply of the first ``count`` clients."""
    if isinstance(reply, dict):
        return {name: part[:count] for name, part in reply.items()}
    if isinstance(reply, tuple):
        return tuple([part[:count] for part in reply])
    return None if reply is None else reply[:count]
