"""Linear classifiers of C classes: scores z = W a + bias, parameters flat as [W row-major (C × features) | bias].

The support vector machine is that of section V of S. Zhu, J. Zeng, S. Wang, Y. Sun, Z. Peng, "Personalized federated
learning via ADMM with Moreau envelope", arXiv:2311.06756 (2023).
"""

from abc import abstractmethod
from inspect import unwrap
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.arrays import namespace, put_at
from mpifed.core.promises import Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.data.labels import LabelKind, count_classes
from mpifed.kernels.blocks import Block
from mpifed.kernels.sample_space import LinearScores
from mpifed.problems.problem import Problem


class Classifier(Problem):
    """f_i(W, bias) = (1/d_i) Σ_j ℓ(W a_j + bias, b_j) + (lam/2)‖W‖², labels b = 0 … C−1."""

    linear: ClassVar[str] = "scores"

    lam: Annotated[float, Meta(ge=0, description="regularisation λ of W, not of the bias")] = 0.0
    bias: Annotated[bool, Meta(description="whether scores have a bias")] = True
    start: Annotated[
        Literal["zero", "uniform"], Meta(description="first model: 0, or uniform in ±1/√features from the seed")
    ] = "zero"

    @abstractmethod
    def losses(self, Z: Array, b: Array) -> tuple[Array, Array]:
        """Compute ℓ (c, D) and ∂ℓ/∂z (c, D, C) at scores Z (c, D, C) and labels b (c, D)."""

    def slopes(self, Z: Array, b: Array) -> Array:
        """Compute only ∂ℓ/∂z (c, D, C); override it if that takes less time."""
        return self.losses(Z, b)[1]

    def dim(self, data: Dataset) -> int:
        return count_classes(data) * (data.n + self.bias)

    def initial(self, data: Dataset, seed: int) -> Array:
        n = self.dim(data)
        return np.zeros(n) if self.start == "zero" else stream(seed, "model").uniform(-1, 1, n) / np.sqrt(data.n)

    def decay_mask(self, data: Dataset) -> Array:
        return np.arange(self.dim(data)) < count_classes(data) * data.n

    def takes(self) -> LabelKind:
        return "classes"

    def scores(self, block: Block, X: Array) -> Array:
        """Compute the scores Z = A_i W_iᵀ + bias_i: (c, D, C)."""
        W, bias = self.split(block, X)
        Z = block.matmat(W)
        return Z + bias[..., None, :] if self.bias else Z

    def predict(self, block: Block, X: Array) -> Array:
        """Return the class with the largest score, at a tie the lowest: (c, D)."""
        return block.xp.argmax(self.scores(block, X), axis=-1)

    def value(self, block: Block, X: Array) -> Array:
        return self._value(block, X, self.losses(self.scores(block, X), block.b)[0])

    def grad(self, block: Block, X: Array) -> Array:
        return self.pull(block, self.slopes(self.scores(block, X), block.b), X)

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        loss, R = self.losses(self.scores(block, X), block.b)
        return self._value(block, X, loss), self.pull(block, R, X)

    def evaluate(self, block: Block, X: Array) -> tuple[Array, Array, Array]:
        Z = self.scores(block, X)
        loss, R = self.losses(Z, block.b)
        return self._value(block, X, loss), self.pull(block, R, X), block.xp.argmax(Z, axis=-1)

    def value_predict(self, block: Block, X: Array) -> tuple[Array, Array]:
        Z = self.scores(block, X)
        return self._value(block, X, self.losses(Z, block.b)[0]), block.xp.argmax(Z, axis=-1)

    def _value(self, block: Block, X: Array, loss: Array) -> Array:
        f = block.xp.vecdot(block.w, loss)
        W, _ = self.split(block, X)
        return f + self.lam / 2 * (W * W).sum(axis=(-2, -1)) if self.lam else f

    def pull(self, block: Block, R: Array, X: Array) -> Array:
        """Compute the gradient (c, n) from R = ∂ℓ/∂z (c, D, C) and the regulariser at X."""
        G = self.pull_slopes(block, R * block.w[:, :, None])
        if self.lam:
            weights = X.shape[-1] - self.bias * R.shape[-1]
            G[:, :weights] += self.lam * X[..., :weights]
        return G

    def in_scores(self) -> LinearScores | None:
        cls = type(self)
        reading = ("grad", "scores", "pull", "split")
        own = all(unwrap(getattr(cls, name)) is getattr(Classifier, name) for name in reading)
        return self if own and not (self.bias and self.lam) else None  # λ is no factor of a bias

    def linear_scores(self, block: Block, X: Array) -> Array:
        return self.scores(block, X)

    def sample_slopes(self, block: Block, Z: Array) -> Array:
        return self.slopes(Z, block.b) * block.w[:, :, None]

    def pull_slopes(self, block: Block, S: Array) -> Array:
        flat = block.tmatmat(S).reshape(len(block), -1)
        return block.xp.concat([flat, S.sum(axis=1)], axis=1) if self.bias else flat

    def sample_grams(self, block: Block) -> Array:
        K = block.products.sample_gram(block)
        return K + K.dtype.type(1) if self.bias else K  # a bias has a feature of ones

    def ridge(self, block: Block) -> float | None:
        return self.lam or None

    def split(self, block: Block, X: Array) -> tuple[Array, Array]:
        """Split models X into W (…, C, features) and bias (…, C), or (…, 0) without bias."""
        classes = X.shape[-1] // (block.n + self.bias)
        cut = classes * block.n
        return X[..., :cut].reshape(*X.shape[:-1], classes, block.n), X[..., cut:]


class SVM(Classifier, tag="svm"):
    """Mean multi-class margin loss over C + (lam/2)‖W‖²: ℓ(z, b) = (1/C) Σ_{k≠b} max(0, 1 − z_b + z_k).

    Labels 0 … C−1. Not smooth: the slope at a kink is 0.  Source: section V (SVM 60 → 10); division by C: errata.
    """

    # f_i is of the samples of one client; a method that needs clipped gradients of single samples asks for them.
    supports = Supports.EVERYTHING

    def losses(self, Z: Array, b: Array) -> tuple[Array, Array]:
        classes = Z.shape[-1]
        xp = namespace(Z)
        true = xp.astype(b, xp.int64)[..., None]
        margin = 1 - xp.take_along_axis(Z, true, axis=-1) + Z
        put_at(margin, true, 0)
        R = xp.astype(margin > 0, Z.dtype) / classes
        put_at(R, true, -R.sum(axis=-1, keepdims=True))
        return xp.maximum(margin, 0).sum(axis=-1) / classes, R
