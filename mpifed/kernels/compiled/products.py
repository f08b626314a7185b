"""Products by compiled kernels."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.symmetric import unpack
from mpifed.core.typing import Array
from mpifed.kernels.compiled.compiling import IDENTITY, LOGISTIC, NONE, get_kernel
from mpifed.kernels.plan import PAD
from mpifed.kernels.products import BlockSamples, DenseProducts
from mpifed.kernels.sparse_products import SparseProducts, to_canonical

SMALL = 1 << 18  # bytes of a client's samples up to which BLAS is slower; fixed, because the last bits depend on it


class CompiledProducts(DenseProducts):
    """Products with A (c, D, n) in one pass over the samples; points have the type of the features."""

    def batch(self, block: BlockSamples, picks: Array, w: Array) -> tuple[Any, Array, Array]:
        # The kernel takes four rows at a time, so rows of weight 0 fill a mini-batch up.
        if short := -picks.shape[1] % PAD:
            picks, w = (np.concatenate([part, np.zeros((len(part), short), part.dtype)], 1) for part in (picks, w))
        return super().batch(block, picks, w)

    def matvec(self, block: BlockSamples, X: Array) -> Array:
        return one_pass(block, X, (block.b, block.w), None, NONE)[0]

    def one_pass(
        self, block: BlockSamples, X: Array, residual: Callable[[Array], Array], logistic: bool, ridge: Array | None
    ) -> tuple[Array, Array]:
        return one_pass(block, X, (block.b, block.w), ridge, LOGISTIC if logistic else IDENTITY)

    def gram_product(self, block: BlockSamples, W: Array, V: Array) -> Array:
        # With labels 0 and weights W the slopes of least squares are w ⟨a, v⟩.
        no_labels = block.note("no labels", lambda block: np.zeros_like(block.b))
        return one_pass(block, V, (no_labels, W), None, IDENTITY)[1]

    def gram(self, block: BlockSamples, W: Array) -> Array:
        return unpack(self.packed_gram(block, W), block.n) if is_small(block) else super().gram(block, W)

    def packed_gram(self, block: BlockSamples, W: Array) -> Array:
        if not is_small(block):
            return super().packed_gram(block, W)
        return get_kernel(block.b.dtype, "grams")(block.A, np.ascontiguousarray(W, block.b.dtype))


class CompiledSparseProducts(SparseProducts):
    """Products with CSR samples: Gram matrices by a compiled kernel, scores and gradients by scipy, which is faster."""

    def gram(self, block: BlockSamples, W: Array) -> Array:
        return unpack(self.packed_gram(block, W), block.n)

    def packed_gram(self, block: BlockSamples, W: Array) -> Array:
        A = block.note("rows in order", lambda block: to_canonical(block.A))
        W = np.ascontiguousarray(W, A.dtype)
        return get_kernel(A.dtype, "pairs")(A.data, A.indices, A.indptr, W, block.n)


def is_small(block: BlockSamples) -> bool:
    """Return whether the samples of a client are so few that BLAS is slower."""
    return bool(block.b.shape[1] * block.n * block.b.itemsize <= SMALL)


def one_pass(
    block: BlockSamples, X: Array, qp: tuple[Array, Array], ridge: Array | None, mean: int
) -> tuple[Array, Array]:
    """Compute scores (c, D) and A_iᵀ((μ(z) − q) p) + ridge_i x_i (c, n) by kernels.one_pass, with ``qp`` = (q, p)."""
    if ridge is None:
        ridge = block.note("no ridge", lambda block: np.zeros((len(block), 1), block.b.dtype))
    points = np.ascontiguousarray(X if X.ndim == 2 else X[None], block.b.dtype)
    return get_kernel(block.b.dtype)(block.A, points, *qp, ridge, mean)
