"""Curves that lie on one another: which they are, and what makes the lower ones show."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.report.curves import Curve

NEAR = 0.005  # of the height of the axis: half the width of a line
SHARE = 0.5  # of the points of a curve
ABOVE = 2  # zorder of a line without gaps; bands are below it
WIDER = 0.9  # how much wider the lowest curve is than the highest; markers are wider still


class Pile(NamedTuple):
    """The curves that lie on one another with a curve: how many they are with it, and how many lie below and above."""

    size: int = 1
    below: int = 0
    above: int = 0

    def width(self, usual: float) -> float:
        return usual * (1 + WIDER * self.above / max(self.size - 1, 1))


def piles(curves: Sequence[Curve | None], log: bool, height: Sequence[float]) -> list[Pile]:
    """The pile of each curve, on an axis that is logarithmic or not; ``height`` orders them from the lowest."""
    flat = [None if curve is None else drawn(curve, log) for curve in curves]
    values = np.concatenate([y for _, y in filter(None, flat)] or [np.zeros(1)])
    near = NEAR * float(np.ptp(values[np.isfinite(values)])) if np.isfinite(values).any() else 0.0
    found = []
    for k, curve in enumerate(flat):
        others = [j for j, other in enumerate(flat) if j != k and alike(curve, other, near)]
        below = sum((height[j], j) < (height[k], k) for j in others)
        found.append(Pile(len(others) + 1, below, len(others) - below))
    return found


def drawn(curve: Curve, log: bool) -> Curve | None:
    """A curve in the coordinates of the axis; None where x goes back, because it has no order."""
    x, y = curve
    if not len(x) or (np.diff(x) < 0).any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return x, np.log10(y) if log else y


def alike(a: Curve | None, b: Curve | None, near: float) -> bool:
    """Whether one of two curves lies within ``near`` of the other at half of its points or more."""
    return a is not None and b is not None and (max(within(a, b, near), within(b, a, near)) >= SHARE)


def within(a: Curve, b: Curve, near: float) -> float:
    """The share of the points of ``a`` that lie on ``b``."""
    # Beyond its ends np.interp continues a curve at a constant value, on which another may lie by chance.
    inside = (a[0] >= b[0][0]) & (a[0] <= b[0][-1])
    with np.errstate(invalid="ignore"):
        close: Array = np.abs(a[1] - np.interp(a[0], *b)) <= near
    return float(np.mean(inside & close))
