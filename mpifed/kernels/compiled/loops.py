"""Building blocks of the inner loops of compiled kernels: loops over vectors of numbers, as LLVM code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils

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
