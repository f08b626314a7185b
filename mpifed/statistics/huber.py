"""Robust linear regression, P. J. Huber, "Robust estimation of a location parameter", doi:10.1214/aoms/1177703732
(1964)."""

from typing import Annotated, ClassVar, Literal, NamedTuple, Self

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.core import sparse as sp
from mpifed.core.arrays import namespace
from mpifed.core.errors import UserError
from mpifed.core.memory import bytes_of_shape, check_memory
from mpifed.core.promises import Reasons, Supports
from mpifed.core.roles import TRAINING
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.data.labels import add_note
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import ON_DEVICES
from mpifed.statistics.regression import Regression

NORMAL = 0.6744897501960817  # the median of |r| for normal r with the deviation 1
STEPS = 1000  # most iterations of reweighted least squares
EXACT = 1e-12  # relative change of the scale at which the iterations end
ROUNDING = 1e-13  # relative to the labels: smaller residuals count as 0


class Huber(Regression, tag="huber"):
    """Linear regression in which outliers count less: f_i(x) = (1/d_i) Σ_j h(z_j − b_j) + (lam/2)‖w‖².

    z = ⟨a, w⟩ + bias; h(r) = r²/2 if |r| <= delta, else delta(|r| − delta/2). delta is in the unit of the labels, and
    runs start at 0; with ``scale`` "residuals" delta is in units of s = median |r|/0.6745 over the samples of all
    clients, with the residuals r of the fit itself as in rlm of R, and runs start at least squares: both are computed
    before round 1, from samples and not from messages, and without lam.
    r_i = λ_max(A_iᵀA_i)/d_i + lam, A_i with its column of ones if there is a bias. ∇²f_i jumps at |r| = delta.
    """

    unsupported: ClassVar[Reasons] = ON_DEVICES | {
        Supports.PRIVACY: "scale and first model are of the samples of all clients, which {name} does not count; "
        "scale = "
        '"labels" takes delta as it is'
    }

    delta: Annotated[float, Meta(gt=0, description="residual at which the square ends")] = 1.345
    scale: Annotated[
        Literal["labels", "residuals"],
        Meta(description="unit of delta: that of the labels, or the robust scale of the residuals"),
    ] = "labels"

    curvature: ClassVar[float] = 1.0

    @property
    def supports(self) -> Supports:
        # f_i is a mean over samples of one client, and clipped_grad clips each of them.
        return Supports.EVERYTHING if self.scale == "labels" else Supports.EVERYTHING & ~Supports.PRIVACY

    def loss(self, Z: Array, b: Array) -> Array:
        xp = namespace(Z)
        r = xp.abs(Z - b)
        return xp.where(r <= self.delta, r * r / 2, self.delta * (r - self.delta / 2))

    def slope(self, Z: Array, b: Array) -> Array:
        return namespace(Z).clip(Z - b, -self.delta, self.delta)

    def bends(self, block: Block, Z: Array) -> Array:
        return block.w * (block.xp.abs(Z - block.b) <= self.delta)

    def settle(self, data: Dataset) -> tuple[Self, Dataset]:
        if self.scale == "labels":
            return self, data
        s = robust_scale(data, self.delta)
        note = f"problem.delta is {self.delta:g} × {s:.6g} = {self.delta * s:.6g}, of the residuals of all samples"
        return msgspec.structs.replace(self, delta=self.delta * s), add_note(data, note)

    def initial(self, data: Dataset, seed: int) -> Array:
        return super().initial(data, seed) if self.scale == "labels" else least_squares(data)

    def singularity_reason(self, data: Dataset, x: Array) -> str:
        """Return a sentence if fewer samples than coefficients have a residual within delta: f is then flat."""
        samples = read_samples(data)
        within = int(np.sum(np.abs(samples.X @ x - samples.y) <= self.delta))
        if within >= len(x):
            return ""
        advice = 'problem.scale = "residuals" counts delta in their robust scale and begins at least squares'
        if self.scale != "labels":
            advice = "a larger problem.delta, such as the usual 1.345, has more of them within"
        return (
            f"at this model {within} of {len(samples.y)} samples have a residual within {self.delta:.4g}, beyond which "
            f"huber has no curvature, and there are {len(x)} coefficients: {advice}"
        )


class LeastSquaresData(NamedTuple):
    """The training samples of all clients: X (d, n), labels less offsets y (d,), and weights v (d,)."""

    X: Array
    y: Array
    v: Array

    def solve(self, weights: Array) -> Array:
        """Return the least-squares solution (n,) with the weights times v; the shortest if there are several."""
        roots = np.sqrt(weights * self.v)
        solution: Array = np.linalg.lstsq(self.X * roots[:, None], self.y * roots)[0]
        return solution


def read_samples(data: Dataset) -> LeastSquaresData:
    """Read the training samples of all clients, if memory suffices."""
    d = int(data.sizes.sum())
    check_memory(
        2 * bytes_of_shape((d, data.n), 8), f"the {d:,} × {data.n:,} samples of all clients, for least squares,"
    )
    X, y = data.rows(0, data.m)
    X = X.toarray() if sp.issparse(X) else X
    v, offset = (np.ones(d), np.zeros(d)) if data.columns is None else data.columns.values[TRAINING]
    return LeastSquaresData(X.astype(float), y.astype(float) - offset, v)


def least_squares(data: Dataset) -> Array:
    """Return the least-squares solution (n,) on the samples of all clients."""
    return read_samples(data).solve(np.ones(int(data.sizes.sum())))


def robust_scale(data: Dataset, k: float) -> float:
    """Return s = median |r|/0.6745 of the residuals r of Huber's regression with delta = k s on all samples.

    Iterate as W. N. Venables, B. D. Ripley, "Modern applied statistics with S", doi:10.1007/978-0-387-21706-2, section
    6.5: least squares with the weights min(1, k s/|r|) and a new s, in turns, from equal weights until s is constant or
    STEPS are done. Raise UserError if s is 0.
    """
    samples = read_samples(data)
    weights = np.ones(len(samples.y))
    s = np.inf
    for _ in range(STEPS):
        r = np.abs(samples.y - samples.X @ samples.solve(weights))
        before = s
        s = weighted_median(r, samples.v) / NORMAL
        if not s > ROUNDING * np.abs(samples.y).max(initial=0):
            raise UserError(
                'problem.scale = "residuals" is wrong: half of the residuals are 0, and so is their scale; '
                'scale = "labels" counts problem.delta in the unit of the labels'
            )
        if abs(s - before) <= EXACT * s:
            break
        weights = k * s / np.maximum(r, k * s)
    return s


def weighted_median(r: Array, v: Array) -> float:
    """Return the median of r (d,) with the weights v; of two middle ones their mean."""
    order = np.argsort(r, kind="stable")
    below = np.cumsum(v[order])
    half = below[-1] / 2
    first = int(np.searchsorted(below, half * (1 - 1e-15)))
    last = int(np.searchsorted(below, half * (1 + 1e-15), side="right"))
    return float(r[order[first]] + r[order[min(last, len(r) - 1)]]) / 2
