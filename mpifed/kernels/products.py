"""Products with the samples of a block in arrays of numpy, and the base of products with other samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from mpifed.core.symmetric import pack
from mpifed.core.typing import Array


class BlockSamples(Protocol):
    """The attributes of a block that products read; see Block."""

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
    def take(self, rows: Array) -> BlockSamples: ...
    def in_cpu_memory(self) -> BlockSamples: ...
    def dense(self, i: int) -> Array: ...
    def note(self, key: str, compute: Callable[[Any], Any]) -> Any: ...


class DenseProducts:
    """Products with A (c, D, n), an array of numpy.

    Products have no state: values worth caching are in the notes of a block. Shapes are those of Block.
    """

    xp: Any = np
    every_number: bool = True  # whether every number of a sample is multiplied, so that work follows from sizes
    room: int = 1  # the minimum number of clients to compute with: hosts fill smaller blocks up
    memory: DenseProducts | None = None  # for samples on a device: the products of their copy in memory

    def part(self, block: BlockSamples, rows: slice | Array) -> tuple[Any, Any, tuple[Any, Any] | None]:
        """Return, for a block of the clients at ``rows``, the positions that index arrays, A, and its source.

        If there is a source, a block and positions there, A is None and is made at its first use.
        """
        return rows, block.A[rows], None

    def take_from_source(self, block: BlockSamples, rows: Any) -> Any:
        """Return A of the clients at positions ``rows`` of a source."""
        return block.A[rows]

    def gather(self, parts: list[tuple[Any, Array]]) -> Any:
        """Return A of clients from several blocks (block, positions)."""
        return np.concatenate([block.A[rows] for block, rows in parts])

    def batch(self, block: BlockSamples, picks: Array, w: Array) -> tuple[Any, Array, Array, Array | None]:
        """Return A, b and w of the rows ``picks`` (c, B) of each client with weights ``w``, perhaps with padding.

        If ``take_rows`` makes A at its first use, it is None, and the rows follow, which count over all clients.
        """
        rows = row_positions(block, picks)
        return None, block.b.take(rows), w, rows

    def take_rows(self, block: BlockSamples, rows: Array) -> Any:
        """Return A of rows (c, B), which count over all clients of the block."""
        return block.A.reshape(-1, block.n).take(rows, axis=0)

    def features_in_memory(self, block: BlockSamples) -> Any:
        """Return A in memory, in the form of the products ``memory``."""
        return block.A

    def to_dense(self, block: BlockSamples) -> Any:
        """Return A (c, D, n) with all its zeros."""
        return block.A

    def iterate_dense(self, block: BlockSamples) -> Iterator[tuple[Any, Any, Any]]:
        """Yield positions of some clients, their block, and their A with all its zeros, as many as fit in memory."""
        yield slice(None), block, block.A

    def scale_rows(self, block: BlockSamples, S: Array) -> Any:
        """Return A with row j multiplied by s_j, with S (c, D)."""
        return block.A * S[:, :, None]

    def matrix(self, block: BlockSamples, i: int) -> Any:
        """Return the rows of the i-th client without the padding, dense or CSR as they are: (d_i, n)."""
        return block.A[i, : block.sizes[i]]

    def dense(self, block: BlockSamples, i: int) -> Any:
        return block.A[i, : block.sizes[i]]

    def matvec(self, block: BlockSamples, X: Array) -> Array:
        return np.matvec(block.A, X)

    def vecmat(self, block: BlockSamples, R: Array) -> Array:
        return np.vecmat(R, block.A)

    def one_pass(
        self, block: BlockSamples, X: Array, residual: Callable[[Array], Array], logistic: bool, ridge: Array | None
    ) -> tuple[Array, Array]:
        Z = self.matvec(block, X)
        if block.offset is not None:
            Z += block.offset
        G = self.vecmat(block, residual(Z))
        if ridge is not None:
            G += block.note("ridge", lambda _: merge_equal(ridge)) * X
        return Z, G

    def multiply(self, block: BlockSamples, K: Array, V: Array) -> Array:
        return np.matvec(K, V)

    def gram_product(self, block: BlockSamples, W: Array, V: Array) -> Array:
        return self.vecmat(block, W * self.matvec(block, V))

    def gram(self, block: BlockSamples, W: Array) -> Array:
        # BᵀB with B = diag(√w) A is symmetric to the bit, as BLAS computes one triangle and copies it; Aᵀ(diag(w) A) is
        # not. Rows with weights below 0 are subtracted for the same reason.
        G = self.gram_of(block, np.sqrt(np.maximum(W, 0)), range(len(block)))
        if (below := np.flatnonzero((W < 0).any(axis=1))).size:
            G[below] -= self.gram_of(block, np.sqrt(np.maximum(-W[below], 0)), below)
        return G

    def packed_gram(self, block: BlockSamples, W: Array) -> Array:
        return pack(self.gram(block, W))

    def gram_of(self, block: BlockSamples, S: Array, rows: Sequence[int] | Array) -> Array:
        """Compute B_iᵀB_i (r, n, n) with B_i = diag(s_i) A_i, for the clients at positions ``rows``, with S (r, D)."""
        B = (block.A if len(rows) == len(block) else block.A[rows]) * S[:, :, None]
        return np.matmul(B.mT, B)

    def small_gram(self, block: BlockSamples) -> Array:
        """Compute the smaller of A_iA_iᵀ (c, D, D) and A_iᵀA_i (c, n, n)."""
        return self.sample_gram(block) if block.b.shape[1] < block.n else np.matmul(block.A.mT, block.A)

    def sample_gram(self, block: BlockSamples) -> Array:
        """Compute A_iA_iᵀ (c, D, D)."""
        return np.matmul(block.A, block.A.mT)

    def matmat(self, block: BlockSamples, W: Array) -> Array:
        if block.b.shape[1] >= W.shape[-2]:
            return np.matmul(block.A, np.swapaxes(W, -1, -2))
        # BLAS is faster if the matrix with more rows comes first: with ten samples 1.2 to 1.4 times in float32.
        return np.ascontiguousarray(np.matmul(W, np.swapaxes(block.A, -1, -2)).swapaxes(-1, -2))

    def tmatmat(self, block: BlockSamples, R: Array) -> Array:
        return np.matmul(np.swapaxes(R, -1, -2), block.A)

    def put_tmatmat(self, block: BlockSamples, R: Array, out: Array) -> None:
        np.matmul(np.swapaxes(R, -1, -2), block.A, out=out)

    def norms1(self, block: BlockSamples) -> Array:
        return np.abs(block.A).sum(axis=-1)

    def squares(self, block: BlockSamples, center: Array) -> tuple[Array, Array]:
        """Compute ‖a_j‖² and ‖a_j − center_i‖² of every sample, with center (c, n): (c, D) each."""
        spans = block.A - center[:, None]
        return np.vecdot(block.A, block.A), np.vecdot(spans, spans)

    def device_bytes(self, block: BlockSamples, D: int) -> int:
        """Return the bytes of these clients with D rows each on a device: features, label and weight of each sample."""
        return len(block) * D * (block.n + 2) * block.b.itemsize


def row_positions(block: BlockSamples, picks: Array) -> Array:
    """Number the rows ``picks`` (c, B) of each client over all clients of the block."""
    return picks + np.arange(0, block.b.size, block.b.shape[1])[:, None]


def merge_equal(ridge: Array) -> Array:
    """Return the numbers (c, 1) of clients, or (1, 1) if all are equal, because products with one number are faster."""
    return ridge[:1] if (ridge == ridge[0]).all() else ridge


DENSE = DenseProducts()
