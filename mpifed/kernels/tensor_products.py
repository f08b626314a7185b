"""Products with samples that are tensors on a device: a GPU, or the CPU as PyTorch computes on it.

Products are batched (torch.bmm), and blocks of few clients are filled up with zeros for a product, so that no bit of a
client depends on the others in the batch.

Of CSR samples A and Aᵀ are one matrix each, with a diagonal block for each client and numbers in the order of samples.
Both are multiplied with matrices, even of one column: in PyTorch's product with a vector, on CPUs with MKL, the last
bits of a row depend on the rows around it. Indices have 32 bits.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.arrays import Namespace, import_torch, to_numpy
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.kernels.fill import SameSizeBlocks
from mpifed.kernels.products import DENSE, BlockSamples, DenseProducts
from mpifed.kernels.sparse_products import CSR, block_diagonal

MIN_CLIENTS = 8  # the least number of clients for which the bits of a batched product do not depend on it


class TensorProducts(DenseProducts):
    """Products with A (c, D, n), a tensor; so are ``b`` and ``w`` (c, D), and ``d`` (c,), real numbers.

    ``room`` is the number of clients of the blocks of a run, to which smaller ones are filled up.
    """

    memory: DenseProducts | None = DENSE

    def __init__(self, xp: Namespace, room: int = MIN_CLIENTS) -> None:
        self.xp = xp
        self.room = room

    def move_blocks(self, blocks: Sequence[Block], D: int) -> Block:
        """Move the samples of ``blocks`` in memory to one block on a device, with D rows for each client."""
        xp = self.xp
        sizes = np.concatenate([block.sizes for block in blocks])
        dtype = xp.asarray(blocks[0].b[:0]).dtype
        b, w = (xp.zeros((len(sizes), D), dtype=dtype) for _ in range(2))
        begin = 0
        for block in blocks:
            end = begin + len(block)
            b[begin:end, : block.b.shape[1]] = xp.asarray(block.b)
            w[begin:end, : block.b.shape[1]] = xp.asarray(block.w)
            begin = end
        result = Block(self.move_features(blocks, D), b, xp.asarray(sizes, dtype=xp.float64), blocks[0].n, w, self)
        result.sizes = sizes
        return result

    def move_features(self, blocks: Sequence[Block], D: int) -> Any:
        """Copy A of the samples of ``blocks`` to the device, with D rows for each client."""
        xp = self.xp
        A = xp.zeros((sum(map(len, blocks)), D, blocks[0].n), dtype=xp.asarray(blocks[0].b[:0]).dtype)
        begin = 0
        for block in blocks:
            end = begin + len(block)
            A[begin:end, : block.b.shape[1]] = xp.asarray(block.A)
            begin = end
        return A

    def features_in_memory(self, block: BlockSamples) -> Any:
        return to_numpy(block.A)

    def part(self, block: BlockSamples, rows: slice | Array) -> tuple[Any, None, tuple[Any, Any]]:
        # Positions are copied to the device once, for labels, weights and samples.
        at = rows if isinstance(rows, slice) else self.xp.asarray(rows)
        if block.source is None:
            return at, None, (block, at)
        # The source of a part of a part is the first block, so that the part between need not copy samples.
        full, positions = block.source
        return at, None, (full, self.as_positions(positions)[at])

    def as_positions(self, rows: Any) -> Any:
        """Return positions, a slice or a tensor, as a tensor."""
        return self.xp.arange(rows.start, rows.stop) if isinstance(rows, slice) else rows

    def batch(self, block: BlockSamples, picks: Array, w: Array) -> tuple[Any, Any, Any, None]:
        full: Any = block
        positions: Any = slice(0, len(block))
        if block.source is not None:
            full, positions = block.source
        count = len(block)
        rows = (self.xp.asarray(picks) + full.b.shape[1] * self.as_positions(positions)[:, None]).reshape(-1)
        A = full.A.reshape(-1, block.n).index_select(0, rows).reshape(count, -1, block.n)
        b = full.b.reshape(-1).index_select(0, rows).reshape(count, -1)
        return A, b, self.xp.asarray(w), None

    # In every product samples are the left factor and the other one has its numbers in columns. With samples on the
    # right the bits of a client would depend on its address on CPUs, because MKL takes other kernels.

    def matvec(self, block: BlockSamples, X: Any) -> Any:
        return self.multiply(block, block.A, X)

    def vecmat(self, block: BlockSamples, R: Any) -> Any:
        A, R = pad_clients(block.A, R)
        return import_torch().bmm(A.mT, R[:, :, None])[: len(block), :, 0]

    def multiply(self, block: BlockSamples, K: Any, V: Any) -> Any:
        K, V = pad_clients(K, V if V.ndim == 2 else V.expand(len(block), block.n))
        return import_torch().bmm(K, V[:, :, None])[: len(block), :, 0]

    def matmat(self, block: BlockSamples, W: Any) -> Any:
        A, W = pad_clients(block.A, W if W.ndim == 3 else W.expand(len(block), *W.shape))
        return import_torch().bmm(A, W.mT)[: len(block)]

    def tmatmat(self, block: BlockSamples, R: Any) -> Any:
        # The numbers of a sum are contiguous, as in the other products.
        A, R = pad_clients(block.A, R.mT.contiguous())
        return import_torch().bmm(A.mT, R.mT)[: len(block)].mT

    def put_tmatmat(self, block: BlockSamples, R: Any, out: Any) -> None:
        out[...] = self.tmatmat(block, R)


def pad_clients(*parts: Any) -> tuple[Any, ...]:
    """Pad arrays with zeros to FEW clients if they have fewer."""
    count = len(parts[0])
    if count >= MIN_CLIENTS:
        return parts
    # PyTorch multiplies a batch of few matrices one by one, with a kernel that adds in another order.
    return tuple([import_torch().cat([part, part.new_zeros((MIN_CLIENTS - count, *part.shape[1:]))]) for part in parts])


def group_on_device(blocks: Sequence[Block], D: int, products: TensorProducts) -> SameSizeBlocks:
    """Move the clients of blocks in memory, in order, to blocks of ``products.room`` clients on a device."""
    full = products.move_blocks(blocks, D)
    edges = [*range(0, len(full), products.room), len(full)]
    return SameSizeBlocks([full.part(slice(a, b)) for a, b in pairwise(edges)], full)


def round_rows(D: int) -> int:
    """Round the number of rows of a client up for a device, to one of four sizes between powers of two.

    It depends on the client alone, and few sizes make large blocks.
    """
    step = max(4, 1 << max(0, D.bit_length() - 3))
    return -(-D // step) * step


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

    def batch(self, block: BlockSamples, picks: Any, w: Any) -> tuple[Any, Any, Any, None]:
        rows = self.xp.asarray(picks)
        labels: Any = block.b
        return block.A.take_rows(rows), labels.gather(1, rows), self.xp.asarray(w), None

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
