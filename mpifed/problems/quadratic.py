"""Quadratic functions, such as (41) and (42) of Z. Fan, H. Fang, M. P. Friedlander, "A dual approach for federated
learning", arXiv:2201.11183 (2022)."""

from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.core.promises import Keeps
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Factors, Problem, Solve, ones


class Quadratic(Problem, tag="quadratic"):
    """f_i(x) = ½ xᵀQ_i x − b_iᵀx; a client's n rows of X are Q_i, its n labels are b_i.

    r_i = ‖Q_i‖, α_i = λ_min(Q_i). Q_i must be symmetric. With ``noise`` methods get
    ∇f_i + ξ, ξ ~ N(0, noise²I).  Source: the lower bounds (41), (42) are of this kind.
    """

    # f_i knows the matrix of one client.
    keeps = Keeps.EVERYTHING

    sampled: ClassVar[bool] = False

    noise: Annotated[
        float, Meta(ge=0, description="σ of normal noise in each entry of a gradient in local steps, new each time")
    ] = 0.0

    def dim(self, data: Dataset) -> int:
        wrong = np.flatnonzero(data.sizes != data.n)
        if len(wrong):
            given = f"client {wrong[0]} has {data.sizes[wrong[0]]}"
            raise ValueError(f"every client needs {data.n} rows, the rows of its matrix, but {given}")
        return data.n

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        QX = block.matvec(X)[:, : block.n]
        b = block.b[:, : block.n]
        xp = block.xp
        X = xp.broadcast_to(X, QX.shape)
        return xp.vecdot(QX, X) / 2 - xp.vecdot(b, X), QX - b

    def lipschitz(self, block: Block) -> Array:
        """r_i = ‖Q_i‖, which is λ_max(Q_i) where f_i is convex: (c,)."""
        with self.refusing():
            return block.xp.max(block.xp.abs(block.once("spectrum", spectrum)), axis=1)

    def convexity(self, block: Block) -> Array:
        """α_i = λ_min(Q_i): (c,)."""
        with self.refusing():
            return block.once("spectrum", spectrum)[:, 0]

    def hessian(self, block: Block, X: Array) -> Solve:
        """V -> Q_i v_i for rows V (c, n)."""
        return lambda V: block.matvec(V)[:, : block.n]

    def hess(self, block: Block, X: Array) -> Array:
        """Q_i, its two halves being made the same to the bit: (c, n, n)."""
        Q = matrices(block)
        return Q / 2 + Q.mT / 2

    def majorizer_inverse(self, block: Block, scale: float, shift: float, factors: Factors = ones) -> Solve:
        """v -> (scale·s_i·Q_i + shift·I)⁻¹ v."""

        def inverse(block: Block) -> Array:
            own = np.reshape(scale * factors(block), (-1, 1, 1)).astype(block.b.dtype)
            return np.linalg.inv(own * matrices(block) + shift * np.eye(block.n, dtype=block.b.dtype))

        K = block.once(f"inverse {scale!r} {shift!r}", inverse)
        return lambda V: block.multiply(K, V)


def matrices(block: Block) -> Array:
    """Q_i: (c, n, n)."""
    return np.stack([block.dense(i) for i in range(len(block))])


def spectrum(block: Block) -> Array:
    """The eigenvalues of Q_i in ascending order: (c, n). ValueError where one is not symmetric."""
    Q = matrices(block)
    if (np.abs(Q - Q.mT) > 1e-5 * np.abs(Q).max(axis=(1, 2), keepdims=True)).any():
        raise ValueError("the rows of each client must be a symmetric matrix")
    return np.linalg.eigvalsh(Q)
