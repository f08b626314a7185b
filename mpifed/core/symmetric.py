"""Packed symmetric matrices, as messages hold them: the upper triangle row by row, n(n+1)/2 numbers."""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from mpifed.core.typing import Array

CACHED_ORDER = 1024  # up to this order indices are cached, 8 bytes a number; above it rows are copied one by one
TILE = 64  # rows of a matrix that are mirrored together


def packed_size(n: int) -> int:
    """Return the size of a packed matrix of order n."""
    return n * (n + 1) // 2


def order_of_packed(size: int) -> int:
    """Return the order n of packed matrices of ``size`` numbers; ValueError if there is none."""
    n = (math.isqrt(8 * size + 1) - 1) // 2
    if packed_size(n) != size:
        raise ValueError(f"{size} numbers are no upper triangle: that of a matrix of order n has n(n+1)/2")
    return n


def pack(H: Array) -> Array:
    """Pack symmetric matrices (c, n, n), or one (n, n): their upper triangles with the diagonal (c, n(n+1)/2)."""
    *front, n, _ = H.shape
    if n <= CACHED_ORDER:
        return H.reshape(*front, n * n).take(upper_positions(n), axis=-1)
    rows = np.empty((*front, packed_size(n)), H.dtype)
    for j, (first, last) in enumerate(pairwise(row_starts(n))):
        rows[..., first:last] = H[..., j, j:]
    return rows


def unpack(rows: Array, n: int) -> Array:
    """Unpack matrices (…, n(n+1)/2): the symmetric matrices (…, n, n)."""
    front = rows.shape[:-1]
    if n <= CACHED_ORDER:
        return rows.take(packed_positions(n), axis=-1).reshape(*front, n, n)
    H = np.empty((*front, n, n), rows.dtype)
    for j, (first, last) in enumerate(pairwise(row_starts(n))):
        H[..., j, j:] = rows[..., first:last]
    mirror_upper(H)
    return H


def frobenius(rows: Array, n: int) -> Array:
    """Compute the Frobenius norms (…,) of packed matrices (…, n(n+1)/2): entries off the diagonal count twice."""
    # A contiguous copy: numpy sums a strided row in another order, and the bits of a client's norm would depend on how
    # many others are in the block.
    diagonal = rows.take(row_starts(n)[:-1], axis=-1)
    return np.sqrt(2 * np.vecdot(rows, rows) - np.vecdot(diagonal, diagonal))


def add_diagonal(H: Array, values: Array) -> None:
    """Add ``values``, (n,) or (c, n), to the diagonals of matrices (c, n, n), in place."""
    np.einsum("...ii->...i", H)[...] += values


def mirror_upper(H: Array) -> None:
    """Copy the upper triangles of matrices (…, n, n) to the lower ones, in place."""
    # Tile by tile, because transposing a large matrix at once reads one number from each cache line.
    n = H.shape[-1]
    for first in range(0, n, TILE):
        last = min(first + TILE, n)
        H[..., first:last, :first] = H[..., :first, first:last].mT
        square = H[..., first:last, first:last]
        square[...] = np.where(np.tri(last - first, k=-1, dtype=bool), square.mT, square)


@lru_cache(maxsize=4)
def row_starts(n: int) -> list[int]:
    """Return the positions at which the rows of a packed matrix begin, and its size: (n + 1,)."""
    return [j * n - j * (j - 1) // 2 for j in range(n + 1)]


@lru_cache(maxsize=4)
def upper_positions(n: int) -> Array:
    """Return the positions of the upper triangle in a flat matrix of order n, row by row."""
    rows, columns = np.triu_indices(n)
    return rows * n + columns


@lru_cache(maxsize=4)
def packed_positions(n: int) -> Array:
    """Return the positions in a packed matrix of all n² entries of the full matrix, row by row."""
    positions = np.zeros((n, n), np.intp)
    positions.reshape(-1)[upper_positions(n)] = np.arange(packed_size(n))
    return np.maximum(positions, positions.T).reshape(-1)
