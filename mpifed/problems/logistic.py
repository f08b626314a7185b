"""Logistic regression with an ℓ2 or a non-convex regulariser, Examples II.2 and V.3 of S. Zhou, G. Y. Li, "FedGiA: An
efficient hybrid algorithm for federated learning", arXiv:2205.01438 (2022)."""

from collections.abc import Callable
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.arrays import namespace
from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.data.labels import LabelKind
from mpifed.kernels.blocks import Block
from mpifed.problems.calibration import area_under_roc, calibration_error, observed_expected
from mpifed.problems.linear_model import LinearModel


class LogisticLoss(LinearModel):
    """ℓ(z, b) = ln(1 + e^z) − b z with b in {0, 1}, computed without overflow at any z."""

    curvature: ClassVar[float] = 0.25
    logistic_loss: ClassVar[bool] = True
    mean: ClassVar[Literal["logistic"]] = "logistic"
    sample_columns: ClassVar[bool] = True
    ratio: ClassVar[str] = "odds ratio"

    def takes(self) -> LabelKind:
        return "binary"

    def labels(self, b: Array) -> Array:
        wrong = b[~np.isin(b, (-1, 0, 1))]
        if len(wrong):
            raise ValueError(f"labels must be 0 and 1 or -1 and 1, but there is {wrong[0]:.10g}")
        if np.isin(-1, b) and np.isin(0, b):
            raise ValueError("labels must be 0 and 1 or -1 and 1, but there are -1, 0 and 1")
        return np.maximum(b, 0)

    def log_density(self, Z: Array, b: Array, dispersion: Array | float) -> Array:
        return -self.loss(Z, b)

    def predict(self, block: Block, X: Array) -> Array:
        """Return 1 where the score is positive, else 0: (c, D)."""
        return self.classes(self.scores(block, X))

    def classes(self, Z: Array) -> Array:
        return Z > 0

    def client_measures(self) -> dict[str, Callable[[Block, Array], Array]]:
        return {
            "auc": self.auc,
            "deviance": self.mean_deviance,
            "calibration_error": self.calibration_error,
            "observed_expected": self.observed_expected,
        }

    def auc(self, block: Block, X: Array) -> Array:
        """Compute the area under the ROC curve of each client's samples, NaN with one class only: (c,)."""
        return area_under_roc(block, self.scores(block, X))

    def deviance(self, Z: Array, b: Array) -> Array:
        return 2 * self.loss(Z, b)

    def calibration_error(self, block: Block, X: Array) -> Array:
        """Compute the expected calibration error of the probabilities of label 1: (c,)."""
        return calibration_error(block, self.probability(self.scores(block, X)), block.b)

    def observed_expected(self, block: Block, X: Array) -> Array:
        """Compute the number of labels 1 over the sum of their probabilities: (c,)."""
        return observed_expected(block, self.probability(self.scores(block, X)))

    def probability(self, Z: Array) -> Array:
        """Compute 1/(1 + e^−z), elementwise."""
        return self.slope(Z, 0 * Z)

    def loss(self, Z: Array, b: Array) -> Array:
        xp = namespace(Z)
        return xp.log1p(xp.exp(-xp.abs(Z))) + xp.maximum(Z, 0) - b * Z

    def slope(self, Z: Array, b: Array) -> Array:
        xp = namespace(Z)
        e = xp.exp(-xp.abs(Z))
        return xp.where(Z >= 0, 1.0, e) / (1 + e) - b

    def residual(self, block: Block, Z: Array) -> Array:
        """Compute (1/(1 + e^−z) − b)/d_i as w/2·tanh(z/2) + w(1/2 − b), in few passes and without overflow: (c, D)."""
        half, rest = block.note("halves", lambda block: (block.w / 2, block.w * (0.5 - block.b)))
        R = block.xp.tanh(Z * 0.5)
        R *= half
        R += rest
        return R

    def bend(self, Z: Array) -> Array:
        xp = namespace(Z)
        e = xp.exp(-xp.abs(Z))
        return e / (1 + e) ** 2


class Logistic(LogisticLoss, tag="logistic"):
    """Logistic regression: f_i(x) = (1/d_i) [Σ_j ln(1 + e^⟨a_j,x⟩) − b_j⟨a_j,x⟩ + (mu/2)‖x‖²].

    With ``regulariser = "whole"`` (mu/2)‖x‖² stands outside 1/d_i, as fedadmm and fedepm print it. Labels {0, 1} or
    {−1, 1}. r_i = λ_max(A_iᵀA_i)/(4d_i) + mu/d_i ("whole": + mu).
    Source: (3); fedadmm (arXiv:2204.10607, 2022), Example 5.2.
    """

    # f_i is a mean over samples of one client, and clipped_grad clips each of them.
    supports = Supports.EVERYTHING

    mu: Annotated[float, Meta(ge=0, description="regularisation μ")] = 1e-3
    regulariser: Annotated[Literal["per-sample", "whole"], Meta(description="inside or outside of 1/d_i")] = (
        "per-sample"
    )

    def weight(self, d: Array) -> Array:
        return self.mu / d if self.regulariser == "per-sample" else d * 0.0 + self.mu

    def convexity(self, block: Block) -> Array:
        """Return α_i, the factor of the regulariser: (c,)."""
        return self.weight(block.d)


class NonconvexLogistic(LogisticLoss, tag="nonconvex-logistic"):
    """Logistic loss with the regulariser (mu/2d_i) Σ_ℓ x_ℓ²/(1 + x_ℓ²) in f_i.

    Labels {0, 1} or {−1, 1}. r_i = λ_max(A_iᵀA_i)/(4d_i) + mu/d_i. Source: Example V.3.
    """

    sample_columns: ClassVar[bool] = True
    # f_i is a mean over samples of one client, and clipped_grad clips each of them. The regulariser has no data.
    supports = Supports.EVERYTHING

    mu: Annotated[float, Meta(ge=0, description="regularisation μ")] = 1e-2

    def weight(self, d: Array) -> Array:
        return self.mu / d

    def penalty(self, X: Array) -> Array:
        return (X * X / (1 + X * X)).sum(axis=-1) / 2

    def penalty_grad(self, X: Array) -> Array:
        return X / (1 + X * X) ** 2

    def penalty_hessian(self, X: Array) -> Array:
        return (1 - 3 * X * X) / (1 + X * X) ** 3

    def least_curvature(self, block: Block) -> Array:
        """Return −mu/(4d_i), because (1 − 3x²)/(1 + x²)³ is at least −1/4: (c,)."""
        return -self.weight(block.d) / 4
