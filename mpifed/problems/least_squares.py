"""Least squares (fedgia Example II.1, fedadmm Example 5.1)."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from mpifed.core.typing import Array
from mpifed.problems.linear_model import LinearModel


class LeastSquares(LinearModel, tag="least-squares"):
    """Linear regression: f_i(x) = (1/2d_i) ‖A_i x − b_i‖².

    r_i = λ_max(A_iᵀA_i)/d_i. Source: fedgia (2); fedadmm Example 5.1.
    """

    curvature: ClassVar[float] = 1.0

    def loss(self, Z: Array, b: Array) -> Array:
        return (Z - b) ** 2 / 2

    def slope(self, Z: Array, b: Array) -> Array:
        return Z - b

    def bend(self, Z: Array) -> Array:
        return np.ones_like(Z)
