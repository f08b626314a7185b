"""What the inner loops of compiled kernels are made of: loops over vectors of numbers, written as LLVM code."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba.core import cgutils

VECTOR = 64  # bytes
FUSED = ("contract",)  # of the rules of arithmetic only this one is relaxed: a·b + c may be rounded once
INT = ir.IntType(32)


class Loops:
    """What an inner loop is made of; ``wide`` numbers make a vector."""

    def __init__(self, context: Any, builder: Any, sig: Any, args: Any, vector: Any) -> None:
        self.context = context
        self.builder = builder
        self.sig = sig
        self.args = args
        self.number = self.array(0)[0].type.pointee
        self.size = 4 if isinstance(self.number, ir.FloatType) else 8
        self.wide = vector.literal_value // self.size

    def array(self, k: int) -> list[Any]:
        """Of the array that is the k-th argument: a pointer to its first number, and its shape."""
        array = self.context.make_array(self.sig.args[k])(self.context, self.builder, self.args[k])
        return [array.data, *cgutils.unpack_tuple(self.builder, array.shape)]

    @contextmanager
    def strips(self, n: Any, lanes: int, longer: int = 0) -> Iterator[Any]:
        """A loop over the n columns, ``lanes`` at a time; those are left out that strips of ``longer`` lanes have."""
        first = self.builder.and_(n, n.type(-longer)) if longer else n.type(0)
        last = self.builder.and_(n, n.type(-lanes))
        with cgutils.for_range_slice(self.builder, first, last, n.type(lanes), n.type) as (k, _):
            yield k

    def load(self, pointer: Any, k: Any, lanes: int) -> Any:
        """``lanes`` numbers from the k-th one on."""
        return self.builder.load(self._strip(pointer, k, lanes), align=self.size)

    def store(self, values: Any, pointer: Any, k: Any, lanes: int) -> None:
        """Write them there."""
        self.builder.store(values, self._strip(pointer, k, lanes), align=self.size)

    def add(self, total: Any, a: Any, b: Any) -> Any:
        """total + a·b."""
        return self.builder.fadd(total, self.builder.fmul(a, b, flags=FUSED), flags=FUSED)

    def zeros(self, lanes: int) -> Any:
        return ir.Constant(ir.VectorType(self.number, lanes), None)

    def spread(self, value: Any, lanes: int) -> Any:
        """One number in every lane."""
        if lanes == 1:
            return value
        first = self.builder.insert_element(self.zeros(lanes), value, INT(0))
        return self._shuffled(first, first, [0] * lanes)

    def folded(self, sums: list[Any], lanes: int) -> list[Any]:
        """The vectors with their upper half added to the lower one until ``lanes`` are left."""
        while (half := sums[0].type.count // 2) >= lanes:
            parts = [[self._shuffled(v, v, range(k, k + half)) for k in (0, half)] for v in sums]
            sums = [self.builder.fadd(*part) for part in parts]
        return sums

    def across(self, v: list[Any]) -> Any:
        """The sums over the lanes of four vectors of four: one vector."""
        a, b = [
            self.builder.fadd(self._shuffled(a, b, [0, 4, 1, 5]), self._shuffled(a, b, [2, 6, 3, 7]))
            for a, b in ((v[0], v[1]), (v[2], v[3]))
        ]
        return self.builder.fadd(self._shuffled(a, b, [0, 1, 4, 5]), self._shuffled(a, b, [2, 3, 6, 7]))

    def _shuffled(self, a: Any, b: Any, lanes: Any) -> Any:
        return self.builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(INT, len(lanes)), list(lanes)))

    def _strip(self, pointer: Any, k: Any, lanes: int) -> Any:
        place = self.builder.gep(pointer, [k])
        return place if lanes == 1 else self.builder.bitcast(place, ir.VectorType(self.number, lanes).as_pointer())
