"""Eigenvalues and inverses of the Gram matrices A_iᵀA_i, from the smaller of A_iᵀA_i and A_iA_iᵀ."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.data.blocks import Block, SparseBlock
from mpifed.data.clients import Array
from mpifed.problems.base import Solve
from mpifed.rng import stream

LARGE = 4096  # beyond this order no Gram matrix is formed: Lanczos and conjugate gradients take its place


def small_gram(block: Block) -> Array:
    """A_iA_iᵀ (c, D, D) where D < n, else A_iᵀA_i (c, n, n)."""
    wide = block.b.shape[1] < block.n
    if isinstance(block, SparseBlock):
        D = block.b.shape[1]
        result = np.zeros((len(block), D, D) if wide else (len(block), block.n, block.n), block.b.dtype)
        for i in range(len(block)):
            A = block.matrix(i)
            G = (A @ A.T if wide else A.T @ A).toarray()
            result[i, : len(G), : len(G)] = G
        return result
    A = block.A
    return np.matmul(A, A.mT) if wide else np.matmul(A.mT, A)


def order(block: Block) -> int:
    """The order of the smaller Gram matrix."""
    return int(min(block.b.shape[1], block.n))


def largest_eigenvalue(block: Block) -> Array:
    """λ_max(A_iᵀA_i): (c,)."""
    if order(block) <= LARGE:
        return np.linalg.eigvalsh(small_gram(block))[:, -1]
    from scipy.sparse.linalg import LinearOperator, eigsh

    top = np.empty(len(block), block.b.dtype)
    for i in range(len(block)):
        A = block.matrix(i) if isinstance(block, SparseBlock) else block.dense(i)
        B = LinearOperator((block.n, block.n), matvec=lambda v, A=A: A.T @ (A @ v), dtype=block.b.dtype)
        longest = np.asarray(A[[int(np.argmax(norms(A)))]].sum(axis=0)).ravel()   # a start that AᵀA does not map to 0
        top[i] = eigsh(B, 1, v0=longest, return_eigenvectors=False, rng=stream(0, "model"))[0] if longest.any() else 0
    return top


def norms(A: Any) -> Array:
    """The squared norms of the rows of a dense or CSR matrix."""
    return np.asarray((A * A).sum(axis=1)).ravel()


def gram_inverse(block: Block, key: str, coefficients: Callable[[Block], tuple[Array, Array]]) -> Solve:
    """v -> (c_i A_iᵀA_i + s_i I)⁻¹ v, with (c, s) = ``coefficients(block)``.

    By the inverse of an n × n matrix from its Cholesky factor, or of a d_i × d_i one where d_i < n (Woodbury:
    (s I + c AᵀA)⁻¹ = (I − Aᵀ((s/c) I + AAᵀ)⁻¹A)/s); by conjugate gradients where both are large. ``key`` names the
    inverse, which is computed once.
    """
    def rows(block: Block) -> tuple[Array, Array]:
        c, s = coefficients(block)
        return c[:, None].astype(block.b.dtype), s[:, None].astype(block.b.dtype)

    def inverse(block: Block) -> Array:
        (c, s), G = rows(block), small_gram(block)
        if not wide:
            G *= c[:, :, None]
        diagonal = np.einsum("cii->ci", G)
        diagonal += s / c if wide else s
        L = np.linalg.inv(np.linalg.cholesky(G))
        return np.matmul(L.mT, L)

    c, s = rows(block)
    if order(block) > LARGE:
        return lambda V: conjugate_gradients(block, c, s, V)
    wide = block.b.shape[1] < block.n
    K = block.once(key, inverse)
    if wide:
        return lambda V: (V - block.vecmat(np.matvec(K, block.matvec(V)))) / s
    return lambda V: np.matvec(K, V)


def conjugate_gradients(block: Block, c: Array, s: Array, V: Array) -> Array:
    """(c_i A_iᵀA_i + s_i I) U = V for all clients at once, to a relative residual near rounding."""
    U, R = np.zeros_like(V), V.copy()
    P, rho = R.copy(), np.vecdot(R, R)
    stop = rho * (16 * np.finfo(V.dtype).eps) ** 2
    for _ in range(2 * order(block)):
        if (rho <= stop).all():
            break
        Q = c * block.vecmat(block.matvec(P)) + s * P
        step = np.where(rho > stop, rho / np.where(rho > stop, np.vecdot(P, Q), 1), 0)[:, None]
        U += step * P
        R -= step * Q
        rho, old = np.vecdot(R, R), rho
        P = R + np.where(old > stop, rho / np.where(old > stop, old, 1), 0)[:, None] * P
    return U
