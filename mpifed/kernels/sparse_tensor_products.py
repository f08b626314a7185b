"""Products with CSR samples on a device, with PyTorch's sparse products.

The products with A and with Aᵀ have a matrix each, one diagonal block for each client, whose numbers stand in the order
of samples. Both are multiplied with matrices, also where these have one column: in PyTorch's product with a vector, on
CPUs with MKL, the last bits of a row depend on the rows around it. Indices have 32 bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.arrays import Namespace, pytorch, to_numpy
from mpifed.kernels.blocks import Block
from mpifed.kernels.products import Dense, Samples
from mpifed.kernels.sparse_products import CSR, diagonal
from mpifed.kernels.tensor_products import Tensors


class CsrRows(NamedTuple):
    """Rows of c clients: row j of client i has the ``counts[i, j]`` nonzeros from ``first[i, j]`` on.

    ``values`` and ``columns`` (nonzeros,) may have those of other clients too; columns are 0 … n − 1 for each client.
    """

    values: Any
    columns: Any
    first: Any  # (c, D)
    counts: Any

    @property
    def device(self) -> Any:
        return self.values.device

    def of(self, rows: Any) -> CsrRows:
        """Those of the clients at positions ``rows``; no nonzero is copied."""
        return self._replace(first=self.first[rows], counts=self.counts[rows])

    def picked(self, picks: Any) -> CsrRows:
        """The rows ``picks`` (c, B) of each client."""
        return self._replace(first=self.first.gather(1, picks), counts=self.counts.gather(1, picks))

    def alone(self) -> tuple[Any, Any, Any]:
        """The nonzeros of these rows alone, one row after the other: values, columns, and numbers of rows (cD,)."""
        counts = self.counts.reshape(-1)
        begin = counts.cumsum(0) - counts
        rows = pytorch().arange(len(counts), device=self.device).repeat_interleave(counts)
        first = self.first.reshape(-1)
        if len(first) and bool((first == first[0] + begin).all()):  # they are neighbours, and nothing is copied
            own = slice(int(first[0]), int(first[0]) + len(rows))
            return self.values[own], self.columns[own], rows
        places = pytorch().arange(len(rows), device=self.device) + (first - begin)[rows]
        return self.values[places], self.columns[places], rows


class SparseTensors(Tensors):
    """Products with A, rows of nonzeros."""

    memory: Dense | None = CSR

    def of_memory(self, blocks: Sequence[Block], D: int) -> CsrRows:
        xp = self.xp
        counts = np.zeros((sum(map(len, blocks)), D), np.int64)
        total = sum(block.A.nnz for block in blocks)
        values: Any = xp.zeros((total,), dtype=xp.asarray(blocks[0].b[:0]).dtype)
        columns: Any = xp.zeros((total,), dtype=xp.int32)
        client = 0
        begin = 0
        for block in blocks:
            own = np.diff(block.A.indptr).reshape(block.b.shape)
            counts[client : client + len(block), : own.shape[1]] = own
            below = np.repeat(np.arange(len(block)) * block.n, own.sum(axis=1))
            end = begin + block.A.nnz
            values[begin:end] = xp.asarray(block.A.data)
            columns[begin:end] = xp.asarray(block.A.indices - below)
            client += len(block)
            begin = end
        first = (np.cumsum(counts) - counts.ravel()).reshape(counts.shape)
        return CsrRows(values, columns, *map(xp.asarray, (first, counts)))

    def in_memory(self, block: Samples) -> sp.csr_array:
        values, columns, rows = map(to_numpy, block.A.alone())
        D = block.b.shape[1]
        shape = (len(block) * D, len(block) * block.n)
        return diagonal(values, columns + rows // D * block.n, to_numpy(block.A.counts), shape)

    def later(self, block: Samples, rows: Any) -> Any:
        return block.A.of(rows)

    def batch(self, block: Samples, picks: Any, w: Any) -> tuple[Any, Any, Any]:
        rows = self.xp.asarray(picks)
        labels: Any = block.b
        return block.A.picked(rows), labels.gather(1, rows), self.xp.asarray(w)

    def matvec(self, block: Samples, X: Any) -> Any:
        X = X if X.ndim == 2 else X.expand(len(block), block.n)
        return (block.note("A", matrix) @ X.reshape(-1, 1)).reshape(block.b.shape)

    def vecmat(self, block: Samples, R: Any) -> Any:
        return (block.note("transposed", transposed) @ R.reshape(-1, 1)).reshape(len(block), block.n)

    def matmat(self, block: Samples, W: Any) -> Any:
        W = W.expand(len(block), *W.shape[-2:])
        return (block.note("A", matrix) @ W.mT.reshape(-1, W.shape[1])).reshape(*block.b.shape, -1)

    def tmatmat(self, block: Samples, R: Any) -> Any:
        G = block.note("transposed", transposed) @ R.reshape(-1, R.shape[-1])
        return G.reshape(len(block), block.n, -1).mT

    def dense(self, block: Samples, i: int) -> Any:
        return self.xp.asarray(block.copied().dense(i))


def tensors_of(sparse: bool, xp: Namespace, room: int) -> Tensors:
    """The products of samples on the device of ``xp``, CSR or not, in blocks of ``room`` clients."""
    return SparseTensors(xp, room) if sparse else Tensors(xp, room)


def matrix(block: Block) -> Any:
    """The rows of all clients as one CSR matrix: (cD, cn)."""
    values, columns, rows = block.A.alone()
    D = block.b.shape[1]
    return csr(values, rows // D * block.n + columns, block.A.counts.reshape(-1), len(block) * block.n)


def transposed(block: Block) -> Any:
    """The same transposed: (cn, cD)."""
    values, columns, rows = block.A.alone()
    D = block.b.shape[1]
    key = rows // D * block.n + columns
    order = key.argsort(stable=True)
    counts = key.bincount(minlength=len(block) * block.n)
    return csr(values[order], rows[order], counts, len(block) * D)


def csr(values: Any, columns: Any, counts: Any, width: int) -> Any:
    """A CSR matrix with so many nonzeros in each row."""
    torch = pytorch()
    kind = torch.int32 if max(width, len(values)) < 2**31 else torch.int64
    ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sparse CSR tensor support is in beta", UserWarning)
        size = (len(counts), width)
        return torch.sparse_csr_tensor(ends.to(kind), columns.to(kind), values, size, check_invariants=False)
