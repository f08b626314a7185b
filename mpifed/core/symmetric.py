"""Symmetric matrices as they travel: the upper triangle row by row, n(n+1)/2 numbers."""

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np

from mpifed.core.typing import Array

INDEXED = 1024  # up to this order indices are kept, of 8 bytes a number; above it rows are long enough to be copied
TILE = 64  # rows of a matrix that are mirrored together


def entries(n: int) -> int:
    return n * (n + 1) // 2


def order(size: int) -> int:
    """The order n of packed matrices of ``size`` numbers; ValueError where there is none."""
    n = (math.isqrt(8 * size + 1) - 1) // 2
    if entries(n) != size:
        raise ValueError(f"{size} numbers are no upper triangle: that of a matrix of order n has n(n+1)/2")
    return n


def pack(H: Array) -> Array:
    """The upper triangles (c, n(n+1)/2), diagonals included, of symmetric matrices (c, n, n); also of one (n, n)."""
    *front, n, _ = H.shape
    if n <= INDEXED:
        return H.reshape(*front, n * n).take(upper(n), axis=-1)
    rows = np.empty((*front, entries(n)), H.dtype)
    for j, (first, last) in enumerate(pairwise(starts(n))):
        rows[..., first:last] = H[..., j, j:]
    return rows


def unpack(rows: Array, n: int) -> Array:
    """The symmetric matrices (…, n, n) of packed ones (…, n(n+1)/2)."""
    front = rows.shape[:-1]
    if n <= INDEXED:
        return rows.take(both(n), axis=-1).reshape(*front, n, n)
    H = np.empty((*front, n, n), rows.dtype)
    for j, (first, last) in enumerate(pairwise(starts(n))):
        H[..., j, j:] = rows[..., first:last]
    mirror(H)
    return H


def frobenius(rows: Array, n: int) -> Array:
    """The Frobenius norms (…,) of packed matrices (…, n(n+1)/2): entries off the diagonal count twice."""
    # A copy, in which each row is in one piece: numpy sums a strided row in another order, and the bits of a client's
    # norm would depend on how many others are in the block.
    diagonal = rows.take(starts(n)[:-1], axis=-1)
    return np.sqrt(2 * np.vecdot(rows, rows) - np.vecdot(diagonal, diagonal))


def add_diagonal(H: Array, values: Array) -> None:
    """Add ``values``, (n,) or (c, n), to the diagonals of matrices (c, n, n), in place."""
    np.einsum("...ii->...i", H)[...] += values


def mirror(H: Array) -> None:
    # Tile by tile: the transpose of a large matrix reads one number of each line of the cache.
    n = H.shape[-1]
    for first in range(0, n, TILE):
        last = min(first + TILE, n)
        H[..., first:last, :first] = H[..., :first, first:last].mT
        square = H[..., first:last, first:last]
        square[...] = np.where(np.tri(last - first, k=-1, dtype=bool), square.mT, square)


@lru_cache(maxsize=4)
def starts(n: int) -> list[int]:
    """Where the rows of an upper triangle begin, and the number of its entries: (n + 1,)."""
    return [j * n - j * (j - 1) // 2 for j in range(n + 1)]


@lru_cache(maxsize=4)
def upper(n: int) -> Array:
    """The positions of the upper triangle in a matrix of order n, row by row."""
    rows, columns = np.triu_indices(n)
    return rows * n + columns


@lru_cache(maxsize=4)
def both(n: int) -> Array:
    """The position in the upper triangle of each entry of a matrix of order n, row by row."""
    positions = np.zeros((n, n), np.intp)
    positions.reshape(-1)[upper(n)] = np.arange(entries(n))
    return np.maximum(positions, positions.T).reshape(-1)
