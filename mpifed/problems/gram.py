"""Eigenvalues and inverses of the Gram matrices A_iᵀA_i, from the smaller of A_iᵀA_i and A_iA_iᵀ."""

from collections.abc import Callable

import numpy as np

from mpifed.core.arrays import namespace
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import RowMap

LARGE = 4096  # above this order Lanczos and conjugate gradients are used and no Gram matrix is formed


def small_gram(block: Block) -> Array:
    """Compute A_iA_iᵀ (c, D, D) if D < n, else A_iᵀA_i (c, n, n); with weights v_j of samples, of rows √v_j a_j."""
    block = block.scale_by_roots()
    return block.products.small_gram(block)


def order(block: Block) -> int:
    """Return the order of the smaller Gram matrix."""
    return int(min(block.b.shape[1], block.n))


def largest_eigenvalue(block: Block) -> Array:
    """Compute λ_max(A_iᵀA_i): (c,)."""
    if order(block) <= LARGE:
        return np.linalg.eigvalsh(small_gram(block))[:, -1]
    from scipy.sparse.linalg import LinearOperator, eigsh

    block = block.scale_by_roots()
    top = np.empty(len(block), block.b.dtype)
    for i in range(len(block)):
        A = block.products.matrix(block, i)
        B = LinearOperator((block.n, block.n), matvec=lambda v, A=A: A.T @ (A @ v), dtype=block.b.dtype)
        squares = np.asarray((A * A).sum(axis=1)).ravel()
        # Lanczos' method starts at the longest row, which AᵀA does not map to 0; a random start would need a stream.
        longest = np.asarray(A[[int(np.argmax(squares))]].sum(axis=0)).ravel()
        top[i] = eigsh(B, 1, v0=longest, return_eigenvectors=False, rng=stream(0, "model"))[0] if longest.any() else 0
    return top


def smallest_eigenvalue(block: Block) -> Array:
    """Compute λ_min(A_iᵀA_i), or its lower bound 0 if that matrix is singular or too large: (c,)."""
    if block.b.shape[1] < block.n or order(block) > LARGE:
        return np.zeros(len(block), block.b.dtype)
    return np.maximum(np.linalg.eigvalsh(small_gram(block))[:, 0], 0)


def gram_inverse(block: Block, key: str, coefficients: Callable[[Block], tuple[Array, Array]]) -> RowMap:
    """Return the function v -> (c_i A_iᵀA_i + s_i I)⁻¹ v, with (c, s) = ``coefficients(block)``.

    It multiplies with the inverse of an n × n matrix from its Cholesky factor, or of a d_i × d_i one if d_i < n
    (Woodbury: (s I + c AᵀA)⁻¹ = (I − Aᵀ((s/c) I + AAᵀ)⁻¹A)/s), or takes conjugate gradients if both are large. The
    inverse is computed once and cached in the block under ``key``.
    """

    def rows(block: Block) -> tuple[Array, Array]:
        c, s = coefficients(block)
        return block.real(c[:, None]), block.real(s[:, None])

    def inverse(block: Block) -> Array:
        c, s = rows(block)
        G = small_gram(block)
        if not wide:
            G *= c[:, :, None]
        diagonal = np.einsum("cii->ci", G)
        diagonal += s / c if wide else s
        # From the Cholesky factor the inverse LᵀL is symmetric to the bit; from an LU factor it would not be.
        L = np.linalg.inv(np.linalg.cholesky(G))
        return np.matmul(L.mT, L)

    def matvec(V: Array) -> Array:
        return block.matvec(V) if block.offset is None else block.roots * block.matvec(V)

    def vecmat(R: Array) -> Array:
        return block.vecmat(R) if block.offset is None else block.vecmat(block.roots * R)

    c, s = rows(block)
    if order(block) > LARGE:
        accuracy = block.xp.full(len(block), 16 * block.xp.finfo(c.dtype).eps)
        product = lambda V: c * vecmat(matvec(V)) + s * V  # noqa: E731
        return lambda V: conjugate_gradients(product, V, accuracy, 2 * order(block))
    wide = block.b.shape[1] < block.n
    K = block.once(key, inverse)
    if wide:
        return lambda V: (V - vecmat(block.multiply(K, matvec(V)))) / s
    return lambda V: block.multiply(K, V)


def conjugate_gradients(apply: RowMap, B: Array, accuracy: Array, max_steps: int) -> Array:
    """Solve apply(X) = B for X (c, n), independently for each client, in at most ``max_steps`` steps.

    A client stops at the relative residual ``accuracy`` (c,), or where apply() is not positive definite.
    """
    xp = namespace(B)
    X = xp.zeros_like(B)
    R = xp.asarray(B, copy=True)
    P = xp.asarray(R, copy=True)
    rho = xp.vecdot(R, R)
    stop = rho * xp.astype(accuracy, B.dtype) ** 2
    for _ in range(max_steps):
        active = rho > stop
        if not active.any():
            break
        Q = apply(P)
        curvature = xp.vecdot(P, Q)
        active &= curvature > 0
        step = xp.where(active, rho / xp.where(active, curvature, 1.0), 0.0)[:, None]
        X += step * P
        R -= step * Q
        previous = rho
        rho = xp.where(active, xp.vecdot(R, R), 0.0)
        P = R + xp.where(active, rho / xp.where(active, previous, 1.0), 0.0)[:, None] * P
    return X
