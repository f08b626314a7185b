"""Least squares on the samples of all clients, and the robust scale of Huber's residuals, as rlm of R has them."""

from typing import NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory, size_of
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset

NORMAL = 0.6744897501960817  # the median of |r| for normal r with the deviation 1
STEPS = 1000  # of iteratively reweighted least squares
EXACT = 1e-12  # change of the scale, as a part of it, with which they end
ROUNDING = 1e-13  # of the labels: residuals below are none


class Rows(NamedTuple):
    """The training samples of all clients: X (d, n), labels less offsets y (d,), and weights v (d,)."""

    X: Array
    y: Array
    v: Array

    def solved(self, weights: Array) -> Array:
        """The least-squares solution (n,) with the weights times v; the shortest one where there are several."""
        roots = np.sqrt(weights * self.v)
        found: Array = np.linalg.lstsq(self.X * roots[:, None], self.y * roots)[0]
        return found


def rows_of(data: Dataset) -> Rows:
    d = int(data.sizes.sum())
    check_memory(2 * size_of((d, data.n), 8), f"the {d:,} × {data.n:,} samples of all clients, for least squares,")
    X, y = data.rows(0, data.m)
    X = X.toarray() if sp.issparse(X) else X
    v, offset = (np.ones(d), np.zeros(d)) if data.columns is None else data.columns.train
    return Rows(X.astype(float), y.astype(float) - offset, v)


def least_squares(data: Dataset) -> Array:
    """The least-squares solution (n,) on the samples of all clients."""
    return rows_of(data).solved(np.ones(int(data.sizes.sum())))


def robust_scale(data: Dataset, k: float) -> float:
    """The s that is median |r|/0.6745 of the residuals r of Huber's regression with delta = k s on all samples.

    It is what W. N. Venables, B. D. Ripley, "Modern applied statistics with S", doi:10.1007/978-0-387-21706-2, section
    6.5, end at: least squares with the weights min(1, k s/|r|) and a new s, in turns, from equal weights on until s
    rests or STEPS are done. UserError where s is 0.
    """
    rows = rows_of(data)
    weights = np.ones(len(rows.y))
    s = np.inf
    for _ in range(STEPS):
        r = np.abs(rows.y - rows.X @ rows.solved(weights))
        before = s
        s = middle(r, rows.v) / NORMAL
        if not s > ROUNDING * np.abs(rows.y).max(initial=0):
            raise UserError(
                'problem.scale = "residuals" is wrong: half of the residuals are 0, and so is their scale; '
                'scale = "labels" counts problem.delta in the unit of the labels'
            )
        if abs(s - before) <= EXACT * s:
            break
        weights = k * s / np.maximum(r, k * s)
    return s


def middle(r: Array, v: Array) -> float:
    """The median of r (d,) with the weights v; of two middle ones their mean."""
    order = np.argsort(r, kind="stable")
    below = np.cumsum(v[order])
    half = below[-1] / 2
    first = int(np.searchsorted(below, half * (1 - 1e-15)))
    last = int(np.searchsorted(below, half * (1 + 1e-15), side="right"))
    return float(r[order[first]] + r[order[min(last, len(r) - 1)]]) / 2
