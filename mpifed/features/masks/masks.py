"""Table [masks]: simulated secure aggregation, uploads under masks that cancel in their sum, and its cost."""

import math
from typing import Annotated, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core.component import StudyTable
from mpifed.core.typing import Array


class FixedPoint(NamedTuple):
    """Fixed-point numbers: multiples of 2^-fraction as integers modulo 2^bits; sums are exact in any order."""

    bits: int
    fraction: int

    def limit(self, count: int) -> float:
        """Return the largest absolute value of entries that can be added up over ``count`` clients."""
        maximum = ((1 << (self.bits - 1)) - 1) // count
        # 2^63 − 1 is no double and would be rounded up: the next double below is taken
        rounded = float(maximum)
        return math.ldexp(rounded if rounded <= maximum else math.nextafter(rounded, 0), -self.fraction)

    def maximum_fraction(self, value: float, count: int) -> int:
        """Return the most bits after the point with which entries of this absolute value can be added up."""
        return math.frexp(self._replace(fraction=0).limit(count) / value)[1] - 1

    def encode(self, X: Array) -> Array:
        """Return the nearest multiples, uint64; X must be at most ``limit`` in absolute value."""
        integers = np.rint(np.ldexp(X.astype(np.float64, copy=False), self.fraction)).astype(np.int64).view(np.uint64)
        return self.wrap(integers)

    def decode(self, integers: Array) -> Array:
        """Return the real numbers (float64), between -2^(bits-1-fraction) and 2^(bits-1-fraction)."""
        unused = np.uint64(64 - self.bits)
        signed = (integers << unused).view(np.int64) >> unused.astype(np.int64)
        return np.ldexp(signed.astype(np.float64), -self.fraction)

    def wrap(self, integers: Array) -> Array:
        """Return the integers (uint64) modulo 2^bits."""
        return integers if self.bits == 64 else integers & np.uint64((1 << self.bits) - 1)


class WholeNumbers(FixedPoint):
    """Whole numbers from −2^(bits − 1) to 2^(bits − 1) − 1, whose sums wrap around modulo 2^bits."""

    def limit(self, count: int) -> float:
        """Return infinity: no number is too large."""
        return math.inf

    def encode(self, X: Array) -> Array:
        """Return whole numbers X as uint64, the negative ones modulo 2^64: ``decode`` takes sums modulo 2^bits."""
        return X.astype(np.int64).view(np.uint64)


class Masks(StudyTable):
    """Simulated secure aggregation: the cost of a server that learns the sum of the uploads and no single upload.

    Every two of the s selected clients have a mask of N numbers in common, which one adds to its upload and the other
    subtracts; N numbers are uploaded by each. Numbers are integers modulo 2^bits, so an upload has b = ⌈N bits/8⌉
    bytes; a public key has K = key_bytes, an encrypted secret share S = share_bytes. Of the s clients u reply. For each
    masked sum bytes_up and bytes_down are charged, instead of the plain uploads (downloads of models: as ever),

        "seeds":    up    s(2K + 2(s−1)S) + u(b + sS)           down  s(s−1)(2K + 2S)
        "vectors":  up    s(s−1)/2·b + u b + u(s−u)b            down  s(s−1)/2·b

    With seeds every client sends two public keys and gets those of the others, sends every other client shares of its
    secret key and of the seed of a mask of its own, uploads, and sends one share for each selected client. With vectors
    one client of each pair draws the mask and sends it to the other through the server; for those that drop out, each
    of the others sends the mask that they had in common. Clients drop out after the masks were agreed on, which costs
    most. Messages and exchanges are counted, and time is simulated, as without masks.

    ``sums`` says what is computed. "float": the usual sums; masks are only charged. "fixed-point": sums of uploads
    rounded to multiples of 2^-fraction, which are exact in any order. "masked": the same bits, with masks really added
    by the clients and cancelled by the server, those of clients that dropped out included. Round 0 is masked likewise
    and not charged; maxima asked for in round 0, such as that of r_i, are not masked. Where a sum is over last uploads,
    a client uploads the difference to its last one, and the server adds the masked differences to the sum it has.

    Source: K. Bonawitz et al., "Practical secure aggregation for privacy-preserving machine learning",
    doi:10.1145/3133956.3133982 (2017), against a server that follows the protocol: without signatures. The masks of a
    simulation come from the run's seed; they show that the sums are right and protect nobody.
    """

    kind: Annotated[
        Literal["seeds", "vectors"],
        Meta(description="how clients agree on masks: by keys, seeds and secret shares, or by whole vectors"),
    ] = "seeds"
    sums: Annotated[
        Literal["float", "fixed-point", "masked"],
        Meta(description="how uploads are added up: as without masks, in fixed point, or that with masks computed"),
    ] = "float"
    bits: Annotated[int, Meta(ge=8, le=64, description="bits of a number in an upload")] = 64
    fraction: Annotated[int, Meta(ge=0, le=1000, description="bits of these after the point")] = 32
    threshold: Annotated[
        float, Meta(gt=0, le=1, description="share of the selected clients that must reply to cancel masks")
    ] = 0.67
    key_bytes: Annotated[int, Meta(ge=1, description="bytes of a public key")] = 32
    share_bytes: Annotated[int, Meta(ge=1, description="bytes of an encrypted secret share")] = 32

    @property
    def fixed_point(self) -> FixedPoint:
        return FixedPoint(self.bits, self.fraction)

    def message_bytes(self, selected: int, replies: int, numbers: int) -> tuple[int, int]:
        """Return the bytes up and down of a masked sum of ``numbers`` numbers, by the formulas of the class."""
        s = selected
        u = replies
        b = -(-numbers * self.bits // 8)
        if self.kind == "seeds":
            K, S = self.key_bytes, self.share_bytes
            return s * (2 * K + 2 * (s - 1) * S) + u * (b + s * S), s * (s - 1) * (2 * K + 2 * S)
        pairs = s * (s - 1) // 2
        return pairs * b + u * b + u * (s - u) * b, pairs * b

    def minimum_replies(self, selected: int) -> int:
        """Return how many of the selected clients must reply for masks to cancel."""
        return max(2, math.ceil(self.threshold * selected - 1e-9))
