"""Logistic regression with a non-convex regulariser, Example V.3 of S. Zhou, G. Y. Li, "FedGiA: An efficient hybrid
algorithm for federated learning", arXiv:2205.01438 (2022)."""

from typing import Annotated, ClassVar

from msgspec import Meta

from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.problems.logistic import LogisticLoss


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
