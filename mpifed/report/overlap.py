"""Curves that coincide: which they are, and how the lower ones stay visible."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.report.curves import Curve

NEAR = 0.005  # of the height of the axis: half the width of a line
SHARE = 0.5  # fraction of the points of a curve
ABOVE = 2  # zorder of a line without gaps; bands are below it
WIDER = 0.9  # extra width of the lowest curve, relative to the highest; markers are wider still


class Pile(NamedTuple):
    """A pile of curves that coincide with a curve: their number with it, and how many lie below and above it."""

    size: int = 1
    below: int = 0
    above: int = 0

    def width(self, usual: float) -> float:
        return usual * (1 + WIDER * self.above / max(self.size - 1, 1))


def find_piles(curves: Sequence[Curve | None], log: bool, height: Sequence[float]) -> list[Pile]:
    """Return the pile of each curve on an axis, logarithmic or not; ``height`` orders curves from the lowest."""
    flat = [None if curve is None else to_axis(curve, log) for curve in curves]
    values = np.concatenate([y for _, y in filter(None, flat)] or [np.zeros(1)])
    near = NEAR * float(np.ptp(values[np.isfinite(values)])) if np.isfinite(values).any() else 0.0
    result = []
    for k, curve in enumerate(flat):
        others = [j for j, other in enumerate(flat) if j != k and coincide(curve, other, near)]
        below = sum((height[j], j) < (height[k], k) for j in others)
        result.append(Pile(len(others) + 1, below, len(others) - below))
    return result


def to_axis(curve: Curve, log: bool) -> Curve | None:
    """Return a curve in the coordinates of the axis; None where x goes back, because it has no order."""
    x, y = curve
    if not len(x) or (np.diff(x) < 0).any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return x, np.log10(y) if log else y


def coincide(a: Curve | None, b: Curve | None, near: float) -> bool:
    """Return whether one of two curves lies within ``near`` of the other at half of its points or more."""
    return a is not None and b is not None and (max(fraction_near(a, b, near), fraction_near(b, a, near)) >= SHARE)


def fraction_near(a: Curve, b: Curve, near: float) -> float:
    """Return the fraction of the points of ``a`` that lie on ``b``."""
    # Beyond its ends np.interp continues a curve at a constant value, on which another may lie by chance.
    inside = (a[0] >= b[0][0]) & (a[0] <= b[0][-1])
    with np.errstate(invalid="ignore"):
        close: Array = np.abs(a[1] - np.interp(a[0], *b)) <= near
    return float(np.mean(inside & close))
