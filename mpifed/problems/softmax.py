"""Multinomial logistic regression (MLR), section 8.1 of Z. Fan, H. Fang, M. P. Friedlander, "A dual approach for
federated learning", arXiv:2201.11183 (2022)."""

import math
from collections.abc import Callable
from itertools import combinations_with_replacement

import numpy as np

from mpifed.core.arrays import namespace
from mpifed.core.promises import Supports
from mpifed.core.symmetric import add_diagonal
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.calibration import calibration_error
from mpifed.problems.classifier import Classifier
from mpifed.problems.gram import largest_eigenvalue
from mpifed.problems.problem import RowMap


class Softmax(Classifier, tag="softmax"):
    """Mean cross-entropy of softmax(W a + bias) + (lam/2)‖W‖²; the bias is not regularised.

    Labels 0 … C−1. r_i = λ_max(A_iᵀA_i)/(2d_i) + lam, A_i with its column of ones where there is a bias.
    Source: section 8.1 (no bias; λ: errata); flame (arXiv:2311.06756, 2023), section V (MLR).
    """

    # f_i is of the samples of one client; a method that needs clipped gradients of single samples asks for them.
    supports = Supports.EVERYTHING

    def losses(self, Z: Array, b: Array) -> tuple[Array, Array]:
        return cross_entropy(Z, b)

    def slopes(self, Z: Array, b: Array) -> Array:
        return subtract_labels(probabilities(Z), b)

    def client_measures(self) -> dict[str, Callable[[Block, Array], Array]]:
        return {"calibration_error": self.calibration_error}

    def calibration_error(self, block: Block, X: Array) -> Array:
        """Compute the expected calibration error of the probabilities of the predicted classes: (c,)."""
        P = probabilities(self.scores(block, X))
        hit = block.xp.argmax(P, axis=-1) == block.b
        return calibration_error(block, block.xp.max(P, axis=-1), hit)

    def hessian(self, block: Block, X: Array) -> RowMap:
        """Return the function V -> ∇²f_i(x_i) v_i for rows V (c, n)."""
        P = probabilities(self.scores(block, X))

        def apply(V: Array) -> Array:
            U = self.scores(block, V)
            R = P * (U - np.sum(P * U, axis=-1, keepdims=True))
            return self.pull(block, R, V)

        return apply

    def hess(self, block: Block, X: Array) -> Array:
        """Compute ∇²f_i(x_i): (c, n, n).

        For the classes k, l it is A_iᵀ diag(w p_k([k = l] − p_l)) A_i, A_i with its column of ones; lam is added for W.
        """
        P = probabilities(self.scores(block, X))
        classes = P.shape[-1]
        f = block.n
        bias_start = classes * f
        n = bias_start + classes * self.bias
        H = np.empty((len(block), n, n), P.dtype)
        for k, l in combinations_with_replacement(range(classes), 2):
            sign, other = (1, 1 - P[..., k]) if k == l else (-1, P[..., l])
            weights = block.w * P[..., k] * other
            K = slice(k * f, k * f + f)
            L = slice(l * f, l * f + f)
            H[:, K, L] = H[:, L, K] = sign * block.gram(weights)
            if self.bias:
                H[:, K, bias_start + l] = H[:, L, bias_start + k] = sign * block.vecmat(weights)
                H[:, bias_start + k, bias_start + l] = H[:, bias_start + l, bias_start + k] = sign * weights.sum(axis=1)
        H[:, bias_start:, :bias_start] = H[:, :bias_start, bias_start:].mT
        add_diagonal(H[:, :bias_start, :bias_start], np.array(self.lam, H.dtype))
        return H

    def lipschitz(self, block: Block) -> Array:
        """Compute r_i = λ_max(A_iᵀA_i)/(2d_i) + lam: (c,)."""
        if self.bias:
            top = block.once("largest eigenvalue with bias", largest_eigenvalue_with_ones)
        else:
            top = block.once("largest eigenvalue", largest_eigenvalue)
        return top / (2 * block.d) + self.lam

    def convexity(self, block: Block) -> Array:
        """Return α_i = lam (c,), or 0 with a bias, which lam does not cover."""
        return block.xp.full(len(block), 0.0 if self.bias else self.lam)


def probabilities(Z: Array) -> Array:
    """Compute softmax(z) at scores Z: (c, D, C)."""
    xp = namespace(Z)
    P = xp.exp(Z - xp.max(Z, axis=-1, keepdims=True))
    P /= xp.sum(P, axis=-1, keepdims=True)
    return P


def cross_entropy(Z: Array, b: Array) -> tuple[Array, Array]:
    """Compute −ln softmax(z)_b (c, D) and its slope (c, D, C) at scores Z (c, D, C), without overflow at any z."""
    xp = namespace(Z)
    top = xp.max(Z, axis=-1)
    P = xp.exp(Z - top[..., None])
    total = xp.sum(P, axis=-1)
    P /= total[..., None]
    return xp.log(total) + top - Z.reshape(-1)[positions_of_labels(Z, b)], subtract_labels(P, b)


def subtract_labels(P: Array, b: Array) -> Array:
    """Subtract 1 from P at the classes b, in place if P is contiguous."""
    flat = P.reshape(-1)
    flat[positions_of_labels(P, b)] -= 1
    return flat.reshape(P.shape)


def positions_of_labels(Z: Array, b: Array) -> Array:
    """Return the positions in the flat Z (c, D, C) of the scores of the classes b: (c, D)."""
    xp = namespace(Z)
    return xp.astype(b, xp.int64) + xp.arange(0, math.prod(Z.shape), Z.shape[-1]).reshape(b.shape)


def largest_eigenvalue_with_ones(block: Block) -> Array:
    """Compute λ_max of [A_i 1]ᵀ[A_i 1], which is that of A_i A_iᵀ + 1 1ᵀ, without padding: (c,)."""
    rows = (np.pad(block.dense(i), ((0, 0), (0, 1)), constant_values=1) for i in range(len(block)))
    return np.array([np.linalg.eigvalsh(A @ A.T if len(A) < A.shape[1] else A.T @ A)[-1] for A in rows])
