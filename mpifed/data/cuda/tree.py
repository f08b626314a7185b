"""Sums of rows of clients on a GPU, along the tree over client numbers, as mpifed.federation.sums has it.

A block of threads sums the rows of a subtree of 2^LEVELS clients, in COLUMNS columns. Its results are rows again, which
the next launch sums. Each addition is one that the tree has, so the bits are those of numpy.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import register_jitable

from mpifed.data.cuda.arithmetic import view
from mpifed.data.cuda.device import Device

LEVELS = 7
COLUMNS = 32
THREADS = 256


class Sizes(NamedTuple):
    """Numbers without sign."""

    clients: Any  # leaves of the tree, absent ones too
    present: Any  # rows
    width: Any  # numbers of a row
    strips: Any  # of COLUMNS columns each
    gaps: Any  # whether rows belong to the clients ``where``; otherwise to 0, 1, 2 …
    count: Any  # what sums are divided by, if above 0


def tree_sum(device: Device, rows: Any, where: Any = None, clients: int = 0, count: int = 0) -> Any:
    """The sum (n,) of ``rows`` (c, n) of the clients ``where``, rising whole numbers (c,) of 64 bits on the device.

    Without ``where`` the rows are those of the clients 0 … c − 1, otherwise ``clients`` says how many there are, the
    absent ones too. With ``count`` the sum is divided by it. Bits: those of sums.subtotals for one subtree.
    """
    places = device.nothing() if where is None else device.pointer(where, "where", np.int64)
    gaps = int(where is not None)
    leaves = clients if gaps else rows.shape[0]
    while True:
        present, width = rows.shape
        nodes = max(-(-leaves >> LEVELS), 1)
        strips = -(-width // COLUMNS)
        out = device.empty((nodes, width))
        sizes = Sizes(leaves, present, width, strips, gaps, count if nodes == 1 else 0)
        arguments = (sizes, device.pointer(rows, "rows"), places, device.pointer(out, "sums"))
        device.launch("subtree", nodes * strips, (THREADS, COLUMNS << LEVELS), arguments)
        if nodes == 1:
            return out[0]
        rows = out
        leaves = nodes
        gaps = 0


def subtree(s: Any, source: Any, places: Any, target: Any) -> None:
    """The kernel: row j of the target is the sum of the clients from j 2^LEVELS on, before the next 2^LEVELS begin."""
    rows = view(source)
    where = view(places)
    out = view(target)
    tile = cuda.shared.array(0, rows.dtype)
    one = np.uint64(1)
    columns = np.uint64(COLUMNS)
    lines = np.uint64(cuda.blockDim.x) // columns
    line = np.uint64(cuda.threadIdx.x) // columns
    lane = np.uint64(cuda.threadIdx.x) % columns
    node = np.uint64(cuda.blockIdx.x) // s.strips
    column = (np.uint64(cuda.blockIdx.x) % s.strips) * columns + lane
    first = node << np.uint64(LEVELS)
    count = min(s.clients - first, one << np.uint64(LEVELS))
    k = line
    while k < max(count, one):
        tile[k * columns + lane] = rows.dtype.type(0)
        k += lines
    cuda.syncthreads()
    k = lower_bound(s, where, first) if s.gaps else first
    k += line
    while k < s.present and column < s.width:
        leaf = np.uint64(where[k]) if s.gaps else k
        if leaf >= first + count:
            break
        tile[(leaf - first) * columns + lane] = rows[k * s.width + column]
        k += lines
    step = one
    while step < count:
        cuda.syncthreads()
        k = line * (step + step)
        while k + step < count:
            tile[k * columns + lane] += tile[(k + step) * columns + lane]
            k += lines * (step + step)
        step += step
    if line == np.uint64(0) and column < s.width:
        total = tile[lane] + rows.dtype.type(0)  # a sum of zeros is +0
        out[node * s.width + column] = total / rows.dtype.type(s.count) if s.count > np.uint64(0) else total


@register_jitable
def lower_bound(s: Any, where: Any, first: Any) -> Any:
    """The number of clients in ``where`` below ``first``."""
    low = np.uint64(0)
    high = s.present
    while low < high:
        middle = (low + high) >> np.uint64(1)
        if np.uint64(where[middle]) < first:
            low = middle + np.uint64(1)
        else:
            high = middle
    return low


def signature(name: str) -> Any:
    """The types of the kernel for numbers of a type."""
    pointer = types.CPointer(getattr(types, name))
    sizes = types.NamedUniTuple(types.uint64, len(Sizes._fields), Sizes)
    return types.void(sizes, pointer, types.CPointer(types.int64), pointer)
