"""Robust linear regression, P. J. Huber, "Robust estimation of a location parameter", doi:10.1214/aoms/1177703732
(1964)."""

from typing import Annotated, ClassVar

from msgspec import Meta

from mpifed.core.arrays import namespace
from mpifed.core.promises import Keeps
from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block
from mpifed.statistics.regression import Regression


class Huber(Regression, tag="huber"):
    """Linear regression in which outliers count less: f_i(x) = (1/d_i) Σ_j h(z_j − b_j) + (lam/2)‖w‖².

    z = ⟨a, w⟩ + bias; h(r) = r²/2 where |r| <= delta, else delta(|r| − delta/2). delta is in the unit of the labels.
    r_i = λ_max(A_iᵀA_i)/d_i + lam, A_i with its column of ones where there is a bias. ∇²f_i jumps at |r| = delta.
    """

    # f_i is a mean over samples of one client, and clipped_grad clips each of them.
    keeps = Keeps.EVERYTHING

    delta: Annotated[float, Meta(gt=0, description="residual at which the square ends")] = 1.345

    curvature: ClassVar[float] = 1.0

    def loss(self, Z: Array, b: Array) -> Array:
        xp = namespace(Z)
        r = xp.abs(Z - b)
        return xp.where(r <= self.delta, r * r / 2, self.delta * (r - self.delta / 2))

    def slope(self, Z: Array, b: Array) -> Array:
        return namespace(Z).clip(Z - b, -self.delta, self.delta)

    def bends(self, block: Block, Z: Array) -> Array:
        return block.w * (block.xp.abs(Z - block.b) <= self.delta)
