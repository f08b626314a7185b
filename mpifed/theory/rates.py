"""Rates of a run: lines through logarithms of a recorded quantity."""

import math
from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array

TAIL = (1e-2, 1e-9)  # a line is fitted to values between these shares of the first one


class FittedLine(NamedTuple):
    """A line through log10 of a quantity over the rounds: its slope per round and R², nan where there is none."""

    slope: float
    r2: float

    @property
    def factor(self) -> float:
        return float(10**self.slope)


def fit_line(rounds: Array, values: Array, high: float = TAIL[0], low: float = TAIL[1]) -> FittedLine:
    """Fit a line to log10 of values by least squares, from the first below ``high`` to the first below ``low``.

    Both are shares of the first value. Rows that are not numbers, as of rounds that were not evaluated, are left out.
    """
    values = np.asarray(values, float)
    is_finite = np.isfinite(values)
    rounds = np.asarray(rounds, float)[is_finite]
    values = values[is_finite]
    # Leave out the first rounds, in which a method may fall faster than its rate, and those in which rounding stops
    # it. The first value below an edge counts, not all: a curve that rises again would leave gaps.
    below = np.flatnonzero(values <= high * values[0]) if len(values) else np.zeros(0, int)
    if not len(below):
        return FittedLine(math.nan, math.nan)
    over = np.flatnonzero(values <= low * values[0])
    fitted = slice(below[0], over[0] if len(over) else len(values))
    x = rounds[fitted]
    y = values[fitted]
    if len(x) < 3 or not (y > 0).all():
        return FittedLine(math.nan, math.nan)
    y = np.log10(y)
    slope, shift = np.polyfit(x, y, 1)
    rest = y - (slope * x + shift)
    return FittedLine(float(slope), float(1 - rest.var() / y.var()) if y.var() else math.nan)
