"""Host whose clients live on a device: samples and state are tensors there, messages are numpy arrays.

Only client methods know of the device: their arguments are moved there, and their results come back. Servers, messages,
sums, compressors, masks and checkpoints work as they do with clients in memory.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.arrays import Namespace, device_namespace, to_numpy
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.engine.devices.on_device import DeviceRows, wrap_method
from mpifed.engine.plugin import EnginePlugin, MakeHost
from mpifed.features.settings import DEVICES
from mpifed.federation.callback import Callback
from mpifed.federation.host import ClientCall, Host
from mpifed.federation.method import ClientMethod
from mpifed.federation.request import Reply, ReplyLayout, Request, RowBuffer, entry_count
from mpifed.federation.setup import RunSpec
from mpifed.federation.sums import Subtree, all_finite, sum_scattered
from mpifed.federation.transform import ClientBatch
from mpifed.kernels.blocks import Block
from mpifed.kernels.fill import SameSizeBlocks
from mpifed.kernels.tensor_products import (
    MIN_CLIENTS,
    TensorProducts,
    choose_tensor_products,
    group_on_device,
    round_rows,
)
from mpifed.kernels.torch_device import free_bytes, kernel_device


class DeviceRowBuffer(RowBuffer):
    """Replies of ``count`` clients as ``tensor`` (count, N) on a device, in client order."""

    def __init__(self, count: int, dtype: Any, xp: Namespace) -> None:
        super().__init__(count, dtype, lend=True)
        self.xp = xp
        self.tensor: Any = xp.asarray(self.rows)

    def put(self, rows: slice | Array, parts: tuple[Array, ...], names: tuple[str, ...] = ()) -> None:
        """Store the replies of one block in ``rows``."""
        flat = [self.move(part).reshape(len(part), -1) for part in parts]
        if self.layout is None or not self.layout.shapes:
            self.layout = ReplyLayout(tuple([part.shape[1:] for part in parts]), names)
            columns = sum(entry_count(shape) for shape in self.layout.shapes)
            if len(flat) == 1 and len(flat[0]) == len(self.tensor) and isinstance(rows, slice):
                self.tensor = flat[0]
                return
            self.tensor = self.tensor.new_empty((len(self.tensor), columns))
        column = 0
        for part in flat:
            self.tensor[rows, column : column + part.shape[1]] = part
            column += part.shape[1]

    def move(self, part: Any) -> Any:
        """Return a part of a reply on the device, in the type of messages."""
        return self.xp.asarray(part.rows if isinstance(part, DeviceRows) else part, dtype=self.tensor.dtype)


def sum_subtrees(rows: Any, ids: Array | None, lo: int, tree: list[Subtree]) -> Array:
    """Return the sums (k, N) of k subtrees over ``rows`` (c, N) of the clients ``ids``, rising; None: lo, lo+1 …"""
    total = np.zeros((len(tree), rows.shape[1]), to_numpy(rows[:0]).dtype)
    for k, (level, index) in enumerate(tree):
        start, stop = index << level, (index + 1) << level
        a, b = (start - lo, stop - lo) if ids is None else np.searchsorted(ids, [start, stop]).tolist()
        part = rows[a:b]
        if len(part):
            total[k] = to_numpy(sum_dense(part) if ids is None else sum_scattered(part, ids[a:b] - start))
    total += 0.0
    return total


def sum_dense(rows: Any) -> Any:
    """Return the tree sum of rows 0, 1, 2 …"""
    while len(rows) > 1:
        pairs = len(rows) // 2
        half = rows.new_empty(((len(rows) + 1) // 2, rows.shape[1]))
        half[:pairs] = rows[0 : 2 * pairs : 2] + rows[1 : 2 * pairs : 2]
        half[pairs:] = rows[2 * pairs :]
        rows = half
    return rows[0]


MB = 1e6


class SameSizeClients(NamedTuple):
    """Clients of blocks in memory that get ``D`` rows each on the device and are computed ``room`` at a time."""

    D: int
    blocks: list[Block]
    room: int

    def bytes(self) -> int:
        """Return the bytes of these clients on the device, with their test and validation samples."""
        parts = [part for block in self.blocks for held in block.held.values() for _, part in held]
        return sum(client_bytes(part, part.b.shape[1]) for part in parts) + sum(
            client_bytes(block, self.D) for block in self.blocks
        )


def client_bytes(block: Block, D: int) -> int:
    """Return the bytes of a block's clients with D rows each on a device."""
    return block.products.device_bytes(block, D)


def refuse_full(device: Any, groups: Sequence[SameSizeClients]) -> None:
    """Raise UserError where the samples of these clients do not fit into the free memory of a device."""
    room = free_bytes(device)
    needed = sum(alike.bytes() for alike in groups)
    if room is not None and needed > room:
        raise UserError(
            f"samples take {needed / MB:,.1f} MB on the device, which has {room / MB:,.1f} MB free for them: take one "
            "with more memory, spread them over more ranks with a GPU each, or compute in memory with "
            'kernels = "auto"'
        )


ROOM = 1 << 28  # most bytes of samples that are computed on at a time


class DeviceHost(Host):
    """Host with samples and state on a ``device``.

    Blocks of one size all compute ``room`` clients: fewer are filled up by repeating the first client, and the results
    of the copies are dropped. So no bit of a client's result depends on who else is called. ``room`` is about the
    number of clients of that size that a round with ``cohort`` clients of all m calls.
    """

    def __init__(self, setup: RunSpec, data: Dataset, lo: int, hi: int, device: Any, cohort: int) -> None:
        super().__init__(setup, data, lo, hi)
        self.device = device
        self.adds = self.reductions["sum"]  # done on the device, unless a stage replaces it
        with refuse_overflow(f"the samples of clients {lo} to {hi - 1}"):
            self._move_samples(data, cohort)
        self.index_blocks()
        self.edges = np.cumsum([0, *map(len, self.same_size)])

    def _move_samples(self, data: Dataset, cohort: int) -> None:
        """Move the samples to the device, one padded size at a time."""
        counts = np.bincount([round_rows(int(-(-d // 4) * 4)) for d in data.sizes])
        groups = []
        for D, same in groupby(self.same_size, lambda group: round_rows(group.blocks[0].b.shape[1])):
            expected = -(-cohort * int(counts[D]) // self.setup.m)
            maximum = max(MIN_CLIENTS, ROOM // max(1, D * data.n * self.dtype.itemsize))
            blocks = [block for group in same for block in group.blocks]
            groups.append(SameSizeClients(D, blocks, min(-(-expected // MIN_CLIENTS) * MIN_CLIENTS, maximum)))
        refuse_full(self.device, groups)
        self.same_size = []
        self.blocks = []
        self.full_blocks = []
        for alike in groups:
            self.same_size.append(
                self._group(alike, choose_tensor_products(data.sparse, device_namespace(self.device), alike.room))
            )
            for block in alike.blocks:  # free numpy's samples now, not when Python collects circles
                block.group_position = None
                block.held.clear()
            alike.blocks.clear()

    def _group(self, alike: SameSizeClients, products: TensorProducts) -> SameSizeBlocks:
        """Return the clients of ``alike`` on the device in groups, with their test and validation samples."""
        group = group_on_device(alike.blocks, alike.D, products)
        begin = 0
        for block in alike.blocks:
            for role, held in block.held.items():
                for rows, part in held:
                    add_held_out(group, role, begin + rows, products.move_blocks([part], part.b.shape[1]))
            begin += len(block)
        return group

    def client_method(self, name: str, for_record: bool = False) -> ClientMethod:
        return wrap_method(super().client_method(name, for_record), name)

    def join(self) -> None:
        super().join()
        self._move_state()

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self._move_state()

    def _move_state(self) -> None:
        """Put the state of all clients on the device."""
        with refuse_overflow(f"the state of clients {self.lo} to {self.hi - 1}"):
            self.state = type(self.state)(
                *[DeviceRows(device_namespace(self.device).asarray(field)) for field in self.state]
            )

    def _run(self, request: Request, answer: ClientCall) -> tuple[RowBuffer, Array | None]:
        return super()._run(request, partial(fill_block, request.each is not None, answer))

    def make_buffer(self, request: Request, ids: Array, count: int) -> RowBuffer:
        return DeviceRowBuffer(count, self.dtype, device_namespace(self.device))

    def _reduce_replies(self, request: Request, collected: Any, ids: Array | None) -> tuple[Reply, int]:
        tensor = collected.tensor
        layout = collected.layout
        if request.last is not None:
            field = getattr(self.state, request.last)
            tensor = (field.rows if self.sorted else field.rows[self.slot]).reshape(len(field), -1)
            layout = ReplyLayout((field.shape[1:],))
            ids = None
        if request.reduce == "sum" and self.reductions["sum"] is self.adds:
            total = sum_subtrees(tensor, ids, self.lo, self.tree)
            if all_finite(total):
                return Reply(total, layout), 0
        collected.rows = to_numpy(tensor)
        return super()._reduce_replies(request, collected, ids)


def add_held_out(group: SameSizeBlocks, role: str, positions: Array, held: Block) -> None:
    """Give samples ``held`` on the device to the blocks of the clients at ``positions``, rising, of a group."""
    numbers = group.starts.searchsorted(positions, "right") - 1
    for k in np.unique(numbers).tolist():
        matches = np.flatnonzero(numbers == k)
        of_block = held.part(slice(int(matches[0]), int(matches[-1]) + 1))
        rows = positions[matches] - group.starts[k]
        group.blocks[k].held.setdefault(role, []).append((rows, of_block))
        of_block.training = group.blocks[k], rows


@contextmanager
def refuse_overflow(what: str) -> Iterator[None]:
    """Raise UserError where ``what`` does not fit into the memory of a device."""
    try:
        yield
    except RuntimeError as error:
        if type(error).__name__ != "OutOfMemoryError":
            raise
        raise UserError(
            f"{what} do not fit into the memory of the device: spread them over more ranks with a "
            'GPU each, or compute in memory with kernels = "auto"'
        ) from None


def fill_block(each: bool, answer: ClientCall, batch: ClientBatch, *args: Any) -> tuple[Any, Any]:
    """Return new state and reply of a batch's clients, computed with as many clients as their block has room for.

    ``each``: the last argument has a row for each client.
    """
    f, picks, state = batch
    count = len(f)
    room = f.block.products.room
    if count == room or (not f.block.parts and f.block.group_position is None):
        return answer(batch, *args)
    rows = np.concatenate([np.arange(count), np.zeros(room - count, np.intp)])
    if each:
        args = (*args[:-1], args[-1][rows])
    slots = np.arange(picks.start, picks.stop) if isinstance(picks, slice) else picks
    padded = ClientBatch(f.take(rows), slots[rows], type(state)(*[field[rows] for field in state]))
    padded.f.block.held = f.block.held
    new, reply = answer(padded, *args)
    if new is padded.state:
        return state, take_first(reply, count)
    triples = zip(state, padded.state, new, strict=True)
    new = type(state)(*[before if after is seen else after[:count] for before, seen, after in triples])
    return new, take_first(reply, count)


def take_first(reply: Any, count: int) -> Any:
    """Return the reply of the first ``count`` clients."""
    if isinstance(reply, dict):
        return {name: part[:count] for name, part in reply.items()}
    if isinstance(reply, tuple):
        return tuple([part[:count] for part in reply])
    return None if reply is None else reply[:count]


class DeviceKernels(EnginePlugin, Callback):
    """Samples and state as tensors on a device."""

    # Tensors hold the same numbers and sums run along the same tree. Parts that cannot compute there say so.
    supports = Supports.EVERYTHING

    sparse = False
    kernels = ""

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        self.sparse = data.sparse
        return setup

    def host_maker(self, kernels: str) -> MakeHost | None:
        # a study may leave kernels open: then they are known only once the ranks have looked for GPUs
        self.kernels = kernels
        return make_device_host if kernels in DEVICES else None

    def notes(self) -> Iterator[str]:
        if self.sparse and self.kernels == "cuda":
            yield (
                "sparse products on a GPU were not tested: the last bits of this run may depend on the number of ranks"
            )


def make_device_host(setup: RunSpec, data: Dataset, clients: tuple[int, int], cohort: int) -> Host:
    """Return a host whose clients are tensors on the device of this rank."""
    return DeviceHost(setup, data, *clients, kernel_device(setup.kernels), cohort)
