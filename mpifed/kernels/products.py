"""Products with the samples of a block that are arrays of numpy; other forms of samples derive from these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from mpifed.core.symmetric import pack
from mpifed.core.typing import Array


class Samples(Protocol):
    """What products read of a block; see Block."""

    b: Array
    n: int
    w: Array
    sizes: Array
    offset: Array | None
    parts: list[tuple[Any, Array]]
    source: tuple[Any, Any] | None

    @property
    def A(self) -> Any: ...
    def __len__(self) -> int: ...
    def take(self, rows: Array) -> Samples: ...
    def copied(self) -> Samples: ...
    def dense(self, i: int) -> Array: ...
    def note(self, key: str, compute: Callable[[Any], Any]) -> Any: ...


class Dense:
    """Products with A (c, D, n), an array of numpy.

    Products have nothing of clients: what is worth keeping of a block is in its notes. Shapes are those of Block.
    """

    xp: Any = np
    room: int = 1  # with how many clients a block is computed at least: a host fills smaller ones up
    memory: Dense | None = None  # of samples on a device: the products of their copy in memory

    def part(self, block: Samples, rows: slice | Array) -> tuple[Any, Any, tuple[Any, Any] | None]:
        """For a block of the clients at ``rows``: positions that index arrays, A, and its source.

        Where there is a source, a block and positions there, A is None and made when it is first used.
        """
        return rows, block.A[rows], None

    def later(self, block: Samples, rows: Any) -> Any:
        """A of the clients at positions ``rows`` of a source."""
        return block.A[rows]

    def gather(self, parts: list[tuple[Any, Array]]) -> Any:
        """A of clients from several blocks (block, positions)."""
        return np.concatenate([block.A[rows] for block, rows in parts])

    def batch(self, block: Samples, picks: Array, w: Array) -> tuple[Any, Array, Array]:
        """A, b and w of the rows ``picks`` (c, B) of each client with weights ``w``; there may be more rows."""
        rows = positions(block, picks)
        return self.picked(block, rows), block.b.take(rows), w

    def picked(self, block: Samples, rows: Array) -> Any:
        """A of rows (c, B), counted over all clients of the block."""
        return block.A.reshape(-1, block.n).take(rows, axis=0)

    def in_memory(self, block: Samples) -> Any:
        """A as ``memory`` multiplies with it."""
        return block.A

    def full(self, block: Samples) -> Any:
        """A (c, D, n) with all its zeros."""
        return block.A

    def in_full(self, block: Samples) -> Iterator[tuple[Any, Any, Any]]:
        """Positions of some clients, their block, and their A with all its zeros: as many at once as memory has."""
        yield slice(None), block, block.A

    def scaled(self, block: Samples, S: Array) -> Any:
        """A with row j times s_j, S (c, D)."""
        return block.A * S[:, :, None]

    def matrix(self, block: Samples, i: int) -> Any:
        """The rows of the i-th client without the padding, in their own form: (d_i, n)."""
        return block.A[i, : block.sizes[i]]

    def dense(self, block: Samples, i: int) -> Any:
        return block.A[i, : block.sizes[i]]

    def matvec(self, block: Samples, X: Array) -> Array:
        return np.matvec(block.A, X)

    def vecmat(self, block: Samples, R: Array) -> Array:
        return np.vecmat(R, block.A)

    def one_pass(
        self, block: Samples, X: Array, residual: Callable[[Array], Array], logistic: bool, ridge: Array | None
    ) -> tuple[Array, Array]:
        Z = self.matvec(block, X)
        if block.offset is not None:
            Z += block.offset
        G = self.vecmat(block, residual(Z))
        if ridge is not None:
            G += block.note("ridge", lambda _: one_for_all(ridge)) * X
        return Z, G

    def multiply(self, block: Samples, K: Array, V: Array) -> Array:
        return np.matvec(K, V)

    def bent(self, block: Samples, W: Array, V: Array) -> Array:
        return self.vecmat(block, W * self.matvec(block, V))

    def gram(self, block: Samples, W: Array) -> Array:
        # BᵀB with B = diag(√w) A is symmetric to the bit, which Aᵀ(diag(w) A) is not: BLAS computes one triangle alone
        # and copies it. Rows with weights below 0 are subtracted for the same reason.
        G = self.gram_of(block, np.sqrt(np.maximum(W, 0)), range(len(block)))
        if (below := np.flatnonzero((W < 0).any(axis=1))).size:
            G[below] -= self.gram_of(block, np.sqrt(np.maximum(-W[below], 0)), below)
        return G

    def packed_gram(self, block: Samples, W: Array) -> Array:
        return pack(self.gram(block, W))

    def gram_of(self, block: Samples, S: Array, rows: Sequence[int] | Array) -> Array:
        """B_iᵀB_i with B_i = diag(s_i) A_i, for the clients at positions ``rows``: (r, n, n), with S (r, D)."""
        B = (block.A if len(rows) == len(block) else block.A[rows]) * S[:, :, None]
        return np.matmul(B.mT, B)

    def small_gram(self, block: Samples) -> Array:
        A = block.A
        return np.matmul(A, A.mT) if block.b.shape[1] < block.n else np.matmul(A.mT, A)

    def matmat(self, block: Samples, W: Array) -> Array:
        if block.b.shape[1] >= W.shape[-2]:
            return np.matmul(block.A, np.swapaxes(W, -1, -2))
        # BLAS is faster where the matrix with more rows comes first: with ten samples 1.2 to 1.4 times in float32.
        return np.ascontiguousarray(np.matmul(W, np.swapaxes(block.A, -1, -2)).swapaxes(-1, -2))

    def tmatmat(self, block: Samples, R: Array) -> Array:
        return np.matmul(np.swapaxes(R, -1, -2), block.A)

    def put_tmatmat(self, block: Samples, R: Array, out: Array) -> None:
        np.matmul(np.swapaxes(R, -1, -2), block.A, out=out)

    def norms1(self, block: Samples) -> Array:
        return np.abs(block.A).sum(axis=-1)

    def squares(self, block: Samples, center: Array) -> tuple[Array, Array]:
        """‖a_j‖² and ‖a_j − center_i‖² of every sample, center (c, n): (c, D) each."""
        spans = block.A - center[:, None]
        return np.vecdot(block.A, block.A), np.vecdot(spans, spans)

    def device_bytes(self, block: Samples, D: int) -> int:
        """Bytes of these clients with D rows each on a device: of each sample label, weight and features."""
        return len(block) * D * (block.n + 2) * block.b.itemsize


def positions(block: Samples, picks: Array) -> Array:
    """The rows ``picks`` (c, B) of each client, counted over all clients of the block."""
    return picks + np.arange(0, block.b.size, block.b.shape[1])[:, None]


def one_for_all(ridge: Array) -> Array:
    """The numbers (c, 1) of clients, (1, 1) where they are the same: products with a single number are faster."""
    return ridge[:1] if (ridge == ridge[0]).all() else ridge


DENSE = Dense()
