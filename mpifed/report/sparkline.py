"""A curve in one line of text."""

import numpy as np

from mpifed.core.typing import Array

BLOCKS = "▁▂▃▄▅▆▇█"
DECADES = 100.0  # largest value : least value from which on the scale is logarithmic


def sparkline(values: Array, width: int = 40) -> tuple[str, bool]:
    """At most ``width`` blocks whose heights follow the values, from the first to the last, and whether in logarithms.

    Values that are not finite are left out. No block where fewer than two values are left, or where they are equal.
    """
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if len(values) < 2 or values.min() == values.max():
        return "", False
    logarithmic = float(values.max()) >= DECADES * float(values.min()) > 0
    if len(values) > width:
        values = values[np.linspace(0, len(values) - 1, width).round().astype(int)]
    heights = np.log(values) if logarithmic else values
    low, high = float(heights.min()), float(heights.max())
    if not low < high:
        return "", False
    steps = ((heights / 2 - low / 2) / (high / 2 - low / 2) * len(BLOCKS)).astype(int)  # halves: no overflow
    return "".join(BLOCKS[min(step, len(BLOCKS) - 1)] for step in steps), logarithmic


def gaps(values: Array) -> Array | None:
    """How far values are above their least; None where most of them can be told apart on a linear scale.

    Gaps that rounding decides are as large as rounding makes them.
    """
    values = np.asarray(values, float)
    values = values[np.isfinite(values)]
    if not len(values):
        return None
    above = values - values.min()
    rounding = 4 * np.finfo(float).eps * float(np.abs(values).max())
    if np.median(above) >= above.max() / DECADES or above.max() < DECADES * rounding:
        return None
    return np.asarray(np.maximum(above, max(rounding, above[above > 0].min())))
