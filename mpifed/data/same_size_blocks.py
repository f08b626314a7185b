"""Blocks of one padded size side by side, so that some clients of all of them are gathered in one step."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.blocks import Block, dense_block


class SameSizeBlocks:
    """``blocks`` whose clients have the same padded size; positions count the clients of all of them, in order.

    ``whole`` is one block of all these clients, of which ``blocks`` are slices; None where samples are not one array.
    What is computed once for each block (Block.once) is kept here, in one array of all clients.
    """

    def __init__(self, blocks: Sequence[Block], whole: Block | None = None) -> None:
        self.blocks = list(blocks)
        self.whole = whole
        self.starts = np.cumsum([0, *map(len, blocks)])
        self.room = max(map(len, blocks))
        self.kept: dict[str, tuple[Array, Array]] = {}  # values of all clients, and of which blocks they are there
        for k, block in enumerate(self.blocks):
            block.place = (self, k)

    def __len__(self) -> int:
        return int(self.starts[-1])

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
            return type(self.blocks[0]).gather(parts)
        made = self.whole.part(between(positions))
        made.parts = [(self, positions)]
        return made

    def values(self, key: str, compute: Callable[[Block], Array], positions: Array) -> Array:
        """``compute(block)`` of Block.once for the clients at ``positions``: (c, …)."""
        return self._computed(key, compute, np.unique(self._blocks_of(positions)))[positions]

    def values_of(self, key: str, compute: Callable[[Block], Array], k: int) -> Array:
        """The same for all clients of the k-th block."""
        return self._computed(key, compute, np.array([k]))[self.starts[k] : self.starts[k + 1]]

    def _computed(self, key: str, compute: Callable[[Block], Array], numbers: Array) -> Array:
        """The values of all clients, of which those of the blocks ``numbers`` are there."""
        missing = numbers if key not in self.kept else numbers[~self.kept[key][1][numbers]]
        for k in missing.tolist():
            found = compute(self.blocks[k])
            if key not in self.kept:
                self.kept[key] = np.empty((len(self), *found.shape[1:]), found.dtype), np.zeros(len(self.blocks), bool)
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


def between(positions: Array) -> slice | Array:
    """Rising positions as a slice where they are neighbours."""
    first, last = int(positions[0]), int(positions[-1]) + 1
    return slice(first, last) if last - first == len(positions) else positions


def dense_blocks(sizes: Sequence[Array], n: int, dtype: Any, kind: type[Block] = Block) -> list[Block]:
    """Blocks of zeros for clients of these sizes, in one array, to be filled."""
    whole = dense_block(np.concatenate(sizes), n, dtype, kind)
    edges = np.cumsum([0, *map(len, sizes)]).tolist()
    blocks = [whole.part(slice(a, b)) for a, b in pairwise(edges)]
    return SameSizeBlocks(blocks, whole).blocks
