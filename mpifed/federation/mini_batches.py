"""Mini-batches of local steps: which samples of a client's random orders each of them takes."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block, padding_weights
from mpifed.kernels.plan import PAD

AHEAD = 1 << 18  # sample numbers of mini-batches that are drawn in advance, 2 MB: every call of a generator costs time
ClientGenerators = Sequence[np.random.Generator]  # those of the clients of a block
LastBatch = Literal["keep", "drop", "merge"]
WeightedRows = tuple[slice, Array, Array | int]  # of a mini-batch: columns of an order, weights of these and of clients


class MiniBatches(NamedTuple):
    """Mini-batches of ``size`` samples (0: all) in ``epochs`` passes over a client's samples, or else ``k0`` of them.

    Each pass is in a new random order, and each of the k0 is the beginning of one. Of a fraction of a pass the first
    ⌈fraction · mini-batches⌉ are taken. ``last`` says what becomes of the rest of a pass, which does not fill a
    mini-batch: it is a smaller one (keep), is left out (drop), or, if it is one sample or fewer than size/2, joins the
    mini-batch before it, if there is one (merge).
    """

    k0: int
    epochs: float
    size: int
    last: LastBatch = "keep"

    @property
    def orders(self) -> int:
        """The number of random orders: the passes that are begun, or k0."""
        return math.ceil(self.epochs) or self.k0

    @property
    def whole(self) -> int:
        """The number of orders of which all mini-batches are taken."""
        return int(self.epochs) if self.epochs else self.k0

    def count_full(self, d: Array) -> Array:
        """Return the number of mini-batches in a whole pass over d samples: (m,); 1 without epochs."""
        if not self.epochs or not self.size:
            return np.ones(d.shape, np.int64)
        full, rest = np.divmod(d, self.size)
        further = (rest > 0) & (self.last != "drop")
        if self.last == "merge":
            further &= (full == 0) | (rest > 1) & (2 * rest >= self.size)
        return (full + further).astype(np.int64)

    def count_final(self, d: Array) -> Array:
        """Return the number of mini-batches in the fraction of a pass at the end: (m,); 0 if there is none."""
        # rounded, because the fraction of 2.1 is a little more than a tenth, and a tenth of ten is one
        return np.ceil(np.round(self.epochs % 1 * self.count_full(d), 9)).astype(np.int64)

    def edges(self, d: Array, k: Array) -> Array:
        """Return how many of d samples the first k mini-batches of a pass take, for k up to their number."""
        count = self.count_full(d)
        left_out = self.size and (not self.epochs or self.last == "drop")
        return np.where(k < count, k * self.size, np.minimum(d, count * self.size) if left_out else d)

    def count_steps(self, d: Array) -> Array:
        """Return the local steps of clients of d samples: (m,)."""
        return self.whole * self.count_full(d) + self.count_final(d)

    def count_gradients(self, d: Array) -> Array:
        """Return the sample gradients of clients of d samples that take one gradient a step: (m,)."""
        return self.whole * self.edges(d, self.count_full(d)) + self.edges(d, self.count_final(d))

    def draw(self, block: Block, rngs: ClientGenerators, dtype: Any) -> Iterator[tuple[int, Block, Array | int]]:
        """Yield the mini-batches of a block as (j, block, weight) of order j.

        ``weight`` is 1, or (c, 1) with 0 for clients that have no sample in it; ``dtype`` is numpy's type of weights.
        """
        # weights are alike in all orders, so they are computed, and moved to a device, once
        whole = self.weigh(block, self.count_full(block.sizes), dtype)
        final = self.weigh(block, self.count_final(block.sizes), dtype) if self.epochs % 1 else whole
        length = max((columns.stop for columns, *_ in whole), default=0)
        for j, order in enumerate(map(block.xp.asarray, draw_orders(block.sizes, self.orders, length, rngs))):
            for columns, w, weight in whole if j < self.orders - 1 else final:
                yield j, block.batch(order[:, columns], w), weight

    def weigh(self, block: Block, taken: Array, dtype: Any) -> list[WeightedRows]:
        """Return the mini-batches of a pass in which clients take their first ``taken`` (c,) ones."""
        put = block.xp.asarray
        k = np.arange(taken.max() + 1)[:, None]
        # clients with few samples have few mini-batches, and pause in the last ones of the block
        counts = np.diff(self.edges(block.sizes, np.minimum(k, taken)), axis=0)  # (mini-batches, c)
        widths = self.widths(k, block.b.shape[1])
        width = max(widths, default=0)
        padded = padding_weights(counts.ravel(), width, dtype).reshape(*counts.shape, width)
        batches: list[WeightedRows] = []
        for j, (d, w, width) in enumerate(zip(counts, padded, widths, strict=True)):
            # a plain 1 where no client pauses saves methods a product with a column of ones
            weight = 1 if d.all() else put((d > 0)[:, None].astype(dtype))
            first = j * self.size
            batches.append((slice(first, first + width), put(np.ascontiguousarray(w[:, :width])), weight))
        return batches

    def widths(self, k: Array, D: int) -> list[int]:
        """Return the widths of mini-batches between k (K + 1, 1), in a block whose clients are padded to D samples."""
        least = min(self.size, D)
        if self.last != "merge":
            return [least] * (len(k) - 1)
        # from all sizes that are padded to D: no bit of a client may depend on the sizes of others in its block
        sizes = np.arange(max(0, D - max(PAD, D // 4)), D) + 1
        return np.maximum(least, np.diff(self.edges(sizes, k), axis=0).max(axis=1)).tolist()


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
