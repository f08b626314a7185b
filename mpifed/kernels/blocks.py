"""Blocks: the samples of clients of similar size in one array, so that one numpy call computes for many clients.

Rows are padded to a multiple of 4, and all clients of a block have the same padded size. Then the result of a client is
the same, to the last bit, whichever clients share its block. A block is so small that it stays in the cache of a core,
because an algorithm takes all its local steps on one block before it goes on to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self

import numpy as np

from mpifed.core.processor import UNKNOWN
from mpifed.core.symmetric import pack
from mpifed.core.typing import Array

PAD = 4
SPARSE = 4  # CSR stores few of the numbers, so a block has so many times the clients of a dense one
FEW = 8  # matrices: where a block has fewer it gains little from clients of like size
LINE = 64  # bytes of a cache line
NONE = 0  # what compiled kernels may make of scores: nothing …
IDENTITY = 1  # … these themselves …
LOGISTIC = 2  # … or 1/(1 + e^−z)


class Block:
    """The samples of c clients, each padded to D rows.

    ``A`` (c, D, n): features. ``b`` (c, D): labels. ``d`` (c,): number of samples d_i without the padding.
    ``w`` (c, D): weights, 1/d_i on the rows of client i and 0 on the padding. ``tests``: blocks with the test samples
    of these clients, each with the positions of its clients in this block. ``xp`` has the functions of the array-API
    standard for these arrays; ``counts`` (c,) and ``sizes`` are how many samples there are, which is ``d``
    but where samples have weights; ``sizes`` is an array of numpy, wherever the others are.
    """

    xp: Any = np

    def __init__(self, A: Any, b: Array, d: Array, n: int, w: Array | None = None) -> None:
        self.A = A
        self.b = b
        self.d = self.sizes = self.counts = d
        self.n = n
        self.w = weights(d, b.shape[1], b.dtype) if w is None else w
        self.tests: list[tuple[Array, Block]] = []
        self.training: tuple[Block, Array] | None = None  # of test samples: the block and positions of their clients
        self.cache: dict[str, Array] = {}  # of once(): of whole blocks that stand alone, as long as the run
        self.notes: dict[str, Any] = {}  # of note(): of this block alone
        self.parts: list[tuple[Any, Array]] = []  # of a block made of others: blocks or groups, and positions there
        self.place: tuple[Any, int] | None = None  # of a whole block: its SameSizeBlocks, and its number there

    def __len__(self) -> int:
        return len(self.d)

    def copied(self) -> Block:
        """These samples in memory, where they are."""
        return self

    def take(self, rows: Array) -> Self:
        """The block of the clients at positions ``rows``."""
        return self.gather([(self, rows)])

    def part(self, rows: slice | Array) -> Self:
        """The samples of the clients at positions ``rows``, without what has been computed of them."""
        return type(self)(self.A[rows], self.b[rows], self.d[rows], self.n, self.w[rows])

    @classmethod
    def gather(cls, parts: list[tuple[Self, Array]]) -> Self:
        """A block of clients from several blocks (block, positions) of the same padded size."""
        b, d, w = (np.concatenate([getattr(block, name)[rows] for block, rows in parts]) for name in ("b", "d", "w"))
        found = cls(cls._gather(parts), b, d, parts[0][0].n, w)
        found.parts = list(parts)
        return found

    def once(self, key: str, compute: Callable[[Block], Array]) -> Array:
        """``compute(block)``, an array (c, …), computed once for each whole block and kept."""
        if self.parts:
            return np.concatenate([part.values(key, compute, rows) for part, rows in self.parts])
        if self.place is not None:
            group, k = self.place
            return group.values_of(key, compute, k)
        if key not in self.cache:
            self.cache[key] = compute(self)
        return self.cache[key]

    def values(self, key: str, compute: Callable[[Block], Array], rows: Array) -> Array:
        """The same for the clients at positions ``rows`` alone."""
        return self.once(key, compute)[rows]

    def batch(self, picks: Array, w: Array) -> Self:
        """A mini-batch: rows ``picks`` (c, B) of each client, with weights ``w`` (c, B).

        ``d`` stays the number of all samples, which regularisers need.
        """
        rows = picks + np.arange(0, self.b.size, self.b.shape[1])[:, None]
        return type(self)(self._batch(rows), self.b.take(rows), self.d, self.n, w)

    def note(self, key: str, compute: Callable[[Block], Any]) -> Any:
        """``compute(block)``, any value; computed again for a block that ``gather`` makes, so it should be cheap."""
        if key not in self.notes:
            self.notes[key] = compute(self)
        return self.notes[key]

    def matvec(self, X: Array) -> Array:
        """A_i x_i: (c, D), with X (n,) for all clients or (c, n), one row per client."""
        return np.matvec(self.A, X)

    def vecmat(self, R: Array) -> Array:
        """A_iᵀ r_i: (c, n), with R (c, D)."""
        return np.vecmat(R, self.A)

    def one_pass(
        self, X: Array, residual: Callable[[Array], Array], logistic: bool, ridge: Array | None
    ) -> tuple[Array, Array]:
        """Scores z_i = A_i x_i (c, D) and A_iᵀ residual(z_i) + ridge_i x_i (c, n), with ridge (c, 1).

        ``residual`` gives the slopes of a linear model, times w; those of compiled kernels are logistic or linear.
        """
        Z = self.matvec(X)
        G = self.vecmat(residual(Z))
        if ridge is not None:
            G += self.note("ridge", lambda block: one_for_all(ridge)) * X
        return Z, G

    def real(self, numbers: Array) -> Array:
        """A copy of an array of these clients in the type of their samples."""
        return numbers.astype(self.b.dtype)

    def multiply(self, K: Array, V: Array) -> Array:
        """K_i v_i: (c, n), with K (c, n, n) and V (n,) or (c, n)."""
        return np.matvec(K, V)

    def bent(self, W: Array, V: Array) -> Array:
        """A_iᵀ diag(w_i) A_i v_i: (c, n), with W (c, D)."""
        return self.vecmat(W * self.matvec(V))

    def gram(self, W: Array) -> Array:
        """A_iᵀ diag(w_i) A_i: (c, n, n), symmetric to the bit, with W (c, D)."""
        G = self.gram_of(np.sqrt(np.maximum(W, 0)), range(len(self)))
        if (below := np.flatnonzero((W < 0).any(axis=1))).size:
            G[below] -= self.gram_of(np.sqrt(np.maximum(-W[below], 0)), below)
        return G

    def packed_gram(self, W: Array) -> Array:
        """The upper triangles of ``gram``, row by row: (c, n(n+1)/2)."""
        return pack(self.gram(W))

    def gram_of(self, S: Array, rows: Sequence[int] | Array) -> Array:
        """B_iᵀB_i with B_i = diag(s_i) A_i, for the clients at positions ``rows``: (r, n, n), with S (r, D)."""
        B = (self.A if len(rows) == len(self) else self.A[rows]) * S[:, :, None]
        return np.matmul(B.mT, B)

    def matmat(self, W: Array) -> Array:
        """A_i W_iᵀ: (c, D, k), with W (k, n) or (c, k, n)."""
        if self.b.shape[1] >= W.shape[-2]:
            return np.matmul(self.A, np.swapaxes(W, -1, -2))
        # BLAS is faster where the matrix with more rows comes first: with ten samples 1.2 to 1.4 times in float32
        return np.ascontiguousarray(np.matmul(W, np.swapaxes(self.A, -1, -2)).swapaxes(-1, -2))

    def tmatmat(self, R: Array) -> Array:
        """R_iᵀ A_i: (c, k, n), with R (c, D, k)."""
        return np.matmul(np.swapaxes(R, -1, -2), self.A)

    def put_tmatmat(self, R: Array, out: Array) -> None:
        """The same, written into ``out``."""
        np.matmul(np.swapaxes(R, -1, -2), self.A, out=out)

    def dense(self, i: int) -> Array:
        """The rows of the i-th client without the padding: (d_i, n)."""
        return self.A[i, : self.sizes[i]]

    def norms1(self) -> Array:
        """‖a‖₁ of every sample: (c, D)."""
        return np.abs(self.A).sum(axis=-1)

    @staticmethod
    def _gather(parts: list[tuple[Any, Array]]) -> Any:
        return np.concatenate([block.A[rows] for block, rows in parts])

    def _batch(self, rows: Array) -> Any:
        """The rows (c, B), counted over all clients of the block."""
        return self.A.reshape(-1, self.n).take(rows, axis=0)


def weights(d: Array, D: int, dtype: Any) -> Array:
    """Weights (c, D): 1/d_i in the first d_i columns, 0 in the others."""
    return ((np.arange(D) < d[:, None]) / np.maximum(d, 1)[:, None]).astype(dtype)


def one_for_all(ridge: Array) -> Array:
    """The numbers (c, 1) of clients, (1, 1) where they are the same: products with a single number are faster."""
    return ridge[:1] if (ridge == ridge[0]).all() else ridge


def padded(d: Array, group: int = 1) -> Array:
    """Sizes rounded up to a multiple of 4; where clients come in groups, to one of the four sizes between 2^k and
    2^(k+1): 32, 40, 48, 56, 64, 80 … Then clients of many sizes have few padded ones.
    """
    step: Any = PAD
    if group > 1:
        step = np.maximum(PAD, np.exp2(np.floor(np.log2(np.maximum(d - 1, 1))) - 2)).astype(int)
    return -(-d // step) * step


def plan(
    sizes: Array, n: int, itemsize: int, block_bytes: int = UNKNOWN, matrix: int = 0, group: int = 1
) -> Iterator[Array]:
    """The clients of each block, as positions in ``sizes``, smallest clients first; every client is in one block.

    A block has about ``block_bytes`` bytes, or one client; so have the matrices of ``matrix`` numbers that a method
    makes of each client. Where they are large clients stay in order, for hosts to add up their replies as they come.
    Where a problem computes clients in groups of ``group``, a block has a multiple of them.
    """
    D = padded(sizes, group)
    large = matrix * itemsize * FEW > block_bytes
    order = np.arange(len(D)) if large else np.argsort(D, kind="stable")
    for alike in np.split(order, np.flatnonzero(np.diff(D[order])) + 1):
        if len(alike):
            each = itemsize * max(1, int(D[alike[0]]) * n, matrix)
            step = clients_in(block_bytes, each, group)
            yield from (alike[k : k + step] for k in range(0, len(alike), step))


def clients_in(block_bytes: int, each: int, group: int = 1) -> int:
    """How many clients of ``each`` bytes a block of about ``block_bytes`` has: a multiple of ``group``."""
    return group * max(1, round(block_bytes / each / group))


def dense_block(sizes: Array, n: int, dtype: Any, kind: type[Block] = Block, group: int = 1) -> Block:
    """A block of zeros for clients of these sizes, to be filled.

    It begins at a multiple of 64 bytes, as cache lines do: vectors of features are read faster.
    """
    shape = (len(sizes), int(padded(sizes[:1], group)[0]), n)
    size = math.prod(shape) * np.dtype(dtype).itemsize
    room = np.zeros(size + LINE, np.uint8)
    begin = -room.ctypes.data % LINE
    A = room[begin : begin + size].view(dtype).reshape(shape)
    return kind(A, np.zeros(shape[:2], dtype), sizes, n)
