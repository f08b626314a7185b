"""The base of compressors: rules that shorten messages, with their errors and exact bits."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from mpifed.core import symmetric as packed
from mpifed.core.arrays import is_numpy_array
from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.guards import Guard, require, require_array, require_finite
from mpifed.core.promises import Supports
from mpifed.core.typing import Array

Generators = Sequence[np.random.Generator]
Draws = Callable[[], Generators]  # makes one generator for each row, when called


ROWS = require_finite(
    require_array(
        lambda compressor, rows, *args: rows.shape,
        " for rows of shape {shape}: C(x) has the shape of x",
        is_numpy_array,
    )
)


def check_message(compressor: Any, result: Any, rows: Array, rngs: Any, symmetric: bool) -> Array:
    """Return messages with the type of ``rows``; raise InvalidReturn for a wrong shape or wrong numbers."""
    return ROWS(compressor, result, rows).astype(rows.dtype, copy=False)


class Compressor(Component):
    """A rule C for messages: vectors of N numbers, or with ``symmetric`` packed matrices.

    A packed matrix is the upper triangle of a symmetric matrix of order n, row by row: N = n(n + 1)/2 numbers. Its norm
    is that of Frobenius, in which entries off the diagonal count twice. C is contractive if E‖C(x) − x‖² <=
    (1 − δ)‖x‖², and unbiased if E C(x) = x; then E‖C(x) − x‖² <= ω‖x‖². The expectation is over the draws of C.

        >>> class Sign(mpifed.extend.Compressor):
        ...     def message(self, rows, rngs, symmetric):
        ...         return np.abs(rows).mean(axis=1, keepdims=True) * np.sign(rows)
        ...     def bits(self, N, itemsize, symmetric=False):
        ...         return N + 8 * itemsize
        >>> Sign().compress(np.array([[3.0, -1.0]]), list)
        array([[ 2., -2.]])
    """

    choices: ClassVar[dict[str, str]] = {
        "identity": "mpifed.compressors.compressor:Identity",
        "topk": "mpifed.compressors.sparse:TopK",
        "randk": "mpifed.compressors.sparse:RandK",
        "randseqk": "mpifed.compressors.sparse:RandSeqK",
        "natural": "mpifed.compressors.rounding:Natural",
        "dither": "mpifed.compressors.rounding:Dither",
        "uniform": "mpifed.compressors.rounding:UniformQuantization",
        "rank": "mpifed.compressors.rank:Rank",
    }
    default: ClassVar[str] = "identity"
    kind: ClassVar[str] = "compressors"
    guards: ClassVar[dict[str, Guard]] = {
        "message": check_message,
        "bits": require(lambda bits, *args: bits >= 0, " for a message of {0} numbers: it must be at least 0"),
        "delta": require(
            lambda delta, *args: delta is None or 0 < delta <= 1, ": δ is a number above 0 and at most 1, or None"
        ),
        "omega": require(lambda omega, *args: omega is None or omega >= 0, ": ω is a number, at least 0, or None"),
    }

    def compress(self, rows: Array, rngs: Draws, symmetric: bool = False) -> Array:
        """Return C of each row: (c, N), 0 for numbers not sent. A row that is not finite is returned unchanged."""
        # A sum of squares is finite only if all numbers are, and needs no array of booleans. If it overflows although
        # all are finite, the slower way below is right too.
        if np.isfinite(np.vecdot(rows, rows)).all():
            return self.message(rows, rngs, symmetric)
        good = np.isfinite(rows).all(axis=1, keepdims=True)
        return np.where(good, self.message(np.where(good, rows, 0), rngs, symmetric), rows)

    @abstractmethod
    def message(self, rows: Array, rngs: Draws, symmetric: bool) -> Array:
        """Return C of each row, all finite: (c, N). It may return ``rows`` itself, which is never written to."""

    @abstractmethod
    def bits(self, N: int, itemsize: int, symmetric: bool = False) -> int:
        """Return the bits of one message of N numbers of ``itemsize`` bytes."""

    def numbers(self, N: int, vectors: int = 1) -> float:
        """Return the length of a message of ``vectors`` of N numbers, in numbers of 64 bits, rounded up to a byte."""
        return -(-vectors * self.bits(N, 8) // 8) / 8

    def delta(self, N: int, symmetric: bool = False) -> float | None:
        """Return the largest known δ; None if C is not contractive."""
        return None

    def omega(self, N: int, symmetric: bool = False) -> float | None:
        """Return the smallest known ω; None if C is biased."""
        return None

    def contraction(self, N: int, symmetric: bool = False) -> tuple[float, float]:
        """Return a factor a for which a·C is contractive, and its δ: 1 and δ of C itself, or both 1/(1 + ω)."""
        delta = self.delta(N, symmetric)
        if delta is not None:
            return 1.0, delta
        omega = self.omega(N, symmetric)
        if omega is None:
            raise UserError(f"the compressor {self.label()} is neither contractive nor unbiased: it has no δ and no ω")
        return 1 / (1 + omega), 1 / (1 + omega)

    def verify(self, symmetric: bool = False) -> None:
        """Raise UserError for messages that this compressor cannot compress."""


class Identity(Compressor, tag="identity"):
    """The identity C(x) = x: δ = 1, ω = 0, all N numbers are sent."""

    # Messages are the uploads themselves.
    supports = Supports.EVERYTHING

    def message(self, rows: Array, rngs: Draws, symmetric: bool) -> Array:
        return rows

    def bits(self, N: int, itemsize: int, symmetric: bool = False) -> int:
        return 8 * itemsize * N

    def delta(self, N: int, symmetric: bool = False) -> float:
        return 1.0

    def omega(self, N: int, symmetric: bool = False) -> float:
        return 0.0


def matrix_order(N: int) -> int:
    """Return n of a symmetric matrix packed into N = n(n + 1)/2 numbers; raise UserError if N is no such number."""
    try:
        return packed.order_of_packed(N)
    except ValueError:
        raise UserError(f"{N} numbers are no packed symmetric matrix: a matrix of order n has n(n + 1)/2") from None


def note_large_k(key: str, C: Compressor, numbers: int) -> list[str]:
    """Return a note in a list if a compressor keeps ``k`` entries of messages with fewer ``numbers``, else []."""
    k = getattr(C, "k", None)
    if not isinstance(k, int) or k <= numbers:
        return []
    return [f"{key}.k = {k} is above the {numbers:,} numbers of a message: all are sent"]
