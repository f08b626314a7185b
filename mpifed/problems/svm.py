"""Multi-class linear support vector machine, section V of S. Zhu, J. Zeng, S. Wang, Y. Sun, Z. Peng, "Personalized
federated learning via ADMM with Moreau envelope", arXiv:2311.06756 (2023)."""

from mpifed.core.arrays import namespace, put_at
from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.problems.classifier import Classifier


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
