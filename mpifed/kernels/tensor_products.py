"""Products with samples that are tensors on a device: a GPU, or the CPU as PyTorch computes on it.

Products are batched (torch.bmm), and blocks of few clients are filled up with zeros for a product, so that no bit of a
client depends on the others in the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from mpifed.core.arrays import Namespace, import_torch, to_numpy
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.kernels.fill import SameSizeBlocks
from mpifed.kernels.products import DENSE, BlockSamples, DenseProducts

MIN_CLIENTS = 8  # the least number of clients for which the bits of a batched product do not depend on it


class TensorProducts(DenseProducts):
    """Products with A (c, D, n), a tensor; so are ``b`` and ``w`` (c, D), and ``d`` (c,), real numbers.

    ``room`` is the number of clients of the blocks of a run, to which smaller ones are filled up.
    """

    memory: DenseProducts | None = DENSE

    def __init__(self, xp: Namespace, room: int = MIN_CLIENTS) -> None:
        self.xp = xp
        self.room = room

    def move_blocks(self, blocks: Sequence[Block], D: int) -> Block:
        """Move the samples of ``blocks`` in memory to one block on a device, with D rows for each client."""
        xp = self.xp
        sizes = np.concatenate([block.sizes for block in blocks])
        dtype = xp.asarray(blocks[0].b[:0]).dtype
        b, w = (xp.zeros((len(sizes), D), dtype=dtype) for _ in range(2))
        begin = 0
        for block in blocks:
            end = begin + len(block)
            b[begin:end, : block.b.shape[1]] = xp.asarray(block.b)
            w[begin:end, : block.b.shape[1]] = xp.asarray(block.w)
            begin = end
        result = Block(self.move_features(blocks, D), b, xp.asarray(sizes, dtype=xp.float64), blocks[0].n, w, self)
        result.sizes = sizes
        return result

    def move_features(self, blocks: Sequence[Block], D: int) -> Any:
        """Copy A of the samples of ``blocks`` to the device, with D rows for each client."""
        xp = self.xp
        A = xp.zeros((sum(map(len, blocks)), D, blocks[0].n), dtype=xp.asarray(blocks[0].b[:0]).dtype)
        begin = 0
        for block in blocks:
            end = begin + len(block)
            A[begin:end, : block.b.shape[1]] = xp.asarray(block.A)
            begin = end
        return A

    def features_in_memory(self, block: BlockSamples) -> Any:
        return to_numpy(block.A)

    def part(self, block: BlockSamples, rows: slice | Array) -> tuple[Any, None, tuple[Any, Any]]:
        # Positions are copied to the device once, for labels, weights and samples.
        at = rows if isinstance(rows, slice) else self.xp.asarray(rows)
        if block.source is None:
            return at, None, (block, at)
        # The source of a part of a part is the first block, so that the part between need not copy samples.
        full, positions = block.source
        return at, None, (full, self.as_positions(positions)[at])

    def as_positions(self, rows: Any) -> Any:
        """Return positions, a slice or a tensor, as a tensor."""
        return self.xp.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows

    def batch(self, block: BlockSamples, picks: Array, w: Array) -> tuple[Any, Any, Any]:
        full: Any = block
        positions: Any = slice(0, len(block))
        if block.source is not None:
            full, positions = block.source
        count = len(block)
        rows = (self.xp.asarray(picks) + full.b.shape[1] * self.as_positions(positions)[:, None]).reshape(-1)
        A = full.A.reshape(-1, block.n).index_select(0, rows).reshape(count, -1, block.n)
        b = full.b.reshape(-1).index_select(0, rows).reshape(count, -1)
        return A, b, self.xp.asarray(w)

    # In every product samples are the left factor and the other one has its numbers in columns. With samples on the
    # right the bits of a client would depend on its address on CPUs, because MKL takes other kernels.

    def matvec(self, block: BlockSamples, X: Any) -> Any:
        return self.multiply(block, block.A, X)

    def vecmat(self, block: BlockSamples, R: Any) -> Any:
        A, R = pad_clients(block.A, R)
        return import_torch().bmm(A.mT, R[:, :, None])[: len(block), :, 0]

    def multiply(self, block: BlockSamples, K: Any, V: Any) -> Any:
        K, V = pad_clients(K, V if V.ndim == 2 else V.expand(len(block), block.n))
        return import_torch().bmm(K, V[:, :, None])[: len(block), :, 0]

    def matmat(self, block: BlockSamples, W: Any) -> Any:
        A, W = pad_clients(block.A, W if W.ndim == 3 else W.expand(len(block), *W.shape))
        return import_torch().bmm(A, W.mT)[: len(block)]

    def tmatmat(self, block: BlockSamples, R: Any) -> Any:
        # The numbers of a sum are contiguous, as in the other products.
        A, R = pad_clients(block.A, R.mT.contiguous())
        return import_torch().bmm(A.mT, R.mT)[: len(block)].mT

    def put_tmatmat(self, block: BlockSamples, R: Any, out: Any) -> None:
        out[...] = self.tmatmat(block, R)


def pad_clients(*parts: Any) -> tuple[Any, ...]:
    """Pad arrays with zeros to FEW clients if they have fewer."""
    count = len(parts[0])
    if count >= MIN_CLIENTS:
        return parts
    # PyTorch multiplies a batch of few matrices one by one, with a kernel that adds in another order.
    return tuple([import_torch().cat([part, part.new_zeros((MIN_CLIENTS - count, *part.shape[1:]))]) for part in parts])


def group_on_device(blocks: Sequence[Block], D: int, products: TensorProducts) -> SameSizeBlocks:
    """Move the clients of blocks in memory, in order, to blocks of ``products.room`` clients on a device."""
    full = products.move_blocks(blocks, D)
    edges = [*range(0, len(full), products.room), len(full)]
    return SameSizeBlocks([full.part(slice(a, b)) for a, b in pairwise(edges)], full)


def round_rows(D: int) -> int:
    """Round the number of rows of a client up for a device, to one of four sizes between powers of two.

    It depends on the client alone, and few sizes make large blocks.
    """
    step = max(4, 1 << max(0, D.bit_length() - 3))
    return -(-D // step) * step
