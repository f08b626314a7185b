"""Which samples of a block are taken: in random order for mini-batches, and to test models."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpifed.core.roles import TRAINING
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block, weights

AHEAD = 1 << 18  # sample numbers of mini-batches that are drawn in advance, 2 MB: every call of a generator costs time
Generators = Sequence[np.random.Generator]  # those of the clients of a block


def mini_batches(
    block: Block, size: int, count: int, once: bool, rngs: Generators, dtype: Any
) -> Iterator[tuple[int, Block, Array | int]]:
    """Mini-batches of ``size`` samples in ``count`` random orders, as (j, block, weight) of order j.

    Of each order all samples are taken, one mini-batch after the other, or with ``once`` the first mini-batch alone.
    ``weight`` is 1, or (c, 1) with 0 for the clients that have no sample in it; ``dtype`` is numpy's type of weights.
    """
    width = min(size, block.b.shape[1])
    sizes = block.sizes
    # clients with few samples have few mini-batches: all of a block compute together, so they wait in the last ones
    passes = 1 if once else -(-int(sizes.max()) // width)
    put = block.xp.asarray
    left = sizes - width * np.arange(passes)[:, None]
    counts = np.minimum(np.maximum(left, 0), width)  # (passes, c)
    # the same in all orders: worked out once, and moved to a device once
    parts = [*map(put, weights(counts.ravel(), width, dtype).reshape(passes, len(block), width))]
    full = counts.all(axis=1).tolist()
    # a plain 1 where nobody waits: methods then multiply with no column of ones
    has = [1 if every else put((d > 0)[:, None].astype(dtype)) for d, every in zip(counts, full, strict=True)]
    for j, order in enumerate(map(put, orders(sizes, count, passes * width, rngs))):
        for k, (w, own) in enumerate(zip(parts, has, strict=True)):
            yield j, block.batch(order[:, k * width : (k + 1) * width], w), own


def orders(sizes: Array, count: int, length: int, rngs: Generators) -> Iterator[Array]:
    """``count`` random orders of each client's samples, one after the other: (c, ``length``), the rest 0."""
    columns = np.arange(max(length, int(sizes.max())))
    rows = np.where(columns < sizes[:, None], columns, 0)[:, None]  # (c, 1, columns)
    ahead = max(1, AHEAD // rows.size)
    for first in range(0, count, ahead):
        found = np.repeat(rows, min(ahead, count - first), axis=1)
        for rng, order, d in zip(rngs, found, sizes.tolist(), strict=True):
            own = order[:, :d]
            # permutation(d), drawn again for each row: how many orders are drawn in advance changes no bit
            rng.permuted(own, axis=1, out=own)
        yield from found.swapaxes(0, 1)[:, :, :length]


def samples_of(block: Block, role: str) -> list[tuple[Array | slice, Block]]:
    """Blocks of the samples that clients have in a role, and the clients of each, by position.

    Clients without such samples are in none of them.
    """
    # the very block, so that what was predicted for its samples is not predicted again
    return [(slice(None), block)] if role == TRAINING else [*block.tests]
