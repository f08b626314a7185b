"""Which clients share a block, with how many rows each, and the block before its samples are there."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mpifed.core.processor import UNKNOWN
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.kernels.products import DENSE, Dense
from mpifed.kernels.unpadded import Unpadded, left_out

PAD = 4
SPARSE = 4  # CSR stores few of the numbers, so a block has so many times the clients of a dense one
FEW = 8  # matrices: where a block has fewer it gains little from clients of like size
LINE = 64  # bytes of a cache line


def padded(d: Array, group: int = 1) -> Array:
    """Sizes rounded up to a multiple of 4; where clients come in groups, to one of the four sizes between 2^k and
    2^(k+1): 32, 40, 48, 56, 64, 80 … Then clients of many sizes have few padded ones.
    """
    # Compiled kernels take four rows at a time. BLAS adds up a remainder of rows in another order than whole vectors of
    # them, so the padded size of a client must follow from its own size alone, never from its neighbours'.
    step: Any = PAD
    if group > 1:
        step = np.maximum(PAD, np.exp2(np.floor(np.log2(np.maximum(d - 1, 1))) - 2)).astype(int)
    return -(-d // step) * step


def plan(
    sizes: Array, n: int, itemsize: int, block_bytes: int = UNKNOWN, matrix: int = 0, group: int = 1
) -> Iterator[Array]:
    """The clients of each block, as positions in ``sizes``, smallest clients first; every client is in one block.

    A block has about ``block_bytes`` bytes, or one client; so have the matrices of ``matrix`` numbers that a method
    makes of each client. Where these are large, clients stay in order, and hosts can add up replies as they come.
    Where a problem computes clients in groups of ``group``, a block has a multiple of them.
    """
    D = padded(sizes, group)
    large = matrix * itemsize * FEW > block_bytes
    # A stable sort keeps clients of one size in order: hosts then write their replies as one slice.
    order = np.arange(len(D)) if large else np.argsort(D, kind="stable")
    for alike in np.split(order, np.flatnonzero(np.diff(D[order])) + 1):
        if len(alike):
            each = itemsize * max(1, int(D[alike[0]]) * n, matrix)
            step = clients_in(block_bytes, each, group)
            yield from (alike[k : k + step] for k in range(0, len(alike), step))


def clients_in(block_bytes: int, each: int, group: int = 1) -> int:
    """How many clients of ``each`` bytes a block of about ``block_bytes`` has: a multiple of ``group``."""
    return group * max(1, round(block_bytes / each / group))


def dense_block(sizes: Array, n: int, dtype: Any, products: Dense = DENSE, group: int = 1) -> Block:
    """A block of zeros for clients of these sizes, to be filled."""
    D = int(padded(sizes[:1], group)[0])
    most = int(sizes.max())
    unpadded = group == 1 and left_out(most, (len(sizes), D, n), np.dtype(dtype).itemsize)
    shape = (len(sizes), most if unpadded else D, n)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    # It begins at a multiple of 64 bytes, as cache lines do: vectors of features are read faster.
    room = np.zeros(size + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    A = room[begin : begin + size].view(dtype).reshape(shape)
    block = Block(A, np.zeros((len(sizes), D), dtype), sizes, n, products=products)
    if unpadded:
        block.unpadded = Unpadded(A, D, slice(0, len(A)), {})
    return block
