"""Robust linear regression, P. J. Huber, "Robust estimation of a location parameter", doi:10.1214/aoms/1177703732
(1964)."""

from typing import Annotated, ClassVar, Literal, Self

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.core.arrays import namespace
from mpifed.core.promises import Keeps, Reasons
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.data.labels import noted
from mpifed.kernels.blocks import Block
from mpifed.problems.kept import ON_DEVICES
from mpifed.statistics.regression import Regression
from mpifed.statistics.robust_scale import least_squares, robust_scale, rows_of


class Huber(Regression, tag="huber"):
    """Linear regression in which outliers count less: f_i(x) = (1/d_i) Σ_j h(z_j − b_j) + (lam/2)‖w‖².

    z = ⟨a, w⟩ + bias; h(r) = r²/2 where |r| <= delta, else delta(|r| − delta/2). delta is in the unit of the labels,
    and runs start at 0; with ``scale`` "residuals" delta is in units of s = median |r|/0.6745 over the samples of all
    clients, with the residuals r of the fit itself as in rlm of R, and runs start at least squares: both are computed
    before round 1, from samples and not from messages, and without lam.
    r_i = λ_max(A_iᵀA_i)/d_i + lam, A_i with its column of ones where there is a bias. ∇²f_i jumps at |r| = delta.
    """

    unkept: ClassVar[Reasons] = ON_DEVICES | {
        Keeps.PRIVACY: "scale and first model are of the samples of all clients, which {name} does not count; scale = "
        '"labels" takes delta as it is'
    }

    delta: Annotated[float, Meta(gt=0, description="residual at which the square ends")] = 1.345
    scale: Annotated[
        Literal["labels", "residuals"],
        Meta(description="unit of delta: that of the labels, or the robust scale of the residuals"),
    ] = "labels"

    curvature: ClassVar[float] = 1.0

    @property
    def keeps(self) -> Keeps:
        # f_i is a mean over samples of one client, and clipped_grad clips each of them.
        return Keeps.EVERYTHING if self.scale == "labels" else Keeps.EVERYTHING & ~Keeps.PRIVACY

    def loss(self, Z: Array, b: Array) -> Array:
        xp = namespace(Z)
        r = xp.abs(Z - b)
        return xp.where(r <= self.delta, r * r / 2, self.delta * (r - self.delta / 2))

    def slope(self, Z: Array, b: Array) -> Array:
        return namespace(Z).clip(Z - b, -self.delta, self.delta)

    def bends(self, block: Block, Z: Array) -> Array:
        return block.w * (block.xp.abs(Z - block.b) <= self.delta)

    def settled(self, data: Dataset) -> tuple[Self, Dataset]:
        if self.scale == "labels":
            return self, data
        s = robust_scale(data, self.delta)
        told = f"problem.delta is {self.delta:g} × {s:.6g} = {self.delta * s:.6g}, of the residuals of all samples"
        return msgspec.structs.replace(self, delta=self.delta * s), noted(data, told)

    def initial(self, data: Dataset, seed: int) -> Array:
        return super().initial(data, seed) if self.scale == "labels" else least_squares(data)

    def flat(self, data: Dataset, x: Array) -> str:
        """That fewer samples than coefficients have a residual within delta, beyond which there is no curvature."""
        rows = rows_of(data)
        within = int(np.sum(np.abs(rows.X @ x - rows.y) <= self.delta))
        if within >= len(x):
            return ""
        help = 'problem.scale = "residuals" counts delta in their robust scale and begins at least squares'
        if self.scale != "labels":
            help = "a larger problem.delta, such as the usual 1.345, has more of them within"
        return (
            f"at this model {within} of {len(rows.y)} samples have a residual within {self.delta:.4g}, beyond which "
            f"huber has no curvature, and there are {len(x)} coefficients: {help}"
        )
