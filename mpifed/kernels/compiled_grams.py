"""The compiled kernels of second derivatives, for dense samples that fit in the cache and for CSR samples.

Numba compiles them. For dense samples the inner loop is LLVM code: products of as many features with as many others as
fit in a vector of 64 bytes. For CSR samples only pairs of nonzeros are multiplied. Rows are taken two nonzeros at a
time, and indices are unsigned, so that numba does not check for counting from the end: each of the two doubles the
speed. Sums run over the samples in order, so the bits of a client depend on it alone.
"""

from typing import Any

import numpy as np
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, register_jitable

from mpifed.kernels.compiled_pass import VECTOR, Loops


def grams(A: Any, W: Any) -> Any:
    """Compute the upper triangles, row by row, of A_iᵀ diag(w_i) A_i (c, n(n+1)/2), A (c, D, n) and W (c, D)."""
    c, D, n = A.shape
    if W.shape != (c, D):
        raise ValueError("these samples and weights do not go together")
    lanes = VECTOR // A.itemsize
    panels = -(-n // lanes)
    G = np.empty((c, n * (n + 1) // 2), A.dtype)
    room = np.zeros((panels * D + 1) * lanes, A.dtype)
    begin = -room.ctypes.data % VECTOR // A.itemsize
    P = room[begin : begin + panels * D * lanes].reshape((panels, D, lanes))  # the columns of A_i, by vectors
    Q = np.empty((D, lanes), A.dtype)
    T = np.empty((lanes, panels * lanes), A.dtype)
    for i in range(c):
        fill(P, A[i])
        row = 0
        for p in range(panels):
            for j in range(D):
                for t in range(lanes):
                    Q[j, t] = W[i, j] * P[p, j, t]
            for q in range(p, panels):
                multiply(Q, P[q], T, q, VECTOR)
            for k in range(p * lanes, min(n, (p + 1) * lanes)):
                for l in range(k, n):
                    G[i, row + l - k] = T[k - p * lanes, l]
                row += n - k
    return G


@register_jitable
def fill(P: Any, A: Any) -> None:
    """Copy A (D, n) to panels: P[p, j, t] = A[j, p lanes + t]."""
    lanes = P.shape[2]
    for p in range(len(P)):
        first = p * lanes
        for j in range(len(A)):
            for t in range(min(lanes, A.shape[1] - first)):
                P[p, j, t] = A[j, first + t]


@intrinsic(prefer_literal=True)
def multiply(typing: Any, Q: Any, P: Any, T: Any, q: Any, vector: Any) -> Any:
    """Set T[:, q lanes : (q + 1) lanes] = Qᵀ P (lanes, lanes) for Q, P (D, lanes), by vectors of ``vector`` bytes."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        loops = Loops(context, builder, sig, args, vector)
        lanes = loops.simd_width
        (Q, rows, _), (P, *_), (T, _, width) = (loops.array(k) for k in range(3))
        totals = [cgutils.alloca_once_value(builder, loops.zeros(lanes)) for _ in range(lanes)]
        with cgutils.for_range_slice(builder, rows.type(0), rows, rows.type(1), rows.type) as (j, _):
            row = builder.mul(j, rows.type(lanes))
            column = loops.load(P, row, lanes)
            for t, slot in enumerate(totals):
                factor = loops.broadcast(loops.load(Q, builder.add(row, rows.type(t)), 1), lanes)
                builder.store(loops.add(builder.load(slot), factor, column), slot)
        for t, slot in enumerate(totals):
            begin = builder.add(builder.mul(width, rows.type(t)), builder.mul(args[3], rows.type(lanes)))
            loops.store(builder.load(slot), T, begin, lanes)
        return context.get_dummy_value()

    return types.void(Q, P, T, q, vector), code


def grams_types(dtype: str) -> list[Any]:
    """Return the signatures of ``grams`` for a dtype."""
    number = getattr(types, dtype)
    matrix = types.Array(number, 2, "C")
    return [matrix(*[types.Array(number, d, "C", readonly=True) for d in (3, 2)])]


def pairs(data: Any, columns: Any, ends: Any, W: Any, n: int) -> Any:
    """Compute the upper triangles, row by row, of A_iᵀ diag(w_i) A_i (c, n(n+1)/2), with W (c, D).

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
    """Add w a aᵀ to the packed G, for a row a of client i with these nonzeros."""
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
    """Return the position of row j of a packed matrix of order n, less j, so that its column k is k further."""
    return j * n - (j * (j + np.uint64(1)) >> np.uint64(1))


def pairs_types(dtype: str) -> list[Any]:
    """Return the signatures of ``pairs`` for a dtype, with indices of 32 and of 64 bits, as scipy has both."""
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
