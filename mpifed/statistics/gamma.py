"""Gamma regression with a log link, chapter 8 of P. McCullagh, J. A. Nelder, "Generalized linear models",
doi:10.1201/9780203753736 (1989)."""

import numpy as np
from scipy.special import gammaln

from mpifed.core.arrays import namespace
from mpifed.core.promises import Supports
from mpifed.core.symmetric import add_diagonal
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.statistics.regression import LogLink, exponential


class Gamma(LogLink, tag="gamma"):
    """Positive labels b with the mean e^z of a score z: f_i(x) = (1/d_i) Σ_j z_j + b_j e^{−z_j} + (lam/2)‖w‖².

    z = ⟨a, w⟩ + bias. f_i is half the mean deviance plus (lam/2)‖w‖², up to a constant of the labels; the dispersion,
    which does not change the minimum, is left out. There is no r_i. Below z = −236 e^{−z} goes on as its quadratic.
    """

    # f_i is a mean over samples of one client, and clipped_grad clips each of them.
    supports = Supports.EVERYTHING

    def labels(self, b: Array) -> Array:
        wrong = b[b <= 0]
        if len(wrong):
            raise ValueError(f"labels must be above 0, but there is {wrong[0]:g}; problem=poisson takes 0")
        return b

    def loss(self, Z: Array, b: Array) -> Array:
        return Z + b * exponential(-Z)[0]

    def slope(self, Z: Array, b: Array) -> Array:
        return 1 - b * exponential(-Z)[1]

    def bends(self, block: Block, Z: Array) -> Array:
        return block.w * block.b * exponential(-Z)[2]

    def log_density(self, Z: Array, b: Array, dispersion: Array | float) -> Array:
        """Return a ln(a b/e^z) − a b e^{−z} − ln b − ln Γ(a) for the shape a = 1/dispersion."""
        a = 1 / dispersion
        return a * (np.log(a * b) - self.loss(Z, b)) - np.log(b) - gammaln(a)

    def expected_hess(self, block: Block, X: Array) -> Array:
        """Return A_iᵀA_i/d_i + the regulariser's part, as b e^{−z} has the mean 1: (c, n, n)."""
        # standard errors of generalised linear models usually come from Fisher's information, not from the Hessian
        H = block.gram(block.w)
        add_diagonal(H, self._curvature(block, X)[1])
        return H

    def squares(self, Z: Array, b: Array) -> Array:
        """Return (b e^{−z} − 1)²."""
        return (b * exponential(-Z)[0] - 1) ** 2

    def deviance(self, Z: Array, b: Array) -> Array:
        """Return 2(z − ln b + b e^{−z} − 1)."""
        xp = namespace(Z)
        return 2 * (self.loss(Z, b) - xp.log(xp.where(b > 0, b, 1.0)) - 1)
