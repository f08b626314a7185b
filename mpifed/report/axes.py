"""Logarithmic axes: with zero (a floor line for y, an x axis that begins at 0), and labels that do not overlap."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mpifed.core.typing import Array

BELOW = 0.08  # the floor lies below the least positive value by this share of the decades above it
LEAST = 0.4  # decades, at least
ROOM = 16  # points between the middles of 0 and of the next label
FLOOR = "floor"  # gid of what stands on the floor
BASE = "floor line"  # gid of the line itself


def floor(columns: Iterable[Array]) -> float | None:
    """Where numbers that are not positive stand on a logarithmic axis: below all others. None where there are none."""
    values = np.concatenate([*columns, np.zeros(0)])
    values = values[np.isfinite(values)]
    positive = np.log10(values[values > 0])
    if not len(positive) or len(positive) == len(values):
        return None
    return float(10.0 ** (positive.min() - max(LEAST, BELOW * float(np.ptp(positive)))))


def raised(values: Array, floor: float | None) -> Array:
    """Values with those that are not positive on the floor."""
    return values if floor is None else np.where(values > 0, values, floor)


def stand(axis: Any, x: Array, floor: float, colour: str) -> None:
    """Draw an arrow down for each number that stands on the floor."""
    axis.plot(x, np.full(len(x), floor), linestyle="none", marker="v", markersize=5, color=colour, zorder=5, gid=FLOOR)


def base(axis: Any, floor: float) -> None:
    """Draw the floor line, named ≤ 0; ticks near it have no numbers."""
    # Ticks near the floor would give numbers to what stands there, which has none.
    usual = axis.yaxis.get_major_formatter()
    axis.yaxis.set_major_formatter(lambda value, index: "" if value < floor * 10**LEAST else usual(value, index))
    axis.axhline(floor, color="#777777", linewidth=0.6, linestyle=(0, (1, 1.5)), zorder=1, gid=BASE)
    places = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    axis.annotate("≤ 0", (0, floor), (2, 1), color="#555555", fontsize=6, **places)


def along(axis: Any, columns: Iterable[Array]) -> None:
    """Make the x axis logarithmic; where values begin at 0, linear and without labels up to the least positive one."""
    values = np.concatenate([*columns, np.zeros(0)])
    positive = values[values > 0]
    if len(positive) < len(values) and len(positive):
        least = float(positive.min())
        axis.set_xscale("symlog", linthresh=least, linscale=0.4, subs=range(2, 10))
        usual = axis.xaxis.get_major_formatter()

        def label(value: float, index: int) -> str:
            """None for a tick on the linear part, nor for one whose label would lie on that of 0."""
            pixels = axis.transData.transform([(0, 1), (value, 1)])[:, 0]
            near = np.ptp(pixels) * 72 < ROOM * axis.figure.dpi
            return "" if value > 0 and (value < least or near) else usual(value, index)

        axis.xaxis.set_major_formatter(label)
        axis.set_xlim(left=0 if (values < 0).sum() == 0 else None)
    else:
        axis.set_xscale("log")


def decades(axle: Any) -> None:
    """Label the powers of ten of a logarithmic axis; where fewer than two are in view, 1, 2 and 5 of each as well."""
    from matplotlib.ticker import LogLocator, NullFormatter

    least, most = np.log10(axle.get_view_interval())
    if np.floor(most) - np.ceil(least) < 1:
        axle.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axle.set_major_formatter(lambda value, index: f"{value:g}")
    axle.set_minor_formatter(NullFormatter())
