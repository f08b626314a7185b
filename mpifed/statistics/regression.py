"""The base of Poisson, gamma and Huber regression, with an unregularised bias."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.arrays import namespace
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset, WithOnes
from mpifed.data.labels import add_note
from mpifed.kernels.blocks import Block
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
