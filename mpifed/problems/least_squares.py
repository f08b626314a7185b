"""Least squares, Example II.1 of S. Zhou, G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning",
arXiv:2205.01438 (2022)."""

import math
from typing import ClassVar, Literal

import numpy as np

from mpifed.core.arrays import namespace
from mpifed.core.promises import Supports
from mpifed.core.symmetric import add_diagonal
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.gram import smallest_eigenvalue
from mpifed.problems.linear_model import LinearModel


class LeastSquares(LinearModel, tag="least-squares"):
    """Linear regression: f_i(x) = (1/2d_i) ‖A_i x − b_i‖².

    r_i = λ_max(A_iᵀA_i)/d_i.  Source: (2); fedadmm (arXiv:2204.10607, 2022), Example 5.1.
    """

    # f_i is a mean over samples of one client, and clipped_grad clips each of them.
    supports = Supports.EVERYTHING

    curvature: ClassVar[float] = 1.0
    mean: ClassVar[Literal["identity"]] = "identity"
    normal: ClassVar[bool] = True
    sample_columns: ClassVar[bool] = True

    def loss(self, Z: Array, b: Array) -> Array:
        return (Z - b) ** 2 / 2

    def slope(self, Z: Array, b: Array) -> Array:
        return Z - b

    def bend(self, Z: Array) -> Array:
        return namespace(Z).ones_like(Z)

    def log_density(self, Z: Array, b: Array, dispersion: Array | float) -> Array:
        """Compute the log-density −(ln(2πφ) + (z − b)²/φ)/2 of normal labels with the variance φ."""
        return -(namespace(Z).log(2 * math.pi * dispersion) + self.squares(Z, b) / dispersion) / 2

    def squares(self, Z: Array, b: Array) -> Array:
        return (Z - b) ** 2

    def quadratics(self, block: Block) -> tuple[Array, Array] | None:
        """Return H_i = A_iᵀA_i/d_i + ridge_i I (c, n, n) and ∇f_i(0) (c, n), by which ∇f_i(x) = H_i x + ∇f_i(0).

        None where samples are not dense, or a class that derives from this one has another gradient.
        """
        if self.in_scores() is None or not self.compiles() or not block.products.every_number:
            return None

        def compute(block: Block) -> Array:
            H = block.gram(block.w)
            ridge = self.ridge(block)
            if ridge is not None:
                add_diagonal(H, np.broadcast_to(ridge, H.shape[:2]))
            return np.concatenate([H, self.grad(block, np.zeros(block.n, H.dtype))[:, None]], axis=1)

        values = block.client_values("quadratics", compute)  # (c, n + 1, n)
        return values[:, :-1], values[:, -1]

    def least_curvature(self, block: Block) -> Array:
        """Compute λ_min(A_iᵀA_i)/d_i: (c,)."""
        return block.once("smallest eigenvalue", smallest_eigenvalue) / block.d
