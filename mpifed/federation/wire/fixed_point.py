"""Real numbers as integers modulo 2^bits, whose sums are exact in any order."""

import math
from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array


class FixedPoint(NamedTuple):
    """Multiples of 2^-fraction, as integers modulo 2^bits."""

    bits: int
    fraction: int

    def limit(self, count: int) -> float:
        """Entries up to this in absolute value can be added up over ``count`` clients."""
        most = ((1 << (self.bits - 1)) - 1) // count
        whole = float(most)
        return math.ldexp(whole if whole <= most else math.nextafter(whole, 0), -self.fraction)

    def room(self, value: float, count: int) -> int:
        """The most bits after the point with which entries of this absolute value can be added up."""
        return math.frexp(self._replace(fraction=0).limit(count) / value)[1] - 1

    def encode(self, X: Array) -> Array:
        """The nearest multiples, uint64; X must be at most ``limit`` in absolute value."""
        integers = np.rint(np.ldexp(X.astype(np.float64, copy=False), self.fraction)).astype(np.int64).view(np.uint64)
        return self.reduced(integers)

    def decode(self, integers: Array) -> Array:
        """The real numbers (float64) between -2^(bits-1-fraction) and 2^(bits-1-fraction)."""
        unused = np.uint64(64 - self.bits)
        signed = (integers << unused).view(np.int64) >> unused.astype(np.int64)
        return np.ldexp(signed.astype(np.float64), -self.fraction)

    def reduced(self, integers: Array) -> Array:
        """uint64 modulo 2^bits."""
        return integers if self.bits == 64 else integers & np.uint64((1 << self.bits) - 1)
