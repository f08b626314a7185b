"""Axes of curves: logarithmic ones with zero and with labels that do not overlap, and curves that coincide."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.report.curves import Curve

BELOW = 0.08  # the floor lies below the smallest positive value by this fraction of the decades above it
MIN_DECADES = 0.4  # minimum of that distance, in decades
ROOM = 16  # points from the middle of 0 to the middle of the next label
FLOOR = "floor"  # gid of the arrows on the floor
BASE = "floor line"  # gid of the line
NEAR = 0.005  # of the height of the axis: half the width of a line
SHARE = 0.5  # fraction of the points of a curve
ABOVE = 2  # zorder of a line without gaps; bands are below it
WIDER = 0.9  # extra width of the lowest curve, relative to the highest; markers are wider still


def floor_level(columns: Iterable[Array]) -> float | None:
    """Return the height of non-positive numbers on a logarithmic axis, below all others; None where there are none."""
    values = np.concatenate([*columns, np.zeros(0)])
    values = values[np.isfinite(values)]
    positive = np.log10(values[values > 0])
    if not len(positive) or len(positive) == len(values):
        return None
    return float(10.0 ** (positive.min() - max(MIN_DECADES, BELOW * float(np.ptp(positive)))))


def clip_to_floor(values: Array, floor: float | None) -> Array:
    """Clip non-positive values to the floor of a logarithmic axis."""
    return values if floor is None else np.where(values > 0, values, floor)


def draw_floor_arrows(axis: Any, x: Array, floor: float, colour: str) -> None:
    """Draw an arrow down for each number on the floor."""
    axis.plot(x, np.full(len(x), floor), linestyle="none", marker="v", markersize=5, color=colour, zorder=5, gid=FLOOR)


def set_y_scale(axis: Any, log: bool, floor: float | None) -> None:
    """Make the y axis linear, or logarithmic with the floor line where there is one."""
    axis.set_yscale("log" if log else "linear")
    if floor is not None:
        draw_floor_line(axis, floor)


def draw_floor_line(axis: Any, floor: float) -> None:
    """Draw the floor line, named ≤ 0, and remove the numbers of ticks near it."""
    # Numbers on the floor have no value, which ticks near it would suggest.
    formatter = axis.yaxis.get_major_formatter()
    axis.yaxis.set_major_formatter(
        lambda value, index: "" if value < floor * 10**MIN_DECADES else formatter(value, index)
    )
    axis.axhline(floor, color="#777777", linewidth=0.6, linestyle=(0, (1, 1.5)), zorder=1, gid=BASE)
    position = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    axis.annotate("≤ 0", (0, floor), (2, 1), color="#555555", fontsize=6, **position)


def set_log_x(axis: Any, columns: Iterable[Array]) -> None:
    """Make the x axis logarithmic; where values begin at 0, linear and unlabelled below the smallest positive one."""
    values = np.concatenate([*columns, np.zeros(0)])
    positive = values[values > 0]
    if len(positive) < len(values) and len(positive):
        smallest = float(positive.min())
        axis.set_xscale("symlog", linthresh=smallest, linscale=0.4, subs=range(2, 10))
        formatter = axis.xaxis.get_major_formatter()

        def label(value: float, index: int) -> str:
            """Return the label of a tick, none on the linear part or too near to 0."""
            pixels = axis.transData.transform([(0, 1), (value, 1)])[:, 0]
            near = np.ptp(pixels) * 72 < ROOM * axis.figure.dpi
            return "" if value > 0 and (value < smallest or near) else formatter(value, index)

        axis.xaxis.set_major_formatter(label)
        axis.set_xlim(left=0 if (values < 0).sum() == 0 else None)
    else:
        axis.set_xscale("log")


def label_decades(axis: Any) -> None:
    """Label the powers of ten of a logarithmic axis; where fewer than two are in view, also 1, 2 and 5 of each."""
    from matplotlib.ticker import LogLocator, NullFormatter

    low, high = np.log10(axis.get_view_interval())
    if np.floor(high) - np.ceil(low) < 1:
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(lambda value, index: f"{value:g}")
    axis.set_minor_formatter(NullFormatter())


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
