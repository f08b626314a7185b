"""The base of Poisson, gamma and Huber regression, with an unregularised bias, and the mean e^z of the first two."""

from collections.abc import Callable
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.core.arrays import namespace, to_numpy
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset, WithOnes
from mpifed.data.labels import add_note
from mpifed.kernels.blocks import Block
from mpifed.problems.calibration import observed_expected
from mpifed.problems.linear_model import LinearModel

TWO = "there are two intercepts, a column of ones in the data and the bias of the problem: problem.bias = false has one"


class Regression(LinearModel):
    """Regression with f_i(x) = (1/d_i) Σ_j ℓ(⟨a_j, w⟩ + bias, b_j) + (lam/2)‖w‖² and parameters x = [w | bias]."""

    lam: Annotated[float, Meta(ge=0, description="regularisation λ of w, not of the bias")] = 0.0
    bias: Annotated[bool, Meta(description="whether scores have a bias, the last parameter")] = True

    def fit_labels(self, data: Dataset) -> Dataset:
        data = super().fit_labels(data)
        if not self.bias:
            return data
        return WithOnes(add_note(data, TWO) if data.intercepts else data)

    def weight(self, d: Array) -> Array:
        return 0.0 * d + self.lam

    def penalty(self, X: Array) -> Array:
        W = X[..., : X.shape[-1] - self.bias]
        return namespace(W).vecdot(W, W) / 2

    def penalty_grad(self, X: Array) -> Array:
        return X * self.penalty_hessian(X)

    def penalty_hessian(self, X: Array) -> Array:
        ones = namespace(X).ones_like(X)
        if self.bias:
            ones[..., -1] = 0
        return ones

    def decay_mask(self, data: Dataset) -> Array:
        n = self.dim(data)
        return np.arange(n) < n - self.bias

    def convexity(self, block: Block) -> Array:
        """Return α_i = lam: (c,); 0 with a bias, which lam does not cover."""
        return block.xp.full(len(block), 0.0 if self.bias else self.lam)


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
