"""Planning of blocks, their clients, padded rows and empty arrays, and of their mini-batches."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np

from mpifed.core.processor import DEFAULT_BLOCK_BYTES
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block, Unpadded, padding_weights, stores_unpadded
from mpifed.kernels.products import DENSE, DenseProducts

PAD = 4
SPARSE_FACTOR = 4  # factor on the clients of a block with CSR samples, which store few of the numbers
FEW = 8  # matrices; a block with fewer gains little from clients of similar size
LINE = 64  # bytes of a cache line
AHEAD = 1 << 18  # sample numbers of mini-batches that are drawn in advance, 2 MB: every call of a generator costs time

ClientGenerators = Sequence[np.random.Generator]  # those of the clients of a block
WeightedColumns = tuple[slice, Array, Array | int]  # of a mini-batch: columns of an order, their weights, the clients'


def pad_sizes(d: Array, group: int = 1) -> Array:
    """Round sizes up to a multiple of 4; for clients in groups, to one of four sizes between 2^k and 2^(k+1): 32, 40,
    48, 56, 64, 80 … So clients of many sizes have few padded ones.
    """
    # Compiled kernels take four rows at a time. BLAS adds up a remainder of rows in another order than full vectors, so
    # the padded size of a client must follow from its own size alone, never from its neighbours'.
    step: Any = PAD
    if group > 1:
        step = np.maximum(PAD, np.exp2(np.floor(np.log2(np.maximum(d - 1, 1))) - 2)).astype(int)
    return -(-d // step) * step


def plan_blocks(
    sizes: Array, n: int, itemsize: int, block_bytes: int = DEFAULT_BLOCK_BYTES, matrix: int = 0, group: int = 1
) -> Iterator[Array]:
    """Yield the clients of each block, as positions in ``sizes``, smallest clients first; each is in one block.

    A block has about ``block_bytes`` bytes, or one client; so have the matrices of ``matrix`` numbers that a method
    makes for each client. If these are large, clients stay in order, so that hosts add up replies as they come. If a
    problem computes ``group`` clients at once, a block has a multiple of them.
    """
    D = pad_sizes(sizes, group)
    large = matrix * itemsize * FEW > block_bytes
    # Stable, so that clients of one size stay in order, and hosts write their replies as one slice.
    order = np.arange(len(D)) if large else np.argsort(D, kind="stable")
    for same_size in np.split(order, np.flatnonzero(np.diff(D[order])) + 1):
        if len(same_size):
            each = itemsize * max(1, int(D[same_size[0]]) * n, matrix)
            step = clients_per_block(block_bytes, each, group)
            yield from (same_size[k : k + step] for k in range(0, len(same_size), step))


def clients_per_block(block_bytes: int, each: int, group: int = 1) -> int:
    """Return the number of clients of ``each`` bytes in a block of about ``block_bytes``: a multiple of ``group``."""
    return group * max(1, round(block_bytes / each / group))


def make_dense_block(sizes: Array, n: int, dtype: Any, products: DenseProducts = DENSE, group: int = 1) -> Block:
    """Make a block of zeros for clients of these sizes."""
    D = int(pad_sizes(sizes[:1], group)[0])
    rows = int(sizes.max())
    unpadded = group == 1 and stores_unpadded(rows, (len(sizes), D, n), np.dtype(dtype).itemsize)
    shape = (len(sizes), rows if unpadded else D, n)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    # It begins at a multiple of 64 bytes, as cache lines do, so that vectors of features are read faster.
    memory = np.zeros(size + LINE, np.uint8)
    begin = -memory.ctypes.data % LINE
    A = memory[begin : begin + size].view(dtype).reshape(shape)
    block = Block(A, np.zeros((len(sizes), D), dtype), sizes, n, products=products)
    if unpadded:
        block.unpadded = Unpadded(A, D, slice(0, len(A)), {})
    return block


class MiniBatches(NamedTuple):
    """Mini-batches of ``size`` samples (0: all) in ``passes`` over a client's samples, each in a new random order.

    Of a fraction of a pass the first ⌈fraction · mini-batches⌉ are taken. ``last`` says what becomes of the rest of a
    pass, which does not fill a mini-batch: it is a smaller one (keep), is left out (drop), or, if it is one sample or
    fewer than size/2, joins the mini-batch before it, if there is one (merge). With "first" a pass is its first one.
    """

    passes: float
    size: int
    last: str

    @classmethod
    def of_round(cls, k0: int, epochs: float, size: int, last: str) -> Self:
        """Return those of a round of ``epochs`` or, where these are 0, of ``k0`` mini-batches that are drawn anew."""
        return cls(epochs, size, last) if epochs else cls(k0, size, "first")

    def count_full(self, d: Array) -> Array:
        """Return the number of mini-batches in a full pass over d samples: (m,)."""
        if self.last == "first" or not self.size:
            return np.ones(d.shape, np.int64)
        full, rest = np.divmod(d, self.size)
        further = (rest > 0) & (self.last != "drop")
        if self.last == "merge":
            further &= (full == 0) | (rest > 1) & (2 * rest >= self.size)
        return (full + further).astype(np.int64)

    def count_final(self, count: Array) -> Array:
        """Return how many of ``count`` mini-batches (m,) the fraction of a pass at the end takes; 0: there is none."""
        # rounded, because the fraction of 2.1 is a little more than a tenth, and a tenth of ten is one
        return np.ceil(np.round(self.passes % 1 * count, 9)).astype(np.int64)

    def edges(self, d: Array, count: Array, k: Array) -> Array:
        """Return how many of d samples the first k of ``count`` mini-batches take, for k up to their number."""
        end = np.minimum(d, count * self.size) if self.size and self.last in ("first", "drop") else d
        return np.where(k < count, k * self.size, end)

    def count_steps(self, d: Array) -> Array:
        """Return the local steps of clients of d samples: (m,)."""
        count = self.count_full(d)
        return int(self.passes) * count + self.count_final(count)

    def count_gradients(self, d: Array) -> Array:
        """Return the sample gradients of clients of d samples that take one gradient a step: (m,)."""
        count = self.count_full(d)
        return int(self.passes) * self.edges(d, count, count) + self.edges(d, count, self.count_final(count))

    def draw(self, block: Block, rngs: ClientGenerators, dtype: Any) -> Iterator[tuple[int, Block, Array | int]]:
        """Yield the mini-batches of a block as (j, block, weight) of pass j.

        ``weight`` is 1, or (c, 1) with 0 for clients that have no sample in it; ``dtype`` is numpy's type of weights.
        """
        # weights are alike in all passes, so they are computed, and moved to a device, once
        count = self.count_full(block.sizes)
        full = self.weigh(block, count, count, dtype)
        final = self.weigh(block, count, self.count_final(count), dtype) if self.passes % 1 else full
        length = max((columns.stop for columns, *_ in full), default=0)
        for j, order in enumerate(draw_orders(block.sizes, math.ceil(self.passes), length, rngs)):
            picks = block.xp.asarray(order)
            for columns, w, weight in full if j < int(self.passes) else final:
                yield j, block.batch(picks[:, columns], w), weight

    def weigh(self, block: Block, count: Array, taken: Array, dtype: Any) -> list[WeightedColumns]:
        """Return the mini-batches of a pass in which clients take the first ``taken`` of ``count``, (c,) each."""
        put = block.xp.asarray
        k = np.arange(taken.max() + 1)[:, None]
        # clients with few samples have few mini-batches, and pause in the last ones of the block
        edges = self.edges(block.sizes, count, np.minimum(k, taken))
        counts = edges[1:] - edges[:-1]  # (mini-batches, c)
        D = block.b.shape[1]
        widths = [min(self.size, D)] * len(counts)
        if self.last == "merge":
            # from all sizes that are padded to D: no bit of a client may depend on the sizes of others in its block
            sizes = np.arange(max(0, D - max(PAD, D // 4)), D) + 1
            each = np.diff(self.edges(sizes, self.count_full(sizes), k), axis=0)
            widths = np.maximum(widths, each.max(axis=1)).tolist()
        width = max(widths, default=0)
        weights = padding_weights(counts.ravel(), width, dtype).reshape(*counts.shape, width)
        batches: list[WeightedColumns] = []
        for j, (d, w, width) in enumerate(zip(counts, weights, widths, strict=True)):
            # a plain 1 where no client pauses saves methods a product with a column of ones
            weight = 1 if d.all() else put((d > 0)[:, None].astype(dtype))
            columns = slice(j * self.size, j * self.size + width)
            batches.append((columns, put(np.ascontiguousarray(w[:, :width])), weight))
        return batches


def draw_orders(sizes: Array, count: int, length: int, rngs: ClientGenerators) -> Iterator[Array]:
    """Yield ``count`` random orders of each client's samples: (c, ``length``) each, padded with 0."""
    columns = np.arange(max(length, int(sizes.max())))
    rows = np.where(columns < sizes[:, None], columns, 0)[:, None]  # (c, 1, columns)
    ahead = max(1, AHEAD // rows.size)
    for first in range(0, count, ahead):
        drawn = np.repeat(rows, min(ahead, count - first), axis=1)
        for rng, order, d in zip(rngs, drawn, sizes.tolist(), strict=True):
            samples = order[:, :d]
            # each row is permuted on its own, so the number of orders drawn in advance changes no bit
            rng.permuted(samples, axis=1, out=samples)
        yield from drawn.swapaxes(0, 1)[:, :, :length]
