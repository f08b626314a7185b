"""Filling of blocks with samples, which are read in pieces, checked and copied to their clients' positions.

Blocks of one padded size lie side by side in one array, so that clients of several blocks are gathered in one step.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.arrays import as_slice, row_offsets
from mpifed.core.memory import check_memory
from mpifed.core.processor import DEFAULT_BLOCK_BYTES
from mpifed.core.roles import TRAINING
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.kernels.blocks import Block
from mpifed.kernels.compiling import CompiledProducts, CompiledSparseProducts
from mpifed.kernels.plan import make_dense_block, pad_sizes, plan_blocks
from mpifed.kernels.products import DENSE, DenseProducts
from mpifed.kernels.sparse_products import CSR, make_sparse_block

LabelConverter = Callable[[Array], Array]  # converts labels for a problem; UserError for impossible ones
CHUNK_BYTES = 1 << 23  # approximate size of the pieces that are read


class SameSizeBlocks:
    """A group of ``blocks`` of the same padded size; positions count the clients of all of them, in order.

    ``full`` is one block of all these clients, of which ``blocks`` are slices; None if samples are not one array.
    Values computed once for each block (Block.once) are cached here, in one array of all clients.
    """

    def __init__(self, blocks: Sequence[Block], full: Block | None = None) -> None:
        self.full = full
        self.cached: dict[str, tuple[Array, Array]] = {}  # values of all clients, and the blocks that have theirs
        self.by_client: dict[str, tuple[Array, Array]] = {}  # values of all clients, and the clients that have theirs
        self.sample_space_clients = 0  # how many clients have them
        self.held: list[tuple[str, Array, Block]] = []  # blocks of test and validation samples as filled, their clients
        self._set_blocks(list(blocks))

    def __len__(self) -> int:
        return int(self.starts[-1])

    def cut(self, size: int) -> None:
        """Cut the samples anew into blocks of ``size`` clients; samples do not move, and cached values stay."""
        assert self.full is not None
        if not self.held:
            for first, block in zip(self.starts.tolist(), self.blocks, strict=False):
                for role, parts in block.held.items():
                    self.held += [(role, first + rows, part) for rows, part in parts]
        cached = {key: np.repeat(flags, np.diff(self.starts)) for key, (_, flags) in self.cached.items()}
        self._set_blocks([self.full.part(slice(k, k + size)) for k in range(0, len(self), size)])
        for key, clients in cached.items():
            self.cached[key] = self.cached[key][0], np.logical_and.reduceat(clients, self.starts[:-1])
        for role, positions, held in self.held:
            for k in np.unique(self._blocks_of(positions)).tolist():
                a, b = positions.searchsorted(self.starts[[k, k + 1]]).tolist()
                part = held if b - a == len(positions) else held.part(slice(a, b))
                part.training = (self.blocks[k], positions[a:b] - self.starts[k])
                self.blocks[k].held.setdefault(role, []).append((part.training[1], part))

    def _set_blocks(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self.starts = np.cumsum([0, *map(len, blocks)])
        self.room = max(map(len, blocks))
        for k, block in enumerate(blocks):
            block.group_position = (self, k)

    def pieces(self, positions: Array) -> Iterator[tuple[int, int, Block]]:
        """Yield the clients at rising ``positions`` in blocks: begin and end in ``positions``, and their block.

        A block of which all clients are asked for is yielded itself; others are made, with as many clients at most.
        """
        complete = np.zeros(0, np.intp)
        if len(positions) >= min(len(self.blocks[0]), len(self.blocks[-1])):
            counts = np.diff(positions.searchsorted(self.starts))
            complete = np.flatnonzero(counts == np.diff(self.starts))
        first = 0
        for k in complete.tolist():
            begin = int(positions.searchsorted(self.starts[k]))
            yield from self._make_pieces(positions, first, begin)
            first = begin + len(self.blocks[k])
            yield begin, first, self.blocks[k]
        yield from self._make_pieces(positions, first, len(positions))

    def take(self, positions: Array) -> Block:
        """Return the block of the clients at rising ``positions``; a view if they are neighbours in one array."""
        if self.full is None:
            numbers, firsts = np.unique(self._blocks_of(positions), return_index=True)
            runs = np.split(positions, firsts[1:])
            parts = [(self.blocks[k], rows - self.starts[k]) for k, rows in zip(numbers, runs, strict=True)]
            return Block.gather(parts)
        block = self.full.part(as_slice(positions))
        block.parts = [(self, positions)]
        return block

    def values(self, key: str, compute: Callable[[Block], Array], positions: Array) -> Array:
        """Return the values of Block.once for the clients at ``positions``: (c, …)."""
        values = self._compute_missing(key, compute, np.unique(self._blocks_of(positions)))
        return values[self.blocks[0].xp.asarray(positions)]

    def values_of(self, key: str, compute: Callable[[Block], Array], k: int) -> Array:
        """Return the values of Block.once for the clients of the k-th block: (c, …)."""
        return self._compute_missing(key, compute, np.array([k]))[self.starts[k] : self.starts[k + 1]]

    def client_values(self, key: str, compute: Callable[[Block], Array], positions: Array) -> Array:
        """Return the values of Block.client_values for the clients at rising ``positions``: (c, …)."""
        missing = positions if key not in self.by_client else positions[~self.by_client[key][1][positions]]
        if len(missing):
            result = compute(self.take(missing))
            if key not in self.by_client:
                # memory that is never written is never taken from the machine
                empty = np.empty((len(self), *result.shape[1:]), result.dtype)
                self.by_client[key] = empty, np.zeros(len(self), bool)
            self.by_client[key][0][missing] = result
            self.by_client[key][1][missing] = True
            self.sample_space_clients += len(missing)
        values: Array = self.by_client[key][0][as_slice(positions)]
        return values

    def _compute_missing(self, key: str, compute: Callable[[Block], Array], numbers: Array) -> Array:
        """Compute the missing values of the blocks ``numbers``, and return the array of all clients."""
        missing = numbers if key not in self.cached else numbers[~self.cached[key][1][numbers]]
        for k in missing.tolist():
            xp = self.blocks[k].xp
            result = xp.asarray(compute(self.blocks[k].in_cpu_memory()))
            if key not in self.cached:
                empty = xp.empty((len(self), *result.shape[1:]), dtype=result.dtype)
                self.cached[key] = empty, np.zeros(len(self.blocks), bool)
            values, flags = self.cached[key]
            values[self.starts[k] : self.starts[k + 1]] = result
            flags[k] = True
        return self.cached[key][0]

    def _blocks_of(self, positions: Array) -> Array:
        return self.starts.searchsorted(positions, "right") - 1

    def _make_pieces(self, positions: Array, first: int, last: int) -> Iterator[tuple[int, int, Block]]:
        for begin in range(first, last, self.room):
            end = min(begin + self.room, last)
            yield begin, end, self.take(positions[begin:end])


def cut_blocks(full: Block, groups: Sequence[Array]) -> list[Block]:
    """Cut a full block into blocks of neighbours, with as many clients each as in each of ``groups``."""
    edges = np.cumsum([0, *map(len, groups)]).tolist()
    return SameSizeBlocks([full.part(slice(a, b)) for a, b in pairwise(edges)], full).blocks


class BlockLayout(NamedTuple):
    """The blocks of the clients lo, lo + 1, … with ``sizes`` samples: ``groups`` holds the positions in each block.

    ``block_bytes`` is the approximate size of blocks of test samples, as if they were dense; ``kernels`` compute with
    them; ``group`` is how many clients a problem computes at once; ``role`` is that of the samples.
    """

    lo: int
    sizes: Array
    groups: list[Array]
    dtype: np.dtype[Any]
    block_bytes: int = DEFAULT_BLOCK_BYTES
    kernels: str = "numpy"
    group: int = 1
    role: str = TRAINING


def choose_products(kernels: str, sparse: bool) -> DenseProducts:
    """Choose the products of samples in memory, CSR or dense; samples on a device have their own."""
    if kernels == "compiled":
        return CompiledSparseProducts() if sparse else CompiledProducts()
    return CSR if sparse else DENSE


def fill_blocks(data: Dataset, layout: BlockLayout, labels: LabelConverter) -> list[Block]:
    """Make the blocks of a layout with the samples of its role; UserError if they do not fit into memory."""
    lo, sizes, groups, dtype, _, kernels, together, role = layout
    products = choose_products(kernels, data.sparse)
    step = max(1, CHUNK_BYTES // max(1, int(sizes.mean()) * data.n * 8))
    pieces = ((k, data.read(role, lo + k, lo + min(k + step, len(sizes)))) for k in range(0, len(sizes), step))
    if data.sparse:
        parts: dict[int, Any] = {}  # samples of each client that is in no block yet
        for first, (X, y) in pieces:
            y = labels(y)
            edges = row_offsets(sizes[first : first + step])
            parts |= {first + i: (X[a:b], y[a:b]) for i, (a, b) in enumerate(pairwise(edges))}
        # Popped as blocks are made, so that samples are not all in memory twice.
        taken = ([parts.pop(i) for i in group] for group in groups)
        pairs = zip(taken, groups, strict=True)
        filled = [make_sparse_block(part, sizes[group], data.n, dtype, products, together) for part, group in pairs]
        if data.columns is not None:
            for block, group in zip(filled, groups, strict=True):
                block.weigh(data.columns, lo + group, role)
        return filled
    what = f"the {int(sizes.sum()):,} samples of {data.n:,} features of clients {lo} to {lo + len(sizes) - 1}"
    check_memory(int(sizes.sum()) * data.n * dtype.itemsize, what)
    blocks: list[Block] = []
    full_blocks: list[Block] = []
    home = np.empty((len(sizes), 2), np.int32)  # of each client: the number of its full block, and the position there
    for _, neighbours in groupby(groups, lambda group: int(pad_sizes(sizes[group[:1]], together)[0])):
        same_size = list(neighbours)
        positions = np.concatenate(same_size)
        in_order = slice(positions[0], positions[-1] + 1) if (np.diff(positions) == 1).all() else positions
        full = make_dense_block(sizes[in_order], data.n, dtype, products, together)
        if data.columns is not None:
            full.weigh(data.columns, lo + positions, role)
        home[positions, 0] = len(full_blocks)
        home[positions, 1] = np.arange(len(positions))
        full_blocks.append(full)
        blocks += cut_blocks(full, same_size)
        del positions
    for first, (X, y) in pieces:
        copy_samples(X, labels(y), sizes[first : first + step], home[first : first + step], full_blocks)
    return blocks


def copy_samples(X: Array, y: Array, sizes: Array, home: Array, full_blocks: list[Block]) -> None:
    """Copy the samples of clients with ``sizes`` (c,) to their ``home`` (c, 2): number of full block, position there.

    Neighbours that stay neighbours and have equally many samples are copied together.
    """
    same = (np.diff(sizes) == 0) & (np.diff(home[:, 0]) == 0) & (np.diff(home[:, 1]) == 1)
    firsts = np.concatenate([[0], np.flatnonzero(~same) + 1])
    counts = np.diff([*firsts, len(sizes)])
    begin = 0
    for count, d, (k, j) in zip(counts.tolist(), sizes[firsts].tolist(), home[firsts].tolist(), strict=True):
        end = begin + count * d
        if d:
            full = full_blocks[k]
            (full.unpadded or full).A[j : j + count, :d] = X[begin:end].reshape(count, d, -1)
            full.b[j : j + count, :d] = y[begin:end].reshape(count, d)
        begin = end


def group_by_padded_size(blocks: list[Block]) -> list[SameSizeBlocks]:
    """Return the groups of these blocks; neighbours of one padded size without a group are put into one."""
    for _, neighbours in groupby(
        [block for block in blocks if block.group_position is None], lambda block: block.b.shape[1]
    ):
        SameSizeBlocks(list(neighbours))
    return list(dict.fromkeys(block.group_position[0] for block in blocks if block.group_position is not None))


def add_held_out(blocks: list[Block], data: Dataset, layout: BlockLayout, labels: LabelConverter, role: str) -> None:
    """Put into ``held`` of every block the samples of its clients in another role, in blocks of their own."""
    lo, _, groups, dtype, block_bytes, _, together, _ = layout
    sizes = np.asarray(data.sizes_of(role))[lo : lo + sum(map(len, groups))]
    split = [
        (k, rows)
        for k, group in enumerate(groups)
        for rows in plan_blocks(sizes[group], data.n, dtype.itemsize, block_bytes, group=together)
        if sizes[group[rows[0]]]
    ]
    parts = layout._replace(sizes=sizes, groups=[groups[k][rows] for k, rows in split], role=role)
    for (k, rows), block in zip(split, fill_blocks(data, parts, labels), strict=True):
        blocks[k].held.setdefault(role, []).append((rows, block))
        block.training = (blocks[k], rows)
