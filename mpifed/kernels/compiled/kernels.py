"""The compiled kernel of linear models: scores, slopes and gradient of a client while its rows are in the L1 cache.

Numba compiles it. The two inner loops, scores of four rows and a sum of rows, are LLVM code: vectors of 64 bytes, 32
for few features, then of 4 numbers, then single numbers, added in one fixed order. So the bits of a client depend on
its samples alone, and few features cost little.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable

from mpifed.kernels.compiled.compiling import LOGISTIC, NONE
from mpifed.kernels.compiled.loops import INT, VECTOR, Loops

NARROW = 32  # bytes of a vector for few features
FEW = 64  # features; with fewer, narrow vectors are faster
UNROLL = 8  # vectors of the sum of rows that are in registers at once
CHUNK = 1 << 15  # bytes of samples, which are read a second time while in the L1 cache
LN_2 = {  # the least t for which e^t is about a normal number; ln 2 in two parts: products of the first are exact
    types.float32: (-87.0, 0.693359375, -2.12194440054690583e-4),
    types.float64: (-708.0, 6.93147180369123816e-1, 1.90821492927058770e-10),
}
POWERS = {  # bits of a number, bias of its exponent, position of the exponent's last bit, and LLVM type
    types.float32: (32, 127, 23, ir.FloatType()),
    types.float64: (64, 1023, 52, ir.DoubleType()),
}


def one_pass(A: Any, X: Any, q: Any, p: Any, s: Any, mean: int) -> Any:
    """Compute scores Z (c, D) = A_i x_i and G (c, n) = A_iᵀ((μ(z) − q) p) + s_i x_i.

    A (c, D, n) with D a multiple of 4; X (c, n), or (1, n) for a common point; q, p (c, D); s (c, 1). ``mean`` chooses
    μ(z): z if IDENTITY, 1/(1 + e^−z) if LOGISTIC; if NONE, G is (c, 0).
    """
    c, D, n = A.shape
    if D % 4 or X.shape[1] != n or len(X) not in (1, c) or q.shape != (c, D) or p.shape != (c, D) or len(s) != c:
        raise ValueError("these samples and points do not go together")
    Z = np.empty((c, D), A.dtype)
    G = np.empty((c, n if mean else 0), A.dtype)
    step = min(D, max(4, CHUNK // max(1, n * A.itemsize) // 4 * 4))
    R = np.empty(step, A.dtype)
    for i in range(c):
        a = A[i]
        x = X[min(i, len(X) - 1)]
        z = Z[i]
        g = G[i]
        g[:] = 0
        # Not for 0, because 0 times infinity is not 0, and a point without a regulariser may be infinite.
        if s[i, 0] != 0:
            for k in range(len(g)):
                g[k] = s[i, 0] * x[k]
        for first in range(0, D, step):
            last = min(first + step, D)
            scores(a, first, last, x, z)
            if mean == NONE:
                continue
            r = R[: last - first]
            residuals(z[first:last], q[i, first:last], p[i, first:last], mean, r)
            if n < FEW:
                add_rows(a[first:last], r, g, NARROW)
            else:
                add_rows(a[first:last], r, g, VECTOR)
    return Z, G


@register_jitable
def residuals(z: Any, q: Any, p: Any, mean: int, r: Any) -> None:
    """Set r = (μ(z) − q) p."""
    if mean == LOGISTIC:
        for j in range(len(r)):
            r[j] = (sigmoid(z[j]) - q[j]) * p[j]
    else:
        for j in range(len(r)):
            r[j] = (z[j] - q[j]) * p[j]


@register_jitable
def scores(A: Any, first: int, last: int, x: Any, z: Any) -> None:
    """Set z[first : last] = ⟨a, x⟩ for these rows a of A (D, n)."""
    if len(x) < FEW:
        for j in range(first, last, 4):
            four_scores(A, j, x, z, NARROW)
    else:
        for j in range(first, last, 4):
            four_scores(A, j, x, z, VECTOR)


def one_pass_types(dtype: str) -> list[Any]:
    """Return the signatures of ``one_pass`` for a dtype."""
    number = getattr(types, dtype)
    read = [types.Array(number, d, "C", readonly=True) for d in (3, 2, 2, 2, 2)]
    matrix = types.Array(number, 2, "C")
    return [types.UniTuple(matrix, 2)(*read, types.intp)]


def sigmoid(z: Any) -> Any:
    """Compute 1/(1 + e^−z), without overflow at any z; numba compiles ``_sigmoid`` in its place."""
    raise NotImplementedError


@overload(sigmoid, inline="always")
def _sigmoid(z: Any) -> Any:
    """Compute ``sigmoid`` with t = −|z| = k ln 2 + u: e^t = 2^k e^u, and e^u by its Taylor series, |u| <= ln(2)/2."""
    number = np.float32 if z == types.float32 else np.float64
    smallest, upper, lower = LN_2[z]
    zero = number(0)
    half = number(0.5)
    one = number(1)
    smallest = number(smallest)  # type: ignore[assignment]
    inverse = number(1 / math.log(2))
    high = number(upper)
    low = number(lower)
    series = tuple(number(1 / math.factorial(k)) for k in range(7 if z == types.float32 else 13, -1, -1))

    def formula(z: Any) -> Any:
        t = -abs(z)
        t = smallest if t < smallest else t
        k = np.int32(t * inverse - half)
        u = t - number(k) * high - number(k) * low
        e = zero
        for c in series:
            e = e * u + c
        e *= power_of_two(k, zero)
        result = (one if z >= zero else e) / (one + e)
        return result if z == z else z

    return formula


@intrinsic
def power_of_two(typing: Any, k: Any, like: Any) -> Any:
    """Compute 2^k in the type of ``like``, for an exponent in its range, by writing k into the bits."""
    bits, bias, shift, number = POWERS[like]

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        integer = ir.IntType(bits)
        k = builder.sext(args[0], integer) if bits > args[0].type.width else args[0]
        return builder.bitcast(builder.shl(builder.add(k, integer(bias)), integer(shift)), number)

    return like(types.int32, like), code


@intrinsic(prefer_literal=True)
def four_scores(typing: Any, A: Any, j: Any, x: Any, z: Any, vector: Any) -> Any:
    """Set z[j : j + 4] = ⟨a, x⟩ for the rows a = A[j], A[j + 1] … of A (D, n), by vectors of ``vector`` bytes."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        loops = Loops(context, builder, sig, args, vector)
        j = args[1]
        (A, _, n), (x, *_), (z, *_) = (loops.array(k) for k in (0, 2, 3))
        rows = [builder.gep(A, [builder.mul(n, builder.add(j, n.type(r)))]) for r in range(4)]
        sums = [loops.zeros(loops.simd_width)] * 4
        for lanes, longer in ((loops.simd_width, 0), (4, loops.simd_width)):
            sums = loops.fold(sums, lanes)
            slots = [cgutils.alloca_once_value(builder, one) for one in sums]
            with loops.strips(n, lanes, longer) as k:
                column = loops.load(x, k, lanes)
                for row, slot in zip(rows, slots, strict=True):
                    builder.store(loops.add(builder.load(slot), loops.load(row, k, lanes), column), slot)
            sums = [builder.load(slot) for slot in slots]
        slot = cgutils.alloca_once_value(builder, loops.add_lanes(sums))
        with loops.strips(n, 1, 4) as k:
            column = loops.zeros(4)
            for r, row in enumerate(rows):
                column = builder.insert_element(column, loops.load(row, k, 1), INT(r))
            builder.store(loops.add(builder.load(slot), column, loops.broadcast(loops.load(x, k, 1), 4)), slot)
        loops.store(builder.load(slot), z, j, 4)
        return context.get_dummy_value()

    return types.void(A, types.intp, x, z, vector), code


@intrinsic(prefer_literal=True)
def add_rows(typing: Any, A: Any, r: Any, g: Any, vector: Any) -> Any:
    """Add Σ_j r_j a_j over the rows a_j of A (D, n) to g, D a multiple of 4, by vectors of ``vector`` bytes."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        loops = Loops(context, builder, sig, args, vector)
        (A, rows, n), (r, *_), (g, *_) = (loops.array(k) for k in range(3))
        for longer, lanes in pairwise((0, UNROLL * loops.simd_width, loops.simd_width, 4, 1)):
            with loops.strips(n, lanes, longer) as k:
                slot = cgutils.alloca_once_value(builder, loops.load(g, k, lanes))
                with cgutils.for_range_slice(builder, n.type(0), rows, n.type(4), n.type) as (j, _):
                    total = builder.load(slot)
                    for i in range(4):
                        row = builder.add(j, n.type(i))
                        a = loops.load(A, builder.add(builder.mul(row, n), k), lanes)
                        total = loops.add(total, a, loops.broadcast(loops.load(r, row, 1), lanes))
                    builder.store(total, slot)
                loops.store(builder.load(slot), g, k, lanes)
        return context.get_dummy_value()

    return types.void(A, r, g, vector), code
