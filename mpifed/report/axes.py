"""Logarithmic axes with zero (a floor line for y, an x axis from 0), and with labels that do not overlap."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mpifed.core.typing import Array

BELOW = 0.08  # the floor lies below the smallest positive value by this fraction of the decades above it
MIN_DECADES = 0.4  # minimum of that distance, in decades
ROOM = 16  # points from the middle of 0 to the middle of the next label
FLOOR = "floor"  # gid of the arrows on the floor
BASE = "floor line"  # gid of the line


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
