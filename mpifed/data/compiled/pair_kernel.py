"""The compiled kernel of second derivatives on CSR samples: products of pairs of nonzeros, which fill nothing in.

Numba compiles it. Rows are taken two nonzeros at a time, and indices as numbers without sign, which numba does not
check for counting from the end: each of the two doubles the speed.
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import register_jitable


def pairs(data: Any, columns: Any, ends: Any, W: Any, n: int) -> Any:
    """The upper triangles, row by row, of A_iᵀ diag(w_i) A_i (c, n(n+1)/2), with W (c, D).

    The CSR matrix (c D, c n) has the rows A_i of c clients along its diagonal. The columns of a row rise.
    """
    c, D = W.shape
    if len(ends) != c * D + 1 or len(columns) != len(data) or ends[-1] > len(data):
        raise ValueError("these samples and weights do not go together")
    G = np.zeros((c, n * (n + 1) // 2), data.dtype)
    for i in range(c):
        for j in range(D):
            if W[i, j] != 0:
                row = slice(ends[i * D + j], ends[i * D + j + 1])
                add_pairs(data[row], columns[row], i, n, W[i, j], G[i])
    return G


@register_jitable
def add_pairs(data: Any, columns: Any, i: int, n: Any, w: Any, G: Any) -> None:
    """G += w a aᵀ, packed, for a row a of client i with these nonzeros."""
    left = np.uint64(i * n)
    one = np.uint64(1)
    last = np.uint64(len(data))
    n = np.uint64(n)
    a = np.uint64(0)
    while a + one < last:
        k0 = np.uint64(columns[a]) - left
        row0 = start(k0, n)
        row1 = start(np.uint64(columns[a + one]) - left, n)
        s0 = w * data[a]
        s1 = w * data[a + one]
        G[row0 + k0] += s0 * data[a]
        for b in range(a + one, last):
            k = np.uint64(columns[b]) - left
            G[row0 + k] += s0 * data[b]
            G[row1 + k] += s1 * data[b]
        a += one + one
    if a < last:
        k = np.uint64(columns[a]) - left
        G[start(k, n) + k] += w * data[a] * data[a]


@register_jitable
def start(j: Any, n: Any) -> Any:
    """Where row j of a packed matrix of order n begins, less j: its entry in column k stands k further."""
    return j * n - (j * (j + np.uint64(1)) >> np.uint64(1))


def signatures(dtype: str) -> list[Any]:
    """The types of ``pairs`` for numbers of a type: scipy has indices of 32 or of 64 bits."""
    number = getattr(types, dtype)
    return [
        types.Array(number, 2, "C")(
            types.Array(number, 1, "C", readonly=True),
            types.Array(index, 1, "C", readonly=True),
            types.Array(index, 1, "C", readonly=True),
            types.Array(number, 2, "C", readonly=True),
            types.intp,
        )
        for index in (types.int32, types.int64)
    ]
