"""Blocks of CSR samples, and the products of their nonzeros, with which AᵀWA is a sparse product for any W."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.arrays import starts_of
from mpifed.core.memory import check_memory
from mpifed.core.symmetric import entries, starts
from mpifed.core.typing import Array, Matrix
from mpifed.kernels.blocks import Block, padded

FILL = 256  # products of dense rows in the time that one of two nonzeros takes
DENSE = 64  # multiplications of dense rows in the time that one product takes to be added


class SparseBlock(Block):
    """A block with ``A`` as one block-diagonal CSR matrix (c D, c n): one diagonal block per client."""

    def matvec(self, X: Array) -> Array:
        return (self.A @ np.broadcast_to(X, (len(self), self.n)).ravel()).reshape(self.b.shape)

    def vecmat(self, R: Array) -> Array:
        return (R.ravel() @ self.A).reshape(len(self), self.n)

    def matmat(self, W: Array) -> Array:
        W = np.broadcast_to(W, (len(self), *W.shape[-2:]))
        Z = self.A @ np.swapaxes(W, 1, 2).reshape(-1, W.shape[1])
        return Z.reshape(*self.b.shape, -1)

    def tmatmat(self, R: Array) -> Array:
        G = self.A.T @ R.reshape(-1, R.shape[-1])
        return np.swapaxes(G.reshape(len(self), self.n, -1), 1, 2)

    def put_tmatmat(self, R: Array, out: Array) -> None:
        out[...] = self.tmatmat(R)

    def gram_of(self, S: Array, rows: Sequence[int] | Array) -> Array:
        G = np.empty((len(rows), self.n, self.n), self.b.dtype)
        for own, s, i in zip(G, S, rows, strict=True):
            own[...] = squared(self.matrix(int(i)), s[: self.sizes[i]])
        return G

    def packed_gram(self, W: Array) -> Array:
        known = self.products()
        filled = np.flatnonzero([P is None for P in known])
        if len(filled) == len(self):
            return super().packed_gram(W)
        G = np.empty((len(self), entries(self.n)), self.b.dtype)
        if len(filled):
            G[filled] = self.take(filled).packed_gram(W[filled])
        for own, P, w, d in zip(G, known, W, self.sizes, strict=True):
            if P is not None:
                own[...] = P @ w[:d]
        return G

    def products(self) -> list[Any]:
        """The products of the nonzeros of each client, computed once for a whole block; see ``products``."""
        if self.parts:
            return [block.products()[i] for block, rows in self.parts for i in rows]
        return self.note("products", lambda _: [products(self.matrix(i)) for i in range(len(self))])

    def matrix(self, i: int) -> sp.csr_array:
        """The rows of the i-th client without the padding, as CSR: (d_i, n)."""
        top = i * self.b.shape[1]
        return self.A[top : top + self.sizes[i], i * self.n : (i + 1) * self.n]

    def dense(self, i: int) -> Array:
        return self.matrix(i).toarray()

    def norms1(self) -> Array:
        return np.asarray(abs(self.A).sum(axis=1)).reshape(self.b.shape)

    def _batch(self, rows: Array) -> sp.csr_array:
        return self.A[rows.ravel()]

    @staticmethod
    def _gather(parts: list[tuple[Any, Array]]) -> sp.csr_array:
        D = parts[0][0].b.shape[1]
        n = parts[0][0].n
        before = 0
        found = []
        for block, rows in parts:
            A = block.A[(np.asarray(rows)[:, None] * D + np.arange(D)).ravel()]
            owner = np.repeat(before + np.arange(len(rows)) - np.asarray(rows), D)
            found.append((A.data, A.indices + np.repeat(owner * n, np.diff(A.indptr)), np.diff(A.indptr)))
            before += len(rows)
        data, columns, counts = map(np.concatenate, zip(*found, strict=True))
        return diagonal(data, columns, counts, (before * D, before * n))


def sparse_block(
    parts: list[tuple[Matrix, Array]],
    sizes: Array,
    n: int,
    dtype: Any,
    kind: type[SparseBlock] = SparseBlock,
    group: int = 1,
) -> SparseBlock:
    """The block of clients with samples (X, y)."""
    D = int(padded(sizes[:1], group)[0])
    b = np.zeros((len(sizes), D), dtype)
    counts = np.zeros((len(sizes), D), np.int64)
    for i, (X, y) in enumerate(parts):
        b[i, : sizes[i]] = y
        counts[i, : sizes[i]] = np.diff(X.indptr)
    values = np.concatenate([X.data for X, _ in parts]).astype(dtype)
    columns = np.concatenate([X.indices.astype(np.int64) + i * n for i, (X, _) in enumerate(parts)])
    return kind(diagonal(values, columns, counts, (len(sizes) * D, len(sizes) * n)), b, sizes, n)


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
