"""The compiled kernel of linear models: scores, slopes and gradient of a client while its rows are in the L1 cache.

Numba compiles it. The two inner loops, scores of four rows and a sum of rows, are LLVM code: vectors of 64 bytes, 32
for few features, then of 4 numbers, then single numbers, added in one fixed order. So the bits of a client depend on
its samples alone, and few features cost little.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload, register_jitable

from mpifed.kernels.compiling import LOGISTIC, NONE

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
VECTOR = 64  # bytes
FUSED = ("contract",)  # the only relaxed rule of arithmetic: a·b + c may be rounded once
INT = ir.IntType(32)


class Loops:
    """A builder of inner loops; a vector has ``simd_width`` numbers."""

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any, vector: Any) -> None:
        self.context = context
        self.builder = builder
        self.sig = sig
        self.args = args
        self.number = self.array(0)[0].type.pointee
        self.size = 4 if isinstance(self.number, ir.FloatType) else 8
        self.simd_width = vector.literal_value // self.size

    def array(self, k: int) -> list[Any]:
        """Return a pointer to the first number of the array that is the k-th argument, and its shape."""
        array = self.context.make_array(self.sig.args[k])(self.context, self.builder, self.args[k])
        return [array.data, *cgutils.unpack_tuple(self.builder, array.shape)]

    @contextmanager
    def strips(self, n: Any, lanes: int, longer: int = 0) -> Iterator[Any]:
        """Loop over the n columns, ``lanes`` at a time, without those that strips of ``longer`` lanes have covered."""
        first = self.builder.and_(n, n.type(-longer)) if longer else n.type(0)
        last = self.builder.and_(n, n.type(-lanes))
        with cgutils.for_range_slice(self.builder, first, last, n.type(lanes), n.type) as (k, _):
            yield k

    def load(self, pointer: Any, k: Any, lanes: int) -> Any:
        """Load ``lanes`` numbers from the k-th one on."""
        return self.builder.load(self._strip(pointer, k, lanes), align=self.size)

    def store(self, values: Any, pointer: Any, k: Any, lanes: int) -> None:
        """Store ``lanes`` numbers from the k-th position on."""
        self.builder.store(values, self._strip(pointer, k, lanes), align=self.size)

    def add(self, total: Any, a: Any, b: Any) -> Any:
        """Compute total + a·b."""
        return self.builder.fadd(total, self.builder.fmul(a, b, flags=FUSED), flags=FUSED)

    def zeros(self, lanes: int) -> Any:
        """Return a vector of zeros."""
        return ir.Constant(ir.VectorType(self.number, lanes), None)

    def broadcast(self, value: Any, lanes: int) -> Any:
        """Copy one number to every lane."""
        if lanes == 1:
            return value
        first = self.builder.insert_element(self.zeros(lanes), value, INT(0))
        return self._shuffle(first, first, [0] * lanes)

    def fold(self, sums: list[Any], lanes: int) -> list[Any]:
        """Add the upper half of each vector to the lower one until ``lanes`` are left."""
        while (half := sums[0].type.count // 2) >= lanes:
            parts = [[self._shuffle(v, v, range(k, k + half)) for k in (0, half)] for v in sums]
            sums = [self.builder.fadd(*part) for part in parts]
        return sums

    def add_lanes(self, v: list[Any]) -> Any:
        """Add up the lanes of each of four vectors of four: one vector of the four sums."""
        a, b = [
            self.builder.fadd(self._shuffle(a, b, [0, 4, 1, 5]), self._shuffle(a, b, [2, 6, 3, 7]))
            for a, b in ((v[0], v[1]), (v[2], v[3]))
        ]
        return self.builder.fadd(self._shuffle(a, b, [0, 1, 4, 5]), self._shuffle(a, b, [2, 3, 6, 7]))

    def _shuffle(self, a: Any, b: Any, lanes: Any) -> Any:
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT, len(lanes)), list(lanes)))

    def _strip(self, pointer: Any, k: Any, lanes: int) -> Any:
        address = self.builder.gep(pointer, [k])
        return address if lanes == 1 else self.builder.bitcast(address, ir.VectorType(self.number, lanes).as_pointer())


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
