"""Filling blocks with samples: read in pieces, labels checked, each client copied to its position in a block.

Blocks of one padded size lie side by side, so that some clients of all of them are gathered in one step.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.arrays import between, starts_of
from mpifed.core.memory import check_memory
from mpifed.core.processor import UNKNOWN
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.kernels.blocks import Block
from mpifed.kernels.compiled.products import Compiled, CompiledSparse
from mpifed.kernels.plan import dense_block, padded, plan
from mpifed.kernels.products import DENSE, Dense
from mpifed.kernels.sparse_products import CSR, sparse_block

Rows = Callable[[int, int], tuple[Any, Array]]  # Dataset.rows or rows_test
Labels = Callable[[Array], Array]  # converts labels for a problem; UserError for impossible ones
CHUNK_BYTES = 1 << 23  # approximate size of the pieces that are read


class SameSizeBlocks:
    """``blocks`` whose clients have the same padded size; positions count the clients of all of them, in order.

    ``whole`` is one block of all these clients, of which ``blocks`` are slices; None where samples are not one array.
    What is computed once for each block (Block.once) is kept here, in one array of all clients.
    """

    def __init__(self, blocks: Sequence[Block], whole: Block | None = None) -> None:
        self.whole = whole
        self.kept: dict[str, tuple[Array, Array]] = {}  # values of all clients, and of which blocks they are there
        self.tests: list[tuple[Array, Block]] = []  # blocks of test samples as they were filled, and their clients
        self._put(list(blocks))

    def __len__(self) -> int:
        return int(self.starts[-1])

    def cut(self, size: int) -> None:
        """Cut the samples anew into blocks of ``size`` clients; they do not move, and what was computed once stays."""
        assert self.whole is not None
        if not self.tests:
            pairs = zip(self.starts.tolist(), self.blocks, strict=False)
            self.tests = [(first + rows, test) for first, block in pairs for rows, test in block.tests]
        there = {key: np.repeat(known, np.diff(self.starts)) for key, (_, known) in self.kept.items()}
        self._put([self.whole.part(slice(k, k + size)) for k in range(0, len(self), size)])
        for key, clients in there.items():
            self.kept[key] = self.kept[key][0], np.logical_and.reduceat(clients, self.starts[:-1])
        for positions, test in self.tests:
            for k in np.unique(self._blocks_of(positions)).tolist():
                a, b = positions.searchsorted(self.starts[[k, k + 1]]).tolist()
                part = test if b - a == len(positions) else test.part(slice(a, b))
                part.training = (self.blocks[k], positions[a:b] - self.starts[k])
                self.blocks[k].tests.append((part.training[1], part))

    def _put(self, blocks: list[Block]) -> None:
        self.blocks = blocks
        self.starts = np.cumsum([0, *map(len, blocks)])
        self.room = max(map(len, blocks))
        for k, block in enumerate(blocks):
            block.place = (self, k)

    def pieces(self, positions: Array) -> Iterator[tuple[int, int, Block]]:
        """The clients at ``positions``, rising, in blocks: begin and end in ``positions``, and their block.

        A block of which all clients are there is given as it is; the others are made, with as many clients at most.
        """
        complete = np.zeros(0, np.intp)
        if len(positions) >= min(len(self.blocks[0]), len(self.blocks[-1])):
            counts = np.diff(positions.searchsorted(self.starts))
            complete = np.flatnonzero(counts == np.diff(self.starts))
        first = 0
        for k in complete.tolist():
            begin = int(positions.searchsorted(self.starts[k]))
            yield from self._made(positions, first, begin)
            first = begin + len(self.blocks[k])
            yield begin, first, self.blocks[k]
        yield from self._made(positions, first, len(positions))

    def take(self, positions: Array) -> Block:
        """The block of the clients at ``positions``, rising; a view where they are neighbours in one array."""
        if self.whole is None:
            found, firsts = np.unique(self._blocks_of(positions), return_index=True)
            own = np.split(positions, firsts[1:])
            parts = [(self.blocks[k], rows - self.starts[k]) for k, rows in zip(found, own, strict=True)]
            return Block.gather(parts)
        made = self.whole.part(between(positions))
        made.parts = [(self, positions)]
        return made

    def values(self, key: str, compute: Callable[[Block], Array], positions: Array) -> Array:
        """``compute(block)`` of Block.once for the clients at ``positions``: (c, …)."""
        found = self._computed(key, compute, np.unique(self._blocks_of(positions)))
        return found[self.blocks[0].xp.asarray(positions)]

    def values_of(self, key: str, compute: Callable[[Block], Array], k: int) -> Array:
        return self._computed(key, compute, np.array([k]))[self.starts[k] : self.starts[k + 1]]

    def _computed(self, key: str, compute: Callable[[Block], Array], numbers: Array) -> Array:
        """The values of all clients, of which those of the blocks ``numbers`` are there."""
        missing = numbers if key not in self.kept else numbers[~self.kept[key][1][numbers]]
        for k in missing.tolist():
            xp = self.blocks[k].xp
            found = xp.asarray(compute(self.blocks[k].copied()))
            if key not in self.kept:
                room = xp.empty((len(self), *found.shape[1:]), dtype=found.dtype)
                self.kept[key] = room, np.zeros(len(self.blocks), bool)
            values, known = self.kept[key]
            values[self.starts[k] : self.starts[k + 1]] = found
            known[k] = True
        return self.kept[key][0]

    def _blocks_of(self, positions: Array) -> Array:
        return self.starts.searchsorted(positions, "right") - 1

    def _made(self, positions: Array, first: int, last: int) -> Iterator[tuple[int, int, Block]]:
        for begin in range(first, last, self.room):
            end = min(begin + self.room, last)
            yield begin, end, self.take(positions[begin:end])


def cut(whole: Block, groups: Sequence[Array]) -> list[Block]:
    """The blocks of neighbours in ``whole``, as many clients in each as in each of ``groups``."""
    edges = np.cumsum([0, *map(len, groups)]).tolist()
    return SameSizeBlocks([whole.part(slice(a, b)) for a, b in pairwise(edges)], whole).blocks


class Layout(NamedTuple):
    """The blocks for the clients lo, lo + 1, … with ``sizes`` samples: ``groups`` holds the positions in each block.

    ``block_bytes`` is about the size of blocks of test samples, as if they were dense; ``kernels`` compute with them;
    ``group`` is how many clients a problem computes at once; ``test``: whether these are test samples.
    """

    lo: int
    sizes: Array
    groups: list[Array]
    dtype: np.dtype[Any]
    block_bytes: int = UNKNOWN
    kernels: str = "numpy"
    group: int = 1
    test: bool = False


def products_of(kernels: str, sparse: bool) -> Dense:
    """What multiplies with samples in memory, CSR or not; from there a device takes its own."""
    if kernels == "compiled":
        return CompiledSparse() if sparse else Compiled()
    return CSR if sparse else DENSE


def fill(data: Dataset, rows: Rows, layout: Layout, labels: Labels) -> list[Block]:
    """The blocks of a layout with the samples that ``rows`` reads; UserError where they do not fit into memory."""
    lo, sizes, groups, dtype, _, kernels, together, test = layout
    products = products_of(kernels, data.sparse)
    step = max(1, CHUNK_BYTES // max(1, int(sizes.mean()) * data.n * 8))
    pieces = ((k, rows(lo + k, lo + min(k + step, len(sizes)))) for k in range(0, len(sizes), step))
    if data.sparse:
        parts: dict[int, Any] = {}  # of each client that is in no block yet
        for first, (X, y) in pieces:
            y = labels(y)
            edges = starts_of(sizes[first : first + step])
            parts |= {first + i: (X[a:b], y[a:b]) for i, (a, b) in enumerate(pairwise(edges))}
        # Popped as blocks are made, so that all samples are never in memory twice.
        taken = ([parts.pop(i) for i in group] for group in groups)
        pairs = zip(taken, groups, strict=True)
        made = [sparse_block(own, sizes[group], data.n, dtype, products, together) for own, group in pairs]
        if data.columns is not None:
            for block, group in zip(made, groups, strict=True):
                block.weigh(data.columns, lo + group, test)
        return made
    what = f"the {int(sizes.sum()):,} samples of {data.n:,} features of clients {lo} to {lo + len(sizes) - 1}"
    check_memory(int(sizes.sum()) * data.n * dtype.itemsize, what)
    blocks: list[Block] = []
    wholes: list[Block] = []
    home = np.empty((len(sizes), 2), np.int32)  # of each client: which whole, and the position in it
    for _, neighbours in groupby(groups, lambda group: int(padded(sizes[group[:1]], together)[0])):
        alike = list(neighbours)
        every = np.concatenate(alike)
        in_order = slice(every[0], every[-1] + 1) if (np.diff(every) == 1).all() else every
        whole = dense_block(sizes[in_order], data.n, dtype, products, together)
        if data.columns is not None:
            whole.weigh(data.columns, lo + every, test)
        home[every, 0] = len(wholes)
        home[every, 1] = np.arange(len(every))
        wholes.append(whole)
        blocks += cut(whole, alike)
        del every
    for first, (X, y) in pieces:
        copy(X, labels(y), sizes[first : first + step], home[first : first + step], wholes)
    return blocks


def copy(X: Array, y: Array, sizes: Array, home: Array, wholes: list[Block]) -> None:
    """Copy the samples of clients with ``sizes`` (c,) to their ``home`` (c, 2): which whole, and position in it.

    Neighbours that stay neighbours and have as many samples are copied together.
    """
    same = (np.diff(sizes) == 0) & (np.diff(home[:, 0]) == 0) & (np.diff(home[:, 1]) == 1)
    firsts = np.concatenate([[0], np.flatnonzero(~same) + 1])
    counts = np.diff([*firsts, len(sizes)])
    begin = 0
    for count, d, (k, j) in zip(counts.tolist(), sizes[firsts].tolist(), home[firsts].tolist(), strict=True):
        end = begin + count * d
        if d:
            whole = wholes[k]
            (whole.unpadded or whole).A[j : j + count, :d] = X[begin:end].reshape(count, d, -1)
            whole.b[j : j + count, :d] = y[begin:end].reshape(count, d)
        begin = end


def by_padded_size(blocks: list[Block]) -> list[SameSizeBlocks]:
    """The groups of these blocks; neighbours of one padded size that are in none are put into one."""
    for _, alike in groupby([block for block in blocks if block.place is None], lambda block: block.b.shape[1]):
        SameSizeBlocks(list(alike))
    return list(dict.fromkeys(block.place[0] for block in blocks if block.place is not None))


def add_tests(blocks: list[Block], data: Dataset, layout: Layout, labels: Labels) -> None:
    """Append to ``tests`` of every block the test samples of its clients, in blocks of their own."""
    lo, _, groups, dtype, block_bytes, _, together, _ = layout
    sizes = np.asarray(data.sizes_test)[lo : lo + sum(map(len, groups))]
    split = [
        (k, rows)
        for k, group in enumerate(groups)
        for rows in plan(sizes[group], data.n, dtype.itemsize, block_bytes, group=together)
        if sizes[group[rows[0]]]
    ]
    parts = layout._replace(sizes=sizes, groups=[groups[k][rows] for k, rows in split], test=True)
    tests = fill(data, data.rows_test, parts, labels)
    for (k, rows), block in zip(split, tests, strict=True):
        blocks[k].tests.append((rows, block))
        block.training = (blocks[k], rows)
