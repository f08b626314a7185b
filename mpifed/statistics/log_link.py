"""Poisson and gamma regression with a log link, chapters 6 and 8 of P. McCullagh, J. A. Nelder, "Generalized linear
models", doi:10.1201/9780203753736 (1989)."""

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from mpifed.core.arrays import namespace, to_numpy
from mpifed.core.promises import Supports
from mpifed.core.symmetric import add_diagonal
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.calibration import observed_expected
from mpifed.statistics.regression import Regression


def exponential(Z: Array) -> tuple[Array, Array, Array]:
    """Return e^z and its first two derivatives, elementwise; for large z those of a quadratic that continues it.

    The quadratic begins at a third of the largest exponent: 236, in single precision 29. No label has such a mean, but
    a step that is too long leads there, and with a finite f a line search can shorten it.
    """
    xp = namespace(Z)
    dtype = to_numpy(Z[:0]).dtype
    cut = float(dtype.type(np.log(np.finfo(dtype).max) / 3))
    E = xp.exp(xp.minimum(Z, cut))
    beyond = xp.maximum(Z - cut, 0)
    # the usual case: the same array three times, at no cost
    if not beyond.any():
        return E, E, E
    return E * (1 + beyond + beyond * beyond / 2), E * (1 + beyond), E


def log_gamma(a: Array | float) -> Array | float:
    """Return ln Γ(a)."""
    from scipy.special import gammaln  # slow to import, and for standard errors alone

    return gammaln(a)


class LogLink(Regression):
    """A regression with the mean e^z, whose deviance is recorded."""

    log_link: ClassVar[bool] = True
    sample_columns: ClassVar[bool] = True
    ratio: ClassVar[str] = "ratio of means"
    offers: ClassVar[dict[str, str]] = Regression.offers | {
        name: f"{Regression.offers[name].partition(';')[0]}, but that of e^z has none"
        for name in ("lipschitz", "majorizer_inverse")
    }

    def measure_names(self) -> tuple[str, ...]:
        return ("deviance",)

    def measure(self, block: Block, X: Array) -> tuple[Array, ...]:
        """Return the mean deviance of each client's samples: (c,)."""
        return (self.mean_deviance(block, X),)

    def client_measures(self) -> dict[str, Callable[[Block, Array], Array]]:
        return {"observed_expected": self.observed_expected}

    def observed_expected(self, block: Block, X: Array) -> Array:
        """Return Σ_j b_j / Σ_j e^{z_j}, each client's labels over those that the model expects: (c,)."""
        return observed_expected(block, exponential(self.scores(block, X))[0])


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
        return -self.loss(Z, b) - log_gamma(b + 1)

    def deviance(self, Z: Array, b: Array) -> Array:
        """Return 2(b ln b − b − b z + e^z), with 0 ln 0 = 0."""
        xp = namespace(Z)
        return 2 * (b * xp.log(xp.where(b > 0, b, 1.0)) - b + self.loss(Z, b))


class Gamma(LogLink, tag="gamma"):
    """Positive labels b with the mean e^z of a score z: f_i(x) = (1/d_i) Σ_j z_j + b_j e^{−z_j} + (lam/2)‖w‖².

    z = ⟨a, w⟩ + bias. f_i is half the mean deviance plus (lam/2)‖w‖², up to a constant of the labels; the dispersion,
    which does not change the minimum, is left out. There is no r_i. Below z = −236 e^{−z} goes on as its quadratic.
    """

    supports = Supports.EVERYTHING  # as for Poisson

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
        return a * (np.log(a * b) - self.loss(Z, b)) - np.log(b) - log_gamma(a)

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
