"""Compressors that send some of the numbers: the largest, random ones, or consecutive ones."""

import math
import re
from abc import abstractmethod
from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.compressors.compressor import Compressor, Draws, matrix_order
from mpifed.core.promises import Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array

AT_ONCE = 1 << 15  # numbers whose largest are found together, which fit into the L2 cache of a core
SEED = 64  # bits of a seed
MULTIPLE = re.compile(r"(\d+(?:\.\d*)?|\.\d+)n")


class SparseCompressor(Compressor):
    """The base of compressors that keep k of the N numbers, at positions that ``places`` chooses."""

    k: Annotated[
        int | str,
        Meta(
            description='numbers sent: 8, or "8n" or "0.1n" times n, the length of a vector or the order of a matrix; '
            "rounded up, at most all"
        ),
    ]

    def __post_init__(self) -> None:
        multiple = MULTIPLE.fullmatch(str(self.k))
        if isinstance(self.k, str) and (multiple is None or float(multiple[1]) <= 0):
            raise ValueError(
                f'k = "{self.k}" is wrong: it must be a whole number, or a multiple of n such as "8n" or "0.1n"'
            )
        if multiple is None and int(self.k) < 1:
            raise ValueError(f"k = {self.k} is wrong: it must be at least 1")

    def count(self, N: int, symmetric: bool = False) -> int:
        """Return k for messages of N numbers."""
        multiple = MULTIPLE.fullmatch(str(self.k))
        if multiple is None:
            return min(int(self.k), N)
        n = matrix_order(N) if symmetric else N
        # 0.07 times 100 is 7.000000000000001, which would be rounded up to 8.
        return max(math.ceil(min(float(multiple[1]) * n - 1e-9, N)), 1)

    @abstractmethod
    def places(self, rows: Array, rngs: Draws, symmetric: bool = False) -> Array:
        """Return the positions of the numbers that are sent, rising in each row: (c, k)."""

    def factor(self, N: int, symmetric: bool = False) -> float:
        """Return the factor of the numbers sent."""
        return 1.0

    def message(self, rows: Array, rngs: Draws, symmetric: bool) -> Array:
        N = rows.shape[1]
        if self.count(N, symmetric) == N:
            return rows
        picked = self.places(rows, rngs, symmetric) + N * np.arange(len(rows))[:, None]
        sent = np.zeros_like(rows)
        # Flat indices take half the time of rows and columns. The factor has the type of the rows, or the product
        # would be in double precision.
        sent.ravel()[picked] = rows.ravel()[picked] * rows.dtype.type(self.factor(N, symmetric))
        return sent

    def bits(self, N: int, itemsize: int, symmetric: bool = False) -> int:
        k = self.count(N, symmetric)
        return 8 * itemsize * k + (self.indices(N, k) if k < N else 0)

    @abstractmethod
    def indices(self, N: int, k: int) -> int:
        """Return the bits of a message that encode which k < N numbers are sent."""


class TopK(SparseCompressor, tag="topk"):
    """The k numbers largest in absolute value; of equal ones those that come first.

    Contractive: δ = k/N for vectors; for matrices of order n, where k entries may all be on the diagonal,
    δ = (min(k, n) + 2 max(k − n, 0))/n². A message is k numbers and their places, of ⌈log₂ N⌉ bits each.
    Source: S. U. Stich, J.-B. Cordonnier, M. Jaggi, "Sparsified SGD with memory", arXiv:1809.07599 (2018).
    """

    # Its choice of entries depends on an upload that has its noise already.
    supports = Supports.EVERYTHING

    def places(self, rows: Array, rngs: Draws, symmetric: bool = False) -> Array:
        k = self.count(rows.shape[1], symmetric)
        step = max(1, AT_ONCE // rows.shape[1])
        positions = np.empty((len(rows), k), np.intp)
        for first in range(0, len(rows), step):
            positions[first : first + step] = find_largest(np.abs(rows[first : first + step]), k)
        return positions

    def indices(self, N: int, k: int) -> int:
        return k * (N - 1).bit_length()

    def delta(self, N: int, symmetric: bool = False) -> float:
        k = self.count(N, symmetric)
        if not symmetric:
            return k / N
        n = matrix_order(N)
        return (min(k, n) + 2 * max(k - n, 0)) / n**2


class RandK(SparseCompressor, tag="randk"):
    """A uniformly random choice of k numbers, times N/k.

    Unbiased: ω = N/k − 1. A message is k numbers and a seed of 64 bits, from which the receiver draws the same places.
    Source: S. U. Stich, J.-B. Cordonnier, M. Jaggi, "Sparsified SGD with memory", arXiv:1809.07599 (2018), scaled as in
    J. Wangni, J. Wang, J. Liu, T. Zhang, arXiv:1710.09854 (2018).
    """

    # It looks at an upload after its noise, and draws from f.rng.
    supports = Supports.EVERYTHING

    def places(self, rows: Array, rngs: Draws, symmetric: bool = False) -> Array:
        N = rows.shape[1]
        k = self.count(N, symmetric)
        # From a seed, which a message has in place of positions: the receiver draws the same ones.
        seeds = [int(rng.integers(1 << SEED, dtype=np.uint64)) for rng in rngs()]
        draws = [stream(seed, "compression").choice(N, k, replace=False, shuffle=False) for seed in seeds]
        return np.sort(np.array(draws).reshape(len(rows), k), axis=1)

    def factor(self, N: int, symmetric: bool = False) -> float:
        return N / self.count(N, symmetric)

    def indices(self, N: int, k: int) -> int:
        return SEED

    def omega(self, N: int, symmetric: bool = False) -> float:
        return self.factor(N, symmetric) - 1


class RandSeqK(RandK, tag="randseqk"):
    """A run of k consecutive numbers from a random place, the first following the last, times N/k.

    Unbiased: ω = N/k − 1. A message is k numbers and the first place, of ⌈log₂ N⌉ bits.
    Source: K. Burlachenko, P. Richtárik, "Unlocking FedNL: Self-contained compute-optimized implementation",
    arXiv:2410.08760 (2024).
    """

    # It looks at an upload after its noise, and draws from f.rng.
    supports = Supports.EVERYTHING

    def places(self, rows: Array, rngs: Draws, symmetric: bool = False) -> Array:
        N = rows.shape[1]
        starts = np.array([rng.integers(N) for rng in rngs()], np.intp).reshape(len(rows), 1)
        run = (starts + np.arange(self.count(N, symmetric))) % N
        run.sort(axis=1)
        return run

    def indices(self, N: int, k: int) -> int:
        return (N - 1).bit_length()


def find_largest(sizes: Array, k: int) -> Array:
    """Find the positions of the k largest numbers in each row (c, N), rising; of equal ones the first: (c, k)."""
    N = sizes.shape[1]
    # np.partition takes many times as long where most numbers are equal, as the zeros of sparse gradients are.
    if 2 * np.count_nonzero(sizes) < sizes.size:
        return np.array([find_largest_sparse(row, k) for row in sizes]).reshape(len(sizes), k)
    # np.argpartition would find positions at once, but its choice among equal numbers differs between machines.
    threshold = np.partition(sizes, N - k, axis=1)[:, N - k, None]
    is_kept = sizes >= threshold
    # If several numbers equal the k-th largest, the first of them are kept beside all larger ones. NaN counts as equal,
    # so that k positions are found in any case.
    for i in np.flatnonzero(np.count_nonzero(is_kept, axis=1) != k).tolist():
        is_kept[i] = sizes[i] > threshold[i]
        equal = np.flatnonzero(~is_kept[i] & ~(sizes[i] < threshold[i]))
        is_kept[i, equal[: k - np.count_nonzero(is_kept[i])]] = True
    return np.flatnonzero(is_kept).reshape(len(sizes), k) % N


def find_largest_sparse(sizes: Array, k: int) -> Array:
    """Find the positions of the k largest numbers in a row (N,), most of which is 0: (k,)."""
    nonzero = np.flatnonzero(sizes != 0)
    if len(nonzero) > k:
        return nonzero[find_largest(sizes[None, nonzero], k)[0]]
    zeros = np.flatnonzero(sizes[:k] == 0)[: k - len(nonzero)]
    return np.sort(np.concatenate([nonzero, zeros]))
