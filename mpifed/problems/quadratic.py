"""Quadratic functions, such as (41) and (42) of Z. Fan, H. Fang, M. P. Friedlander, "A dual approach for federated
learning", arXiv:2201.11183 (2022)."""

from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import ClientFactors, Problem, RowMap, unit_factors


class Quadratic(Problem, tag="quadratic"):
    """f_i(x) = ½ xᵀQ_i x − b_iᵀx; a client's n rows of X are Q_i, its n labels are b_i.

    r_i = ‖Q_i‖, α_i = λ_min(Q_i). Q_i must be symmetric. With ``noise`` methods get
    ∇f_i + ξ, ξ ~ N(0, noise²I).  Source: the lower bounds (41), (42) are of this kind.
    """

    # f_i has the matrix of one client only.
    supports = Supports.EVERYTHING

    sampled: ClassVar[bool] = False

    noise: Annotated[
        float, Meta(ge=0, description="σ of normal noise in each entry of a gradient in local steps, new each time")
    ] = 0.0

    def dim(self, data: Dataset) -> int:
        wrong = np.flatnonzero(data.sizes != data.n)
        if len(wrong):
            count = f"client {wrong[0]} has {data.sizes[wrong[0]]}"
            raise ValueError(f"every client needs {data.n} rows, the rows of its matrix, but {count}")
        return data.n

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        QX = block.matvec(X)[:, : block.n]
        b = block.b[:, : block.n]
        xp = block.xp
        X = xp.broadcast_to(X, QX.shape)
        return xp.vecdot(QX, X) / 2 - xp.vecdot(b, X), QX - b

    def lipschitz(self, block: Block) -> Array:
        """Compute r_i = ‖Q_i‖, which is λ_max(Q_i) if f_i is convex: (c,)."""
        with self.raise_user_errors():
            return block.xp.max(block.xp.abs(block.once("spectrum", spectrum)), axis=1)

    def convexity(self, block: Block) -> Array:
        """Compute α_i = λ_min(Q_i): (c,)."""
        with self.raise_user_errors():
            return block.once("spectrum", spectrum)[:, 0]

    def hessian(self, block: Block, X: Array) -> RowMap:
        """Return the function V -> Q_i v_i for rows V (c, n)."""
        return lambda V: block.matvec(V)[:, : block.n]

    def hess(self, block: Block, X: Array) -> Array:
        """Return Q_i, made symmetric to the bit: (c, n, n)."""
        Q = matrices(block)
        return Q / 2 + Q.mT / 2

    def majorizer_inverse(
        self, block: Block, scale: float, shift: float, factors: ClientFactors = unit_factors
    ) -> RowMap:
        """Return the function v -> (scale·s_i·Q_i + shift·I)⁻¹ v."""

        def inverse(block: Block) -> Array:
            factor = np.reshape(scale * factors(block), (-1, 1, 1)).astype(block.b.dtype)
            return np.linalg.inv(factor * matrices(block) + shift * np.eye(block.n, dtype=block.b.dtype))

        K = block.once(f"inverse {scale!r} {shift!r}", inverse)
        return lambda V: block.multiply(K, V)


def matrices(block: Block) -> Array:
    """Return the matrices Q_i: (c, n, n)."""
    return np.stack([block.dense(i) for i in range(len(block))])


def spectrum(block: Block) -> Array:
    """Compute the eigenvalues of Q_i in ascending order: (c, n). ValueError if a Q_i is not symmetric."""
    Q = matrices(block)
    if (np.abs(Q - Q.mT) > 1e-5 * np.abs(Q).max(axis=(1, 2), keepdims=True)).any():
        raise ValueError("the rows of each client must be a symmetric matrix")
    return np.linalg.eigvalsh(Q)
