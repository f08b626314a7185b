"""A compressor of a user's own: its messages, its bits, and whether its errors contradict its δ or ω."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from mpifed.core.arrays import is_number, is_numeric
from mpifed.core.guards import Guard, Wrong, array, returns, whole
from mpifed.core.streams import stream, streams
from mpifed.core.typing import Array

TRIALS = 64  # messages of one vector whose mean error is compared with the bound
NUMBERS = 1 << 16  # of longer vectors errors are not sampled
ROWS = array(
    lambda compressor, rows, *args: rows.shape, " for rows of shape {shape}: C(x) has the shape of x", is_numeric
)


def message(compressor: Any, result: Any, rows: Array, rngs: Any, symmetric: bool) -> Array:
    ROWS(compressor, result, rows)
    if not np.isfinite(result).all():
        raise Wrong("returns numbers that are not finite for rows that are")
    return result.astype(rows.dtype, copy=False)


def bound(fits: Callable[[float], bool], words: str, limit: str, most: Callable[[float], float]) -> Guard:
    """A form: None, or a number, which the errors of random vectors must not contradict."""
    number = returns(lambda result, *args: is_number(result) and bool(np.isfinite(result)) and fits(result), words)

    def guard(compressor: Any, result: Any, N: int, symmetric: bool = False) -> float | None:
        if result is None:
            return None
        number(compressor, result)
        worst = error(compressor, N) if not symmetric and N <= NUMBERS else 0.0
        if worst > most(result):
            far = f"E‖C(x) − x‖² is {worst:.3g}·‖x‖² for a random x: it must be at most {limit}"
            raise Wrong(f"returns {result:g}, and {far}")
        return float(result)

    return guard


@cache
def error(compressor: Any, N: int) -> float:
    """What E‖C(x) − x‖²/‖x‖² is at least for one vector with entries of many sizes: the mean less four deviations."""
    # Entries of many sizes: with those of a normal distribution a rule that keeps random entries looks as good as one
    # that keeps the largest. Four deviations less than the mean: a rule with the very δ that it states is refused once
    # in 30,000 checks.
    rng = stream(0, "compression", N)
    x = rng.standard_normal(N) * np.exp(2 * rng.standard_normal(N))
    rows = np.broadcast_to(x, (TRIALS, N)).copy()
    C = compressor.message(rows, lambda: streams(0, "compression", np.arange(TRIALS), N), False)
    errors = np.vecdot(C - x, C - x) / np.vecdot(x, x)
    return float(errors.mean() - 4 * errors.std() / np.sqrt(TRIALS) - 1e-9)


GUARDS: dict[str, dict[str, Guard]] = {
    "compressors": {
        "message": message,
        "bits": whole(0, " for a message of {0} numbers: it must be a whole number, at least 0"),
        "delta": bound(
            lambda delta: 0 < delta <= 1,
            ": δ is a number above 0 and at most 1, or None",
            "1 − δ",
            lambda delta: 1 - delta,
        ),
        "omega": bound(
            lambda omega: omega >= 0,
            ": ω is a number, at least 0, or None",
            "ω",
            lambda omega: omega,
        ),
    }
}
