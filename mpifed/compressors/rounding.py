"""Compressors that send all numbers with fewer bits, rounded at random without bias."""

import math
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from mpifed.compressors.compressor import Compressor, Draws, matrix_order
from mpifed.core.promises import Supports
from mpifed.core.symmetric import frobenius
from mpifed.core.typing import Array

MANTISSA = {4: 23, 8: 52}  # bytes of a number -> bits of its mantissa


class Natural(Compressor, tag="natural"):
    """Natural compression: each number is rounded at random, without bias, to one of the two powers of two beside it.

    Unbiased and contractive: ω = 1/8, δ = 7/8. A message is N signs and exponents: 9 bits a number in single precision,
    12 in double. Numbers below the smallest normal one become 0 or that one.
    Source: S. Horváth, C.-Y. Ho, Ľ. Horváth, A. N. Sahu, M. Canini, P. Richtárik, "Natural compression for distributed
    deep learning", arXiv:1905.10988 (2019).
    """

    # It looks at an upload after its noise, and draws from f.rng.
    supports = Supports.EVERYTHING

    def message(self, rows: Array, rngs: Draws, symmetric: bool) -> Array:
        # A number between two powers of two is 2^e(1 + f) with f in its mantissa, to be rounded up with probability f.
        # Random bits added to the mantissa carry into the exponent with exactly that probability: 6 = 4 · 1.5 becomes 8
        # for half of the draws. Always 52 bits are drawn, so that single precision uses the same draws.
        mantissa = MANTISSA[rows.itemsize]
        dtype = np.dtype(f"u{rows.itemsize}")
        codes = np.ascontiguousarray(rows).view(dtype)
        sent = np.empty_like(codes)
        for row, code, rng in zip(sent, codes, rngs(), strict=True):
            draws = rng.integers(1 << 52, size=len(code), dtype=np.uint64) >> np.uint64(52 - mantissa)
            np.add(code, draws, out=row, casting="same_kind")
        sent &= ~dtype.type((1 << mantissa) - 1)
        return sent.view(rows.dtype)

    def bits(self, N: int, itemsize: int, symmetric: bool = False) -> int:
        return N * (8 * itemsize - MANTISSA[itemsize])

    def delta(self, N: int, symmetric: bool = False) -> float:
        return 7 / 8

    def omega(self, N: int, symmetric: bool = False) -> float:
        return 1 / 8


class Dither(Compressor, tag="dither"):
    """Random dithering: |x_j| is rounded at random, without bias, to a level 0, 1/s, 2/s … 1 of the norm.

    Unbiased. With W = N for vectors and n² for matrices of order n: for the Euclidean norm ω = √W/s − 1 if √W >= 2s,
    else W/(4s²); for the largest number as norm ω = (√(1 + (W − 1)/s²) − 1)/2. A message is the norm, N signs and N
    levels of ⌈log₂(s + 1)⌉ bits.
    Source: D. Alistarh, D. Grubic, J. Li, R. Tomioka, M. Vojnovic, "QSGD: Communication-efficient SGD via gradient
    quantization and encoding", arXiv:1610.02132 (2017), whose bound of ω is min(N/s², √N/s).
    """

    # It looks at an upload after its noise, and draws from f.rng.
    supports = Supports.EVERYTHING

    s: Annotated[int, Meta(ge=1, description="levels above 0")] = 4
    norm: Annotated[
        Literal["euclidean", "largest"], Meta(description="norm of a message: Euclidean, or its largest number")
    ] = "euclidean"

    def message(self, rows: Array, rngs: Draws, symmetric: bool) -> Array:
        sizes = np.abs(rows)
        norm = self.norms(sizes, symmetric)[:, None]
        unit = np.where(norm > 0, norm, 1) / self.s
        levels = sizes / unit
        for row, rng in zip(levels, rngs(), strict=True):
            row[:] = np.floor(row + rng.random(len(row)))
        # By rounding errors, the largest number may be above the norm, and one level too high.
        np.minimum(levels, self.s, out=levels)
        levels *= unit
        return np.copysign(levels, rows, out=levels)

    def norms(self, sizes: Array, symmetric: bool) -> Array:
        """Return the norm of each row of absolute values (c, N): (c,)."""
        if self.norm == "largest":
            return sizes.max(axis=1, initial=0)
        if symmetric:
            return frobenius(sizes, matrix_order(sizes.shape[1]))
        return np.sqrt(np.vecdot(sizes, sizes))

    def bits(self, N: int, itemsize: int, symmetric: bool = False) -> int:
        return 8 * itemsize + N * (1 + self.s.bit_length())

    def omega(self, N: int, symmetric: bool = False) -> float:
        W = matrix_order(N) ** 2 if symmetric else N  # sum of the weights of all numbers in the norm
        if self.norm == "largest":
            return (math.sqrt(1 + (W - 1) / self.s**2) - 1) / 2
        return math.sqrt(W) / self.s - 1 if math.sqrt(W) >= 2 * self.s else W / (4 * self.s**2)


class UniformQuantization(Compressor, tag="uniform"):
    """Uniform quantization: each number is rounded at random, without bias, to one of 2^b levels from −r to r.

    r is the largest |x_j|. Unbiased, with ω = (W − 1)/(2^b − 1)², W = N for vectors and n² for matrices of order n. A
    message is r and N levels of b bits.
    Source: A. Elgabli, C. B. Issaid, A. S. Bedi, K. Rajawat, M. Bennis, V. Aggarwal, arXiv:2206.08829 (2022).
    """

    # It looks at an upload after its noise, and draws from f.rng.
    supports = Supports.EVERYTHING

    b: Annotated[int, Meta(ge=1, le=16, description="bits of a number: 2^b levels")] = 3

    def message(self, rows: Array, rngs: Draws, symmetric: bool) -> Array:
        highest = 2**self.b - 1
        r = np.abs(rows).max(axis=1, keepdims=True, initial=0)
        unit = np.where(r > 0, 2 * r, 1) / highest
        position = (rows + r) / unit
        level = np.floor(position)
        for row, fraction, rng in zip(level, position - level, rngs(), strict=True):
            row += rng.random(len(row)) < fraction
        # by rounding errors, the largest number may be one level too high
        np.minimum(level, highest, out=level)
        return level * unit - r

    def bits(self, N: int, itemsize: int, symmetric: bool = False) -> int:
        return 8 * itemsize + N * self.b

    def omega(self, N: int, symmetric: bool = False) -> float:
        W = matrix_order(N) ** 2 if symmetric else N
        return (W - 1) / (2**self.b - 1) ** 2
