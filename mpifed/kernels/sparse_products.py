"""Products with CSR samples, and the products of their nonzeros, which make AᵀWA a sparse product for any W."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.arrays import row_offsets
from mpifed.core.memory import check_memory
from mpifed.core.symmetric import packed_size, row_starts
from mpifed.core.typing import Array, SampleMatrix
from mpifed.kernels.blocks import Block
from mpifed.kernels.plan import pad_sizes
from mpifed.kernels.products import BlockSamples, DenseProducts

FILL = 256  # products of dense rows in the time of one product of nonzeros
DENSE = 64  # multiplications of dense rows in the time in which one product is added


class SparseProducts(DenseProducts):
    """Products with A, one block-diagonal CSR matrix (c D, c n): one diagonal block per client.

    So one product of scipy serves all clients: with a matrix each, calls would cost more than arithmetic.
    """

    every_number = False

    def part(self, block: BlockSamples, rows: slice | Array) -> tuple[Any, Any, None]:
        return rows, self.gather([(block, np.arange(len(block))[rows])]), None

    def gather(self, parts: list[tuple[Any, Array]]) -> sp.csr_array:
        D = parts[0][0].b.shape[1]
        n = parts[0][0].n
        before = 0
        pieces = []
        for block, rows in parts:
            A = block.A[(np.asarray(rows)[:, None] * D + np.arange(D)).ravel()]
            # Columns tell the diagonal block of a number, so they move with the position of its client.
            owner = np.repeat(before + np.arange(len(rows)) - np.asarray(rows), D)
            pieces.append((A.data, A.indices + np.repeat(owner * n, np.diff(A.indptr)), np.diff(A.indptr)))
            before += len(rows)
        data, columns, counts = map(np.concatenate, zip(*pieces, strict=True))
        return block_diagonal(data, columns, counts, (before * D, before * n))

    def take_rows(self, block: BlockSamples, rows: Array) -> sp.csr_array:
        return block.A[rows.ravel()]

    def to_dense(self, block: BlockSamples) -> Array:
        A = np.zeros((*block.b.shape, block.n), block.b.dtype)
        for i, client in enumerate(A):
            rows = self.dense(block, i)
            client[: len(rows)] = rows
        return A

    def iterate_dense(self, block: BlockSamples) -> Iterator[tuple[Any, Any, Any]]:
        # The dense samples of a full block may not fit into memory; those of one client do.
        for i in range(len(block)):
            client = block.take(np.array([i]))
            yield [i], client, self.to_dense(client)

    def scale_rows(self, block: BlockSamples, S: Array) -> sp.csr_array:
        return sp.csr_array(sp.diags_array(S.ravel()) @ block.A)

    def matrix(self, block: BlockSamples, i: int) -> sp.csr_array:
        D = block.b.shape[1]
        top = i * D
        # a mini-batch may have fewer rows than its client has samples
        return block.A[top : top + min(D, block.sizes[i]), i * block.n : (i + 1) * block.n]

    def dense(self, block: BlockSamples, i: int) -> Array:
        return self.matrix(block, i).toarray()

    def matvec(self, block: BlockSamples, X: Array) -> Array:
        return (block.A @ np.broadcast_to(X, (len(block), block.n)).ravel()).reshape(block.b.shape)

    def vecmat(self, block: BlockSamples, R: Array) -> Array:
        return (R.ravel() @ block.A).reshape(len(block), block.n)

    def matmat(self, block: BlockSamples, W: Array) -> Array:
        W = np.broadcast_to(W, (len(block), *W.shape[-2:]))
        Z = block.A @ np.swapaxes(W, 1, 2).reshape(-1, W.shape[1])
        return Z.reshape(*block.b.shape, -1)

    def tmatmat(self, block: BlockSamples, R: Array) -> Array:
        G = block.A.T @ R.reshape(-1, R.shape[-1])
        return np.swapaxes(G.reshape(len(block), block.n, -1), 1, 2)

    def put_tmatmat(self, block: BlockSamples, R: Array, out: Array) -> None:
        out[...] = self.tmatmat(block, R)

    def gram_of(self, block: BlockSamples, S: Array, rows: Sequence[int] | Array) -> Array:
        G = np.empty((len(rows), block.n, block.n), block.b.dtype)
        for G_i, s, i in zip(G, S, rows, strict=True):
            G_i[...] = scaled_gram(self.matrix(block, int(i)), s[: block.sizes[i]])
        return G

    def packed_gram(self, block: BlockSamples, W: Array) -> Array:
        matrices = self.pair_products(block)
        dense = np.flatnonzero([P is None for P in matrices])
        if len(dense) == len(block):
            return super().packed_gram(block, W)
        G = np.empty((len(block), packed_size(block.n)), block.b.dtype)
        if len(dense):
            G[dense] = self.packed_gram(block.take(dense), W[dense])
        for G_i, P, w, d in zip(G, matrices, W, block.sizes, strict=True):
            if P is not None:
                G_i[...] = P @ w[:d]
        return G

    def pair_products(self, block: BlockSamples) -> list[Any]:
        """Return the matrices of ``products`` of each client, computed once for a full block."""
        if block.parts:
            return [self.pair_products(part)[i] for part, rows in block.parts for i in rows]
        return block.note("products", lambda _: [pair_matrix(self.matrix(block, i)) for i in range(len(block))])

    def small_gram(self, block: BlockSamples) -> Array:
        if block.b.shape[1] < block.n:
            return self.sample_gram(block)
        return np.stack([(A.T @ A).toarray() for A in (self.matrix(block, i) for i in range(len(block)))])

    def sample_gram(self, block: BlockSamples) -> Array:
        D = block.b.shape[1]
        K = np.zeros((len(block), D, D), block.b.dtype)
        for i in range(len(block)):
            A = self.matrix(block, i)
            K[i, : A.shape[0], : A.shape[0]] = (A @ A.T).toarray()
        return K

    def norms1(self, block: BlockSamples) -> Array:
        return np.asarray(abs(block.A).sum(axis=1)).reshape(block.b.shape)

    def squares(self, block: BlockSamples, center: Array) -> tuple[Array, Array]:
        # ‖a‖² − 2⟨a, center⟩ + ‖center‖², because a − center has no zeros and would fill memory. In float64, because in
        # float32 no digit of the distance would be left if all samples are far from 0 and near one another.
        A = block.A.astype(np.float64)
        center = center.astype(np.float64)
        norms = np.asarray((A * A).sum(axis=1)).reshape(block.b.shape)
        spans = norms - 2 * (A @ center.ravel()).reshape(block.b.shape) + np.vecdot(center, center)[:, None]
        return norms.astype(block.b.dtype), np.maximum(spans, 0).astype(block.b.dtype)

    def device_bytes(self, block: BlockSamples, D: int) -> int:
        """Return the bytes on a device: for A and two matrices the nonzeros with their columns, and the rows."""
        size = block.b.itemsize
        return 3 * int(block.A.nnz) * (size + 4) + len(block) * D * (2 * size + 24)


CSR = SparseProducts()


def make_sparse_block(
    parts: list[tuple[SampleMatrix, Array]],
    sizes: Array,
    n: int,
    dtype: Any,
    products: DenseProducts = CSR,
    group: int = 1,
) -> Block:
    """Make the block of clients with samples (X, y)."""
    D = int(pad_sizes(sizes[:1], group)[0])
    b = np.zeros((len(sizes), D), dtype)
    counts = np.zeros((len(sizes), D), np.int64)
    for i, (X, y) in enumerate(parts):
        b[i, : sizes[i]] = y
        counts[i, : sizes[i]] = np.diff(X.indptr)
    values = np.concatenate([X.data for X, _ in parts]).astype(dtype)
    columns = np.concatenate([X.indices.astype(np.int64) + i * n for i, (X, _) in enumerate(parts)])
    A = block_diagonal(values, columns, counts, (len(sizes) * D, len(sizes) * n))
    return Block(A, b, sizes, n, products=products)


def block_diagonal(values: Array, columns: Array, counts: Array, shape: tuple[int, int]) -> sp.csr_array:
    """Make a CSR matrix with ``counts`` numbers in its rows, with 32-bit indices if these are enough."""
    index = np.int32 if max(*shape, len(values)) < 2**31 else np.int64
    ends = row_offsets(counts.ravel())
    return sp.csr_array((values, columns.astype(index, copy=False), ends.astype(index, copy=False)), shape=shape)


def scaled_gram(A: sp.csr_array, s: Array) -> Array:
    """Compute BᵀB (n, n) with B = diag(s) A, with dense rows if that is faster."""
    A = to_canonical(A)
    counts = np.diff(A.indptr)
    if len(s) * A.shape[1] ** 2 < FILL * np.vdot(counts, counts):
        B = A.toarray() * s[:, None]
        return B.T @ B
    B = sp.csr_array((A.data * np.repeat(s, counts), A.indices, A.indptr), shape=A.shape)
    return (B.T @ B).toarray()


def to_canonical(A: sp.csr_array) -> sp.csr_array:
    """Return the matrix with rising columns in every row, each once: itself, or a copy."""
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    return A


def pair_matrix(A: sp.csr_array) -> sp.csc_array | None:
    """Make P (n(n+1)/2, d) with P w = the upper triangle of Aᵀ diag(w) A, row by row, for A (d, n).

    Column j has the products of all pairs of nonzeros of row j. None if these are so many that a product of dense rows
    is faster.
    """
    A = to_canonical(A)
    d, n = A.shape
    counts = np.diff(A.indptr)
    total = int(np.vdot(counts, counts + 1)) // 2
    if DENSE * total >= d * n * n:
        return None
    index = np.dtype(np.int32 if max(packed_size(n), total) < 2**31 else np.int64)
    check_memory(total * (A.dtype.itemsize + index.itemsize), f"the products of {A.nnz:,} numbers of a client")
    left, right = pair_positions(A.indptr, counts)
    rows = np.array(row_starts(n)[:-1], index) - np.arange(n, dtype=index)  # of the triangle: the position of column 0
    positions = rows[A.indices[left]] + A.indices[right].astype(index)
    ends = row_offsets(counts * (counts + 1) // 2).astype(index)
    return sp.csc_array((A.data[left] * A.data[right], positions, ends), shape=(packed_size(n), d))


def pair_positions(indptr: Array, counts: Array) -> tuple[Array, Array]:
    """Return the positions of the first and the second nonzero of all pairs within a row, row by row."""
    first = np.arange(indptr[-1])
    partners = np.repeat(indptr[1:], counts) - first  # from itself to the end of the row
    left = np.repeat(first, partners)
    begin = np.cumsum(partners) - partners
    return left, np.arange(len(left)) - np.repeat(begin - first, partners)
