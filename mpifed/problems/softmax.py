"""Multinomial logistic regression (MLR), section 8.1 of Z. Fan, H. Fang, M. P. Friedlander, "A dual approach for
federated learning", arXiv:2201.11183 (2022)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.blocks import Block
from mpifed.problems.classifier import Classifier
from mpifed.problems.gram import largest_eigenvalue


class Softmax(Classifier, tag="softmax"):
    """Mean cross-entropy of softmax(W a + bias) + (lam/2)‖W‖²; the bias is not regularised.

    Labels 0 … C−1. r_i = λ_max(A_iᵀA_i)/(2d_i) + lam, A_i with its column of ones where there is a bias.
    Source: section 8.1 (no bias; λ: errata); flame (arXiv:2311.06756, 2023), section V (MLR).
    """

    def losses(self, Z: Array, b: Array) -> tuple[Array, Array]:
        return cross_entropy(Z, b)

    def hessian(self, block: Block, X: Array) -> Callable[[Array], Array]:
        """V -> ∇²f_i(x_i) v_i for rows V (c, n)."""
        Z = self.scores(block, X)
        P = np.exp(Z - Z.max(axis=-1, keepdims=True))
        P /= P.sum(axis=-1, keepdims=True)

        def apply(V: Array) -> Array:
            U = self.scores(block, V)
            R = P * (U - np.sum(P * U, axis=-1, keepdims=True))
            return self.pull(block, R, V)

        return apply

    def lipschitz(self, block: Block) -> Array:
        """r_i = λ_max(A_iᵀA_i)/(2d_i) + lam: (c,)."""
        top = (
            block.once("largest eigenvalue with bias", with_ones)
            if self.bias
            else block.once("largest eigenvalue", largest_eigenvalue)
        )
        return top / (2 * block.d) + self.lam

    def convexity(self, block: Block) -> Array:
        """α_i = lam: (c,); 0 with a bias, which lam does not cover."""
        return np.full(len(block), 0.0 if self.bias else self.lam)


def cross_entropy(Z: Array, b: Array) -> tuple[Array, Array]:
    """−ln softmax(z)_b (c, D) and its slope (c, D, C) at scores Z (c, D, C), without overflow at any z."""
    top = Z.max(axis=-1, keepdims=True)
    P = np.exp(Z - top)
    total = P.sum(axis=-1, keepdims=True)
    P /= total
    true = b.astype(np.intp)[..., None]
    loss = np.log(total) + top - np.take_along_axis(Z, true, -1)
    np.put_along_axis(P, true, np.take_along_axis(P, true, -1) - 1, -1)
    return loss[..., 0], P


def with_ones(block: Block) -> Array:
    """λ_max of [A_i 1]ᵀ[A_i 1], which is that of A_i A_iᵀ + 1 1ᵀ, without padding rows: (c,)."""
    return np.array([np.linalg.eigvalsh(bordered(block.dense(i)))[-1] for i in range(len(block))])


def bordered(A: Array) -> Array:
    """The smaller Gram matrix of A with a column of ones."""
    A = np.concatenate([A, np.ones((len(A), 1), A.dtype)], axis=1)
    return A @ A.T if A.shape[0] < A.shape[1] else A.T @ A
