"""Blocks whose samples are tensors on a device: a GPU, or the CPU as PyTorch computes on it.

Products are batched ones (torch.bmm), with samples as the left factor and columns as the right: so the bits of a client
do not depend on its place in memory, which they do on CPUs where samples are the right factor. Nor do they depend on
who else is in the batch where there are at least FEW clients; smaller blocks are filled up with zeros for a product.

What is computed once for each client, such as eigenvalues and inverses of Gram matrices, numpy computes from a copy of
the samples. So these constants have the bits that they have in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, Self

import numpy as np

from mpifed.core.arrays import Namespace, on, pytorch, to_numpy
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.kernels.fill import SameSizeBlocks, between

FEW = 8  # clients from which a batched product has bits that do not depend on their number
TENSORS = ("A", "b", "d", "w")


class DeviceBlock(Block):
    """The samples of c clients as tensors: ``A`` (c, D, n), ``b`` and ``w`` (c, D), ``d`` (c,) as real numbers.

    ``sizes`` (c,) are the numbers of samples in the memory of the CPU. The tensors of a part of another block are made
    when they are first used. ``room`` is how many clients the blocks of a run have, or are filled up to.
    """

    def __init__(self, tensors: dict[str, Any], sizes: Array, n: int, xp: Namespace, room: int = FEW) -> None:
        vars(self).update(tensors)
        self.sizes = sizes
        self.n = n
        self.xp = xp
        self.room = room
        self.source: tuple[Any, Any] | None = None  # the block that this is a part of, and the clients there
        self.tests = []
        self.training: tuple[Block, Array] | None = None
        self.cache = {}
        self.notes = {}
        self.parts = []
        self.place = None

    @classmethod
    def moved(cls, blocks: Sequence[Block], D: int, xp: Namespace, room: int = FEW) -> Self:
        """The samples of ``blocks`` in memory in one block on a device, each client with D rows."""
        first = blocks[0]
        sizes = np.concatenate([block.d for block in blocks])
        count = len(sizes)
        kind = xp.asarray(first.b[:0]).dtype
        tensors = {"A": xp.zeros((count, D, first.n), dtype=kind)}
        tensors |= {name: xp.zeros((count, D), dtype=kind) for name in ("b", "w")}
        begin = 0
        for block in blocks:
            end = begin + len(block)
            for name, tensor in tensors.items():
                tensor[begin:end, : block.b.shape[1]] = xp.asarray(getattr(block, name))
            begin = end
        return cls(tensors | {"d": xp.asarray(sizes, dtype=xp.float64)}, sizes, first.n, xp, room)

    def __getattr__(self, name: str) -> Any:
        """A tensor that has not been made yet."""
        source = vars(self).get("source")
        if name not in TENSORS or source is None:
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        block, rows = source
        value = getattr(block, name)[rows]
        setattr(self, name, value)
        return value

    def __len__(self) -> int:
        return len(self.sizes)

    @property
    def counts(self) -> Any:  # type: ignore[override]
        return self.d

    def part(self, rows: slice | Array) -> Self:
        """The clients at positions ``rows``, in any order and also more than once."""
        made = type(self)({}, self.sizes[rows], self.n, self.xp, self.room)
        made.source = self, (rows if isinstance(rows, slice) else self.xp.asarray(rows))
        return made

    def take(self, rows: Array) -> Self:
        """The same, with what has been computed once for each of them."""
        if self.parts:
            group, positions = self.parts[0]
        elif self.place is not None:
            group, k = self.place
            positions = np.arange(group.starts[k], group.starts[k + 1])
        else:
            return self.part(rows)
        made: Self = group.whole.part(positions[rows])
        made.parts = [(group, positions[rows])]
        return made

    def once(self, key: str, compute: Callable[[Block], Array]) -> Any:
        if self.parts:
            group, positions = self.parts[0]
            return group.values(key, compute, positions)
        if self.place is not None:
            return super().once(key, compute)
        if key not in self.cache:
            self.cache[key] = self.xp.asarray(compute(self.copied()))
        return self.cache[key]

    def copied(self) -> Block:
        made = Block(to_numpy(self.A), to_numpy(self.b), self.sizes, self.n, to_numpy(self.w))
        if self.training is not None:
            other, positions = self.training
            made.training = other.copied(), positions
        return made

    def batch(self, picks: Any, w: Any) -> Self:
        xp = self.xp
        whole: Any = self
        places: Any = slice(0, len(self))
        if self.source is not None:  # the other samples of its clients are not copied for it
            whole, places = self.source
        D = whole.b.shape[1]
        places = xp.arange(places.start, places.stop) if isinstance(places, slice) else places
        rows: Any = (xp.asarray(picks) + D * places[:, None]).reshape(-1)
        A = whole.A.reshape(-1, self.n).index_select(0, rows).reshape(len(self), -1, self.n)
        b = whole.b.reshape(-1).index_select(0, rows).reshape(len(self), -1)
        return type(self)({"A": A, "b": b, "d": self.d, "w": xp.asarray(w)}, self.sizes, self.n, xp, self.room)

    def matvec(self, X: Any) -> Any:
        A, X = several(self.A, self._rows(X))
        return pytorch().bmm(A, X[:, :, None])[: len(self), :, 0]

    def vecmat(self, R: Any) -> Any:
        A, R = several(self.A, R)
        return pytorch().bmm(A.mT, R[:, :, None])[: len(self), :, 0]

    def real(self, numbers: Any) -> Any:
        return numbers.to(self.b.dtype)

    def multiply(self, K: Any, V: Any) -> Any:
        K, V = several(K, self._rows(V))
        return pytorch().bmm(K, V[:, :, None])[: len(self), :, 0]

    def matmat(self, W: Any) -> Any:
        A, W = several(self.A, W if W.ndim == 3 else W.expand(len(self), *W.shape))
        return pytorch().bmm(A, W.mT)[: len(self)]

    def tmatmat(self, R: Any) -> Any:
        A, R = several(self.A, R.mT.contiguous())  # numbers of a sum side by side, as in the other products
        return pytorch().bmm(A.mT, R.mT)[: len(self)].mT

    def dense(self, i: int) -> Any:
        return self.A[i, : int(self.sizes[i])]

    def _rows(self, X: Any) -> Any:
        return X if X.ndim == 2 else X.expand(len(self), self.n)


def several(*parts: Any) -> tuple[Any, ...]:
    """The same arrays with zeros for further clients where there are fewer than FEW."""
    count = len(parts[0])
    if count >= FEW:
        return parts
    return tuple([pytorch().cat([part, part.new_zeros((FEW - count, *part.shape[1:]))]) for part in parts])


class DeviceGroup(SameSizeBlocks):
    """Device blocks of clients of one padded size; what is computed once for each of them is a tensor."""

    whole: Any

    def take(self, positions: Array) -> Any:
        made = self.whole.part(between(positions))
        made.parts = [(self, positions)]
        return made

    def values(self, key: str, compute: Callable[[Block], Array], positions: Array) -> Any:
        numbers = np.unique(self._blocks_of(positions))
        return self._computed(key, compute, numbers)[self.whole.xp.asarray(positions)]

    def _computed(self, key: str, compute: Callable[[Block], Array], numbers: Array) -> Any:
        missing = numbers if key not in self.kept else numbers[~self.kept[key][1][numbers]]
        for k in missing.tolist():
            found = self.whole.xp.asarray(compute(self.blocks[k].copied()))
            if key not in self.kept:
                room = found.new_empty((len(self), *found.shape[1:]))
                self.kept[key] = room, np.zeros(len(self.blocks), bool)
            values, known = self.kept[key]
            values[self.starts[k] : self.starts[k + 1]] = found
            known[k] = True
        return self.kept[key][0]


def grouped(blocks: Sequence[Block], D: int, device: Any, room: int, kind: Any) -> DeviceGroup:
    """The clients of blocks in memory, in order, in blocks of ``room`` clients on a device."""
    whole = kind.moved(blocks, D, on(device), room)
    edges = [*range(0, len(whole), room), len(whole)]
    return DeviceGroup([whole.part(slice(a, b)) for a, b in pairwise(edges)], whole)


def coarse(D: int) -> int:
    """The number of rows that clients of D rows have on a device: at most four sizes from a power of two to the next.

    It depends on the client alone, and few sizes make large blocks.
    """
    step = max(4, 1 << max(0, D.bit_length() - 3))
    return -(-D // step) * step
