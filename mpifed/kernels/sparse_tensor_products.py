"""Products with CSR samples on a device, by PyTorch's sparse products.

A and Aᵀ are one matrix each, with a diagonal block for each client and numbers in the order of samples. Both are
multiplied with matrices, even of one column: in PyTorch's product with a vector, on CPUs with MKL, the last bits of a
row depend on the rows around it. Indices have 32 bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.arrays import Namespace, import_torch, to_numpy
from mpifed.kernels.blocks import Block
from mpifed.kernels.products import BlockSamples, DenseProducts
from mpifed.kernels.sparse_products import CSR, block_diagonal
from mpifed.kernels.tensor_products import TensorProducts


class CsrRows(NamedTuple):
    """The rows of c clients: row j of client i has the ``counts[i, j]`` nonzeros from ``first[i, j]`` on.

    ``values`` and ``columns`` (nonzeros,) may hold those of other clients too; columns are 0 … n − 1 for each client.
    """

    values: Any
    columns: Any
    first: Any  # (c, D)
    counts: Any

    @property
    def device(self) -> Any:
        return self.values.device

    def take_clients(self, rows: Any) -> CsrRows:
        """Return the rows of the clients at positions ``rows``, without copying nonzeros."""
        return self._replace(first=self.first[rows], counts=self.counts[rows])

    def take_rows(self, picks: Any) -> CsrRows:
        """Return the rows ``picks`` (c, B) of each client."""
        return self._replace(first=self.first.gather(1, picks), counts=self.counts.gather(1, picks))

    def copy_nonzeros(self) -> tuple[Any, Any, Any]:
        """Return the nonzeros of these rows only, row by row: values, columns, and the number of each one's row."""
        counts = self.counts.reshape(-1)
        begin = counts.cumsum(0) - counts
        rows = import_torch().arange(len(counts), device=self.device).repeat_interleave(counts)
        first = self.first.reshape(-1)
        if len(first) and bool((first == first[0] + begin).all()):  # neighbours: nothing is copied
            span = slice(int(first[0]), int(first[0]) + len(rows))
            return self.values[span], self.columns[span], rows
        positions = import_torch().arange(len(rows), device=self.device) + (first - begin)[rows]
        return self.values[positions], self.columns[positions], rows


class SparseTensorProducts(TensorProducts):
    """Products with A as CsrRows on a device."""

    memory: DenseProducts | None = CSR

    def move_features(self, blocks: Sequence[Block], D: int) -> CsrRows:
        xp = self.xp
        counts = np.zeros((sum(map(len, blocks)), D), np.int64)
        total = sum(block.A.nnz for block in blocks)
        values: Any = xp.zeros((total,), dtype=xp.asarray(blocks[0].b[:0]).dtype)
        columns: Any = xp.zeros((total,), dtype=xp.int32)
        client = 0
        begin = 0
        for block in blocks:
            lengths = np.diff(block.A.indptr).reshape(block.b.shape)
            counts[client : client + len(block), : lengths.shape[1]] = lengths
            below = np.repeat(np.arange(len(block)) * block.n, lengths.sum(axis=1))
            end = begin + block.A.nnz
            values[begin:end] = xp.asarray(block.A.data)
            columns[begin:end] = xp.asarray(block.A.indices - below)
            client += len(block)
            begin = end
        first = (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)
        return CsrRows(values, columns, *map(xp.asarray, (first, counts)))

    def features_in_memory(self, block: BlockSamples) -> sp.csr_array:
        values, columns, rows = map(to_numpy, block.A.copy_nonzeros())
        D = block.b.shape[1]
        shape = (len(block) * D, len(block) * block.n)
        return block_diagonal(values, columns + rows // D * block.n, to_numpy(block.A.counts), shape)

    def take_from_source(self, block: BlockSamples, rows: Any) -> Any:
        return block.A.take_clients(rows)

    def batch(self, block: BlockSamples, picks: Any, w: Any) -> tuple[Any, Any, Any]:
        rows = self.xp.asarray(picks)
        labels: Any = block.b
        return block.A.take_rows(rows), labels.gather(1, rows), self.xp.asarray(w)

    def matvec(self, block: BlockSamples, X: Any) -> Any:
        X = X if X.ndim == 2 else X.expand(len(block), block.n)
        return (block.note("A", matrix) @ X.reshape(-1, 1)).reshape(block.b.shape)

    def vecmat(self, block: BlockSamples, R: Any) -> Any:
        return (block.note("transposed", transposed_matrix) @ R.reshape(-1, 1)).reshape(len(block), block.n)

    def matmat(self, block: BlockSamples, W: Any) -> Any:
        W = W.expand(len(block), *W.shape[-2:])
        return (block.note("A", matrix) @ W.mT.reshape(-1, W.shape[1])).reshape(*block.b.shape, -1)

    def tmatmat(self, block: BlockSamples, R: Any) -> Any:
        G = block.note("transposed", transposed_matrix) @ R.reshape(-1, R.shape[-1])
        return G.reshape(len(block), block.n, -1).mT

    def dense(self, block: BlockSamples, i: int) -> Any:
        return self.xp.asarray(block.in_cpu_memory().dense(i))


def choose_tensor_products(sparse: bool, xp: Namespace, room: int) -> TensorProducts:
    """Choose the products of samples on the device of ``xp``, CSR or dense, in blocks of ``room`` clients."""
    return SparseTensorProducts(xp, room) if sparse else TensorProducts(xp, room)


def matrix(block: Block) -> Any:
    """Make one CSR matrix of the rows of all clients: (cD, cn)."""
    values, columns, rows = block.A.copy_nonzeros()
    D = block.b.shape[1]
    return make_csr(values, rows // D * block.n + columns, block.A.counts.reshape(-1), len(block) * block.n)


def transposed_matrix(block: Block) -> Any:
    """Make the transposed CSR matrix of the rows of all clients: (cn, cD)."""
    values, columns, rows = block.A.copy_nonzeros()
    D = block.b.shape[1]
    key = rows // D * block.n + columns
    order = key.argsort(stable=True)
    counts = key.bincount(minlength=len(block) * block.n)
    return make_csr(values[order], rows[order], counts, len(block) * D)


def make_csr(values: Any, columns: Any, counts: Any, width: int) -> Any:
    """Make a CSR matrix with ``counts`` nonzeros in its rows."""
    torch = import_torch()
    index = torch.int32 if max(width, len(values)) < 2**31 else torch.int64
    ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        size = (len(counts), width)
        return torch.sparse_csr_tensor(ends.to(index), columns.to(index), values, size, check_invariants=False)
