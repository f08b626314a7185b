"""Blocks of samples with weights and offsets, which no block of plain samples has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.kernels.sparse_block import SparseBlock


class OfSamples(Block):
    """Samples with weights v_j > 0 and offsets o_j.

    ``w`` (c, D): v_j/d_i, and ``d`` (c,): Σ v_j over the samples of a client; ``sizes`` (c,) is how many samples it
    has. ``offset`` (c, D): o_j, which a problem adds to the scores; products with A are as without.
    """

    def __init__(
        self,
        A: Any,
        b: Array,
        sizes: Array,
        n: int,
        w: Array | None = None,
        given: tuple[Array, Array] | None = None,
    ) -> None:
        super().__init__(A, b, sizes, n, w)
        self.d, self.offset = (sizes.astype(np.float64), np.zeros_like(b)) if given is None else given

    def put(self, weights: Array, offsets: Array) -> None:
        """Set the weights v and the offsets, (c, D) with zeros for the padding."""
        self.d[:] = weights.sum(axis=1)
        self.w[:] = weights / self.d[:, None]
        self.offset[:] = offsets

    def part(self, rows: slice | Array) -> Self:
        given = self.d[rows], self.offset[rows]
        return type(self)(self.A[rows], self.b[rows], self.sizes[rows], self.n, self.w[rows], given)

    @classmethod
    def gather(cls, parts: list[tuple[Self, Array]]) -> Self:
        def all_of(name: str) -> Array:
            return np.concatenate([getattr(block, name)[rows] for block, rows in parts])

        given = all_of("d"), all_of("offset")
        found = cls(cls._gather(parts), all_of("b"), all_of("sizes"), parts[0][0].n, all_of("w"), given)
        found.parts = list(parts)
        return found

    def batch(self, picks: Array, w: Array) -> Self:
        """A mini-batch, whose samples count as d_i v_j/Σv each: the mean over the drawn ones is unbiased."""
        rows = picks + np.arange(0, self.b.size, self.b.shape[1])[:, None]
        w = w * (self.w.take(rows) * self.sizes[:, None]).astype(w.dtype)
        given = self.d, self.offset.take(rows)
        return type(self)(self._batch(rows), self.b.take(rows), self.sizes, self.n, w, given)

    @property
    def roots(self) -> Array:
        return self.note("roots", lambda block: np.sqrt(block.w * block.d[:, None]).astype(block.b.dtype))

    def rooted(self) -> Rooted:
        """The samples with rows √v_j a_j, whose Gram matrices are Σ v_j a_j a_jᵀ, for products and what is kept."""
        return Rooted(self)

    def scaled(self) -> Block:
        """The same as a block of its own."""
        if isinstance(self, SparseBlock):
            A: Any = sp.csr_array(sp.diags_array(self.roots.ravel()) @ self.A)
            made: Block = SparseBlock(A, self.b, self.sizes, self.n, self.w)
        else:
            made = Block(self.A * self.roots[:, :, None], self.b, self.sizes, self.n, self.w)
        made.d = self.d
        return made


class SampleBlock(OfSamples):
    """Dense samples."""


class SparseSampleBlock(OfSamples, SparseBlock):
    """CSR samples."""


class Rooted(Block):
    """The rows √v_j a_j of the samples of ``whole``, which are not copied but where something is computed once."""

    def __init__(self, whole: OfSamples) -> None:
        super().__init__(whole.A, whole.b, whole.sizes, whole.n, whole.w)
        self.d = whole.d
        self.whole = whole
        self.roots = whole.roots

    def once(self, key: str, compute: Callable[[Block], Array]) -> Array:
        def of(block: Block) -> Array:
            assert isinstance(block, OfSamples)
            return compute(block.scaled())

        return self.whole.once(f"rooted {key}", of)

    def matvec(self, X: Array) -> Array:
        return self.roots * self.whole.matvec(X)

    def vecmat(self, R: Array) -> Array:
        return self.whole.vecmat(self.roots * R)
