"""Products with samples that are tensors on a device: a GPU, or the CPU as PyTorch computes on it.

Products are batched ones (torch.bmm), and blocks of few clients are filled up with zeros for a product, so that no bit
of a client depends on who else is in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mpifed.core.arrays import Namespace, pytorch, to_numpy
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.kernels.fill import SameSizeBlocks
from mpifed.kernels.products import DENSE, Dense, Samples

FEW = 8  # clients from which a batched product has bits that do not depend on their number


class Tensors(Dense):
    """Products with A (c, D, n), a tensor; so are ``b`` and ``w`` (c, D), and ``d`` (c,), real numbers.

    ``room`` is how many clients the blocks of a run have, or are filled up to.
    """

    memory: Dense | None = DENSE

    def __init__(self, xp: Namespace, room: int = FEW) -> None:
        self.xp = xp
        self.room = room

    def moved(self, blocks: Sequence[Block], D: int) -> Block:
        """The samples of ``blocks`` in memory in one block on a device, each client with D rows."""
        xp = self.xp
        sizes = np.concatenate([block.sizes for block in blocks])
        kind = xp.asarray(blocks[0].b[:0]).dtype
        b, w = (xp.zeros((len(sizes), D), dtype=kind) for _ in range(2))
        begin = 0
        for block in blocks:
            end = begin + len(block)
            b[begin:end, : block.b.shape[1]] = xp.asarray(block.b)
            w[begin:end, : block.b.shape[1]] = xp.asarray(block.w)
            begin = end
        made = Block(self.of_memory(blocks, D), b, xp.asarray(sizes, dtype=xp.float64), blocks[0].n, w, self)
        made.sizes = sizes
        return made

    def of_memory(self, blocks: Sequence[Block], D: int) -> Any:
        """A of the samples of ``blocks``, each client with D rows."""
        xp = self.xp
        A = xp.zeros((sum(map(len, blocks)), D, blocks[0].n), dtype=xp.asarray(blocks[0].b[:0]).dtype)
        begin = 0
        for block in blocks:
            end = begin + len(block)
            A[begin:end, : block.b.shape[1]] = xp.asarray(block.A)
            begin = end
        return A

    def in_memory(self, block: Samples) -> Any:
        return to_numpy(block.A)

    def part(self, block: Samples, rows: slice | Array) -> tuple[Any, None, tuple[Any, Any]]:
        # One copy of the positions to the device serves labels, weights and samples.
        at = rows if isinstance(rows, slice) else self.xp.asarray(rows)
        if block.source is None:
            return at, None, (block, at)
        # A part of a part comes from the first block: what lies between never makes its own samples.
        whole, places = block.source
        return at, None, (whole, self.places(places)[at])

    def places(self, rows: Any) -> Any:
        """Positions as a tensor."""
        return self.xp.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows

    def batch(self, block: Samples, picks: Array, w: Array) -> tuple[Any, Any, Any]:
        whole: Any = block
        places: Any = slice(0, len(block))
        if block.source is not None:
            whole, places = block.source
        count = len(block)
        rows = (self.xp.asarray(picks) + whole.b.shape[1] * self.places(places)[:, None]).reshape(-1)
        A = whole.A.reshape(-1, block.n).index_select(0, rows).reshape(count, -1, block.n)
        b = whole.b.reshape(-1).index_select(0, rows).reshape(count, -1)
        return A, b, self.xp.asarray(w)

    # In every product samples are the left factor and what they are multiplied with has its numbers in columns. Where
    # they are the right factor, the bits of a client depend on its place in memory on CPUs: MKL takes other kernels.

    def matvec(self, block: Samples, X: Any) -> Any:
        return self.multiply(block, block.A, X)

    def vecmat(self, block: Samples, R: Any) -> Any:
        A, R = several(block.A, R)
        return pytorch().bmm(A.mT, R[:, :, None])[: len(block), :, 0]

    def multiply(self, block: Samples, K: Any, V: Any) -> Any:
        K, V = several(K, V if V.ndim == 2 else V.expand(len(block), block.n))
        return pytorch().bmm(K, V[:, :, None])[: len(block), :, 0]

    def matmat(self, block: Samples, W: Any) -> Any:
        A, W = several(block.A, W if W.ndim == 3 else W.expand(len(block), *W.shape))
        return pytorch().bmm(A, W.mT)[: len(block)]

    def tmatmat(self, block: Samples, R: Any) -> Any:
        # The numbers of a sum lie side by side, as in the other products.
        A, R = several(block.A, R.mT.contiguous())
        return pytorch().bmm(A.mT, R.mT)[: len(block)].mT

    def put_tmatmat(self, block: Samples, R: Any, out: Any) -> None:
        out[...] = self.tmatmat(block, R)


def several(*parts: Any) -> tuple[Any, ...]:
    """The same arrays with zeros for further clients where there are fewer than FEW."""
    count = len(parts[0])
    if count >= FEW:
        return parts
    # PyTorch multiplies a batch of few matrices one by one, with a kernel whose sums have another order.
    return tuple([pytorch().cat([part, part.new_zeros((FEW - count, *part.shape[1:]))]) for part in parts])


def grouped(blocks: Sequence[Block], D: int, products: Tensors) -> SameSizeBlocks:
    """The clients of blocks in memory, in order, in blocks of ``products.room`` clients on a device."""
    whole = products.moved(blocks, D)
    edges = [*range(0, len(whole), products.room), len(whole)]
    return SameSizeBlocks([whole.part(slice(a, b)) for a, b in pairwise(edges)], whole)


def coarse(D: int) -> int:
    """The number of rows that clients of D rows have on a device: at most four sizes from a power of two to the next.

    It depends on the client alone, and few sizes make large blocks.
    """
    step = max(4, 1 << max(0, D.bit_length() - 3))
    return -(-D // step) * step
