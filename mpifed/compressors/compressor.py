"""What a compressor is: a rule that makes messages short, with its error and its exact bits."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from mpifed.core import symmetric as packed
from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps
from mpifed.core.typing import Array

Generators = Sequence[np.random.Generator]
Draws = Callable[[], Generators]  # makes one generator a row, where a compressor asks for them


class Compressor(Component):
    """A rule C for messages: vectors of N numbers, or with ``symmetric`` packed matrices.

    A packed matrix is the upper triangle of a symmetric matrix of order n, row by row: N = n(n + 1)/2 numbers. Its norm
    is that of Frobenius, in which entries off the diagonal count twice. C is contractive if E‖C(x) − x‖² <=
    (1 − δ)‖x‖², and unbiased if E C(x) = x; then E‖C(x) − x‖² <= ω‖x‖². The expectation is over the draws of C.

        >>> class Sign(mpifed.Compressor):
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
        "uniform": "mpifed.compressors.rounding:Uniform",
        "rank": "mpifed.compressors.rank:Rank",
    }
    default: ClassVar[str] = "identity"
    kind: ClassVar[str] = "compressors"
    checks: ClassVar[str] = "mpifed.compressors.compressor_guards"

    def compress(self, rows: Array, rngs: Draws, symmetric: bool = False) -> Array:
        """C of each row: (c, N), zeros where nothing is sent. A row that is not finite stays as it is."""
        # A sum of squares is finite only if all numbers are, and takes no array of as many answers. Where it overflows
        # though all are finite, the slower way below says so.
        if np.isfinite(np.vecdot(rows, rows)).all():
            return self.message(rows, rngs, symmetric)
        good = np.isfinite(rows).all(axis=1, keepdims=True)
        return np.where(good, self.message(np.where(good, rows, 0), rngs, symmetric), rows)

    @abstractmethod
    def message(self, rows: Array, rngs: Draws, symmetric: bool) -> Array:
        """C of each row, all finite: (c, N). It may be ``rows`` itself, which is never written to."""

    @abstractmethod
    def bits(self, N: int, itemsize: int, symmetric: bool = False) -> int:
        """The bits of one message of N numbers of ``itemsize`` bytes."""

    def numbers(self, N: int, vectors: int = 1) -> float:
        """The length of a message of so many ``vectors`` of N numbers in numbers of 64 bits, up to a whole byte."""
        return -(-vectors * self.bits(N, 8) // 8) / 8

    def delta(self, N: int, symmetric: bool = False) -> float | None:
        """δ, the largest that is known; None where C is not contractive."""
        return None

    def omega(self, N: int, symmetric: bool = False) -> float | None:
        """ω, the smallest that is known; None where C is biased."""
        return None

    def contraction(self, N: int, symmetric: bool = False) -> tuple[float, float]:
        """A factor a with which a·C is contractive, and its δ: 1 and δ of C itself, or both 1/(1 + ω)."""
        delta = self.delta(N, symmetric)
        if delta is not None:
            return 1.0, delta
        omega = self.omega(N, symmetric)
        if omega is None:
            raise UserError(f"the compressor {self.label()} is neither contractive nor unbiased: it has no δ and no ω")
        return 1 / (1 + omega), 1 / (1 + omega)

    def verify(self, symmetric: bool = False) -> None:
        """Refuse messages that this compressor is not made for (UserError)."""


class Identity(Compressor, tag="identity"):
    """C(x) = x: δ = 1, ω = 0, all N numbers are sent."""

    # What travels is what was uploaded.
    keeps = Keeps.EVERYTHING

    def message(self, rows: Array, rngs: Draws, symmetric: bool) -> Array:
        return rows

    def bits(self, N: int, itemsize: int, symmetric: bool = False) -> int:
        return 8 * itemsize * N

    def delta(self, N: int, symmetric: bool = False) -> float:
        return 1.0

    def omega(self, N: int, symmetric: bool = False) -> float:
        return 0.0


def order(N: int) -> int:
    """n of a symmetric matrix that is packed into N = n(n + 1)/2 numbers (UserError)."""
    try:
        return packed.order(N)
    except ValueError:
        raise UserError(f"{N} numbers are no packed symmetric matrix: a matrix of order n has n(n + 1)/2") from None


def above(key: str, C: Compressor, numbers: int) -> list[str]:
    """A sentence where a compressor keeps ``k`` entries of messages that have fewer ``numbers``."""
    k = getattr(C, "k", None)
    if not isinstance(k, int) or k <= numbers:
        return []
    return [f"{key}.k = {k} is above the {numbers:,} numbers of a message: all are sent"]
