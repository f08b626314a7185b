"""Planning of blocks: their clients, the padded number of rows, and the empty arrays."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpifed.core.processor import DEFAULT_BLOCK_BYTES
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block, Unpadded, stores_unpadded
from mpifed.kernels.products import DENSE, DenseProducts

PAD = 4
SPARSE_FACTOR = 4  # factor on the clients of a block with CSR samples, which store few of the numbers
FEW = 8  # matrices; a block with fewer gains little from clients of similar size
LINE = 64  # bytes of a cache line


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
