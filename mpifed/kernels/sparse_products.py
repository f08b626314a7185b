"""Products with CSR samples, and the products of their nonzeros, with which AᵀWA is a sparse product for any W."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.arrays import starts_of
from mpifed.core.memory import check_memory
from mpifed.core.symmetric import entries, starts
from mpifed.core.typing import Array, Matrix
from mpifed.kernels.blocks import Block
from mpifed.kernels.plan import padded
from mpifed.kernels.products import Dense, Samples

FILL = 256  # products of dense rows in the time that one of two nonzeros takes
DENSE = 64  # multiplications of dense rows in the time that one product takes to be added


class Sparse(Dense):
    """Products with A, one block-diagonal CSR matrix (c D, c n): one diagonal block per client.

    One product of scipy then serves all clients: with a matrix for each, calls would cost more than numbers.
    """

    def part(self, block: Samples, rows: slice | Array) -> tuple[Any, Any, None]:
        return rows, self.gather([(block, np.arange(len(block))[rows])]), None

    def gather(self, parts: list[tuple[Any, Array]]) -> sp.csr_array:
        D = parts[0][0].b.shape[1]
        n = parts[0][0].n
        before = 0
        found = []
        for block, rows in parts:
            A = block.A[(np.asarray(rows)[:, None] * D + np.arange(D)).ravel()]
            # Columns say whose diagonal block a number is in, so they move with the position of its client.
            owner = np.repeat(before + np.arange(len(rows)) - np.asarray(rows), D)
            found.append((A.data, A.indices + np.repeat(owner * n, np.diff(A.indptr)), np.diff(A.indptr)))
            before += len(rows)
        data, columns, counts = map(np.concatenate, zip(*found, strict=True))
        return diagonal(data, columns, counts, (before * D, before * n))

    def picked(self, block: Samples, rows: Array) -> sp.csr_array:
        return block.A[rows.ravel()]

    def full(self, block: Samples) -> Array:
        A = np.zeros((*block.b.shape, block.n), block.b.dtype)
        for i, own in enumerate(A):
            rows = self.dense(block, i)
            own[: len(rows)] = rows
        return A

    def in_full(self, block: Samples) -> Iterator[tuple[Any, Any, Any]]:
        # With their zeros the samples of a whole block may not fit into memory, those of a client do.
        for i in range(len(block)):
            own = block.take(np.array([i]))
            yield [i], own, self.full(own)

    def scaled(self, block: Samples, S: Array) -> sp.csr_array:
        return sp.csr_array(sp.diags_array(S.ravel()) @ block.A)

    def matrix(self, block: Samples, i: int) -> sp.csr_array:
        D = block.b.shape[1]
        top = i * D
        # a mini-batch may have fewer rows than its client has samples
        return block.A[top : top + min(D, block.sizes[i]), i * block.n : (i + 1) * block.n]

    def dense(self, block: Samples, i: int) -> Array:
        return self.matrix(block, i).toarray()

    def matvec(self, block: Samples, X: Array) -> Array:
        return (block.A @ np.broadcast_to(X, (len(block), block.n)).ravel()).reshape(block.b.shape)

    def vecmat(self, block: Samples, R: Array) -> Array:
        return (R.ravel() @ block.A).reshape(len(block), block.n)

    def matmat(self, block: Samples, W: Array) -> Array:
        W = np.broadcast_to(W, (len(block), *W.shape[-2:]))
        Z = block.A @ np.swapaxes(W, 1, 2).reshape(-1, W.shape[1])
        return Z.reshape(*block.b.shape, -1)

    def tmatmat(self, block: Samples, R: Array) -> Array:
        G = block.A.T @ R.reshape(-1, R.shape[-1])
        return np.swapaxes(G.reshape(len(block), block.n, -1), 1, 2)

    def put_tmatmat(self, block: Samples, R: Array, out: Array) -> None:
        out[...] = self.tmatmat(block, R)

    def gram_of(self, block: Samples, S: Array, rows: Sequence[int] | Array) -> Array:
        G = np.empty((len(rows), block.n, block.n), block.b.dtype)
        for own, s, i in zip(G, S, rows, strict=True):
            own[...] = squared(self.matrix(block, int(i)), s[: block.sizes[i]])
        return G

    def packed_gram(self, block: Samples, W: Array) -> Array:
        known = self.pair_products(block)
        filled = np.flatnonzero([P is None for P in known])
        if len(filled) == len(block):
            return super().packed_gram(block, W)
        G = np.empty((len(block), entries(block.n)), block.b.dtype)
        if len(filled):
            G[filled] = self.packed_gram(block.take(filled), W[filled])
        for own, P, w, d in zip(G, known, W, block.sizes, strict=True):
            if P is not None:
                own[...] = P @ w[:d]
        return G

    def pair_products(self, block: Samples) -> list[Any]:
        """The products of the nonzeros of each client, computed once for a whole block; see ``products``."""
        if block.parts:
            return [self.pair_products(whole)[i] for whole, rows in block.parts for i in rows]
        return block.note("products", lambda _: [products(self.matrix(block, i)) for i in range(len(block))])

    def small_gram(self, block: Samples) -> Array:
        D, n = block.b.shape[1], block.n
        order = min(D, n)
        result = np.zeros((len(block), order, order), block.b.dtype)
        for i in range(len(block)):
            A = self.matrix(block, i)
            G = (A @ A.T if n > D else A.T @ A).toarray()
            result[i, : len(G), : len(G)] = G
        return result

    def norms1(self, block: Samples) -> Array:
        return np.asarray(abs(block.A).sum(axis=1)).reshape(block.b.shape)

    def squares(self, block: Samples, center: Array) -> tuple[Array, Array]:
        # ‖a‖² − 2⟨a, center⟩ + ‖center‖²: a − center has no zeros, and would fill memory. In float32 no digit of the
        # distance would be left where all samples are far from 0 and near one another.
        A = block.A.astype(np.float64)
        center = center.astype(np.float64)
        own = np.asarray((A * A).sum(axis=1)).reshape(block.b.shape)
        spans = own - 2 * (A @ center.ravel()).reshape(block.b.shape) + np.vecdot(center, center)[:, None]
        return own.astype(block.b.dtype), np.maximum(spans, 0).astype(block.b.dtype)

    def device_bytes(self, block: Samples, D: int) -> int:
        """Of each nonzero its value and column, for A and for the two matrices made of it; and where rows begin."""
        size = block.b.itemsize
        return 3 * int(block.A.nnz) * (size + 4) + len(block) * D * (2 * size + 24)


CSR = Sparse()


def sparse_block(
    parts: list[tuple[Matrix, Array]], sizes: Array, n: int, dtype: Any, products: Dense = CSR, group: int = 1
) -> Block:
    """The block of clients with samples (X, y)."""
    D = int(padded(sizes[:1], group)[0])
    b = np.zeros((len(sizes), D), dtype)
    counts = np.zeros((len(sizes), D), np.int64)
    for i, (X, y) in enumerate(parts):
        b[i, : sizes[i]] = y
        counts[i, : sizes[i]] = np.diff(X.indptr)
    values = np.concatenate([X.data for X, _ in parts]).astype(dtype)
    columns = np.concatenate([X.indices.astype(np.int64) + i * n for i, (X, _) in enumerate(parts)])
    A = diagonal(values, columns, counts, (len(sizes) * D, len(sizes) * n))
    return Block(A, b, sizes, n, products=products)


def diagonal(values: Array, columns: Array, counts: Array, shape: tuple[int, int]) -> sp.csr_array:
    """A CSR matrix with so many numbers in each row; its indices have 32 bits where these are enough."""
    kind = np.int32 if max(*shape, len(values)) < 2**31 else np.int64
    ends = starts_of(counts.ravel())
    return sp.csr_array((values, columns.astype(kind, copy=False), ends.astype(kind, copy=False)), shape=shape)


def squared(A: sp.csr_array, s: Array) -> Array:
    """BᵀB (n, n) with B = diag(s) A, whose rows are filled in where the processor is sooner done with the zeros."""
    A = canonical(A)
    counts = np.diff(A.indptr)
    if len(s) * A.shape[1] ** 2 < FILL * np.vdot(counts, counts):
        B = A.toarray() * s[:, None]
        return B.T @ B
    B = sp.csr_array((A.data * np.repeat(s, counts), A.indices, A.indptr), shape=A.shape)
    return (B.T @ B).toarray()


def canonical(A: sp.csr_array) -> sp.csr_array:
    """The matrix with rising columns in every row, each of them once; a copy where it is another."""
    if not A.has_canonical_format:
        A = A.copy()
        A.sum_duplicates()
    return A


def products(A: sp.csr_array) -> sp.csc_array | None:
    """P (n(n+1)/2, d) with P w = the upper triangle of Aᵀ diag(w) A, row by row, for A (d, n).

    Column j has the products of all pairs of nonzeros of row j. None where so many are not worth it: a product of dense
    rows is sooner done.
    """
    A = canonical(A)
    d, n = A.shape
    counts = np.diff(A.indptr)
    total = int(np.vdot(counts, counts + 1)) // 2
    if DENSE * total >= d * n * n:
        return None
    kind = np.dtype(np.int32 if max(entries(n), total) < 2**31 else np.int64)
    check_memory(total * (A.dtype.itemsize + kind.itemsize), f"the products of {A.nnz:,} numbers of a client")
    left, right = pairs(A.indptr, counts)
    rows = np.array(starts(n)[:-1], kind) - np.arange(n, dtype=kind)  # of the triangle: where column 0 would be
    places = rows[A.indices[left]] + A.indices[right].astype(kind)
    ends = starts_of(counts * (counts + 1) // 2).astype(kind)
    return sp.csc_array((A.data[left] * A.data[right], places, ends), shape=(entries(n), d))


def pairs(indptr: Array, counts: Array) -> tuple[Array, Array]:
    """The positions of the first and the second nonzero of all pairs in a row, one row after the other."""
    first = np.arange(indptr[-1])
    partners = np.repeat(indptr[1:], counts) - first  # from itself to the end of the row
    left = np.repeat(first, partners)
    begin = np.cumsum(partners) - partners
    return left, np.arange(len(left)) - np.repeat(begin - first, partners)
