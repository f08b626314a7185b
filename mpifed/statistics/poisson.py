"""Poisson regression, chapter 6 of P. McCullagh, J. A. Nelder, "Generalized linear models",
doi:10.1201/9780203753736 (1989)."""

from typing import ClassVar

from scipy.special import gammaln

from mpifed.core.arrays import namespace
from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.statistics.regression import LogLink, exponential


class Poisson(LogLink, tag="poisson"):
    """Counts b with the mean e^z of a score z: f_i(x) = (1/d_i) Σ_j e^{z_j} − b_j z_j + (lam/2)‖w‖², z = ⟨a, w⟩ + bias.

    f_i is half the mean deviance plus (lam/2)‖w‖², up to a constant that depends on the labels. Labels are at least 0,
    whole or not. There is no r_i. Above z = 236 e^z goes on as its quadratic, so that f_i is finite: `newton`, and
    `fednl` with its line search, come back from there.
    """

    # f_i is a mean over samples of one client, and clipped_grad clips each of them.
    supports = Supports.EVERYTHING

    ratio: ClassVar[str] = "rate ratio"

    def labels(self, b: Array) -> Array:
        wrong = b[b < 0]
        if len(wrong):
            raise ValueError(f"labels must be counts, at least 0, but there is {wrong[0]:g}")
        return b

    def loss(self, Z: Array, b: Array) -> Array:
        return exponential(Z)[0] - b * Z

    def slope(self, Z: Array, b: Array) -> Array:
        return exponential(Z)[1] - b

    def bend(self, Z: Array) -> Array:
        return exponential(Z)[2]

    def log_density(self, Z: Array, b: Array, dispersion: Array | float) -> Array:
        """Return b z − e^z − ln Γ(b + 1), as the dispersion of counts is 1."""
        return -self.loss(Z, b) - gammaln(b + 1)

    def deviance(self, Z: Array, b: Array) -> Array:
        """Return 2(b ln b − b − b z + e^z), with 0 ln 0 = 0."""
        xp = namespace(Z)
        return 2 * (b * xp.log(xp.where(b > 0, b, 1.0)) - b + self.loss(Z, b))
