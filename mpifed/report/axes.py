"""Logarithmic axes that also show zero: a floor line for y, and an x axis that begins at 0."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from mpifed.core.typing import Array

BELOW = 0.08  # the floor lies below the least positive value by this share of the decades above it
LEAST = 0.4  # decades, at least
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
        axis.xaxis.set_major_formatter(lambda value, index: "" if 0 < value < least else usual(value, index))
        axis.set_xlim(left=0 if (values < 0).sum() == 0 else None)
    else:
        axis.set_xscale("log")
