"""Blocks of samples that compiled kernels read."""

from collections.abc import Callable
from typing import Self

import numpy as np

from mpifed.core.symmetric import unpack
from mpifed.core.typing import Array
from mpifed.kernels.blocks import IDENTITY, LOGISTIC, NONE, PAD, Block
from mpifed.kernels.compiled.compiling import kernel
from mpifed.kernels.sparse_block import SparseBlock, canonical

SMALL = 1 << 18  # bytes of a client's samples up to which a BLAS is slower; fixed, because the last bits depend on it


class CompiledBlock(Block):
    """A block over whose samples a linear model passes once; points have the type of the features."""

    def batch(self, picks: Array, w: Array) -> Self:
        """The same, with rows of weight 0 up to a multiple of 4."""
        if short := -picks.shape[1] % PAD:
            picks, w = (np.concatenate([part, np.zeros((len(part), short), part.dtype)], 1) for part in (picks, w))
        return super().batch(picks, w)

    def matvec(self, X: Array) -> Array:
        return self._pass(X, self.b, self.w, None, NONE)[0]

    def one_pass(
        self, X: Array, residual: Callable[[Array], Array], logistic: bool, ridge: Array | None
    ) -> tuple[Array, Array]:
        return self._pass(X, self.b, self.w, ridge, LOGISTIC if logistic else IDENTITY)

    def bent(self, W: Array, V: Array) -> Array:
        no_labels = self.note("no labels", lambda block: np.zeros_like(block.b))
        return self._pass(V, no_labels, W, None, IDENTITY)[1]

    def gram(self, W: Array) -> Array:
        return unpack(self.packed_gram(W), self.n) if self._small else super().gram(W)

    def packed_gram(self, W: Array) -> Array:
        if not self._small:
            return super().packed_gram(W)
        return kernel(self.b.dtype, "grams")(self.A, np.ascontiguousarray(W, self.b.dtype))

    @property
    def _small(self) -> bool:
        return self.b.shape[1] * self.n * self.b.itemsize <= SMALL

    def _pass(self, X: Array, q: Array, p: Array, ridge: Array | None, mean: int) -> tuple[Array, Array]:
        """Scores (c, D) and A_iᵀ((μ(z) − q) p) + ridge_i x_i (c, n), as kernels.one_pass."""
        if ridge is None:
            ridge = self.note("no ridge", lambda block: np.zeros((len(block), 1), block.b.dtype))
        points = np.ascontiguousarray(X if X.ndim == 2 else X[None], self.b.dtype)
        return kernel(self.b.dtype)(self.A, points, q, p, ridge, mean)


class CompiledSparseBlock(SparseBlock):
    """A block whose nonzeros the compiled kernel reads; scores and gradients are scipy's, which are faster."""

    def gram(self, W: Array) -> Array:
        return unpack(self.packed_gram(W), self.n)

    def packed_gram(self, W: Array) -> Array:
        A = self.note("rows in order", lambda block: canonical(block.A))
        W = np.ascontiguousarray(W, A.dtype)
        return kernel(A.dtype, "pairs")(A.data, A.indices, A.indptr, W, self.n)
