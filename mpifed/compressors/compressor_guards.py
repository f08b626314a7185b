"""Checks of users' compressors: messages, bits, and errors that contradict δ or ω."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from mpifed.core.arrays import is_number, is_numpy_array
from mpifed.core.guards import Guard, InvalidReturn, require, require_array, require_integer
from mpifed.core.streams import stream, streams
from mpifed.core.typing import Array

TRIALS = 64  # number of messages of one vector whose mean error is compared with the bound
NUMBERS = 1 << 16  # errors of longer vectors are not sampled
ROWS = require_array(
    lambda compressor, rows, *args: rows.shape, " for rows of shape {shape}: C(x) has the shape of x", is_numpy_array
)


def message(compressor: Any, result: Any, rows: Array, rngs: Any, symmetric: bool) -> Array:
    """Return messages with the type of ``rows``; raise Wrong for other shapes or numbers that are not finite."""
    ROWS(compressor, result, rows)
    if not np.isfinite(result).all():
        raise InvalidReturn("returns numbers that are not finite for rows that are")
    return result.astype(rows.dtype, copy=False)


def bound_guard(fits: Callable[[float], bool], words: str, limit: str, limit_of: Callable[[float], float]) -> Guard:
    """Return a guard of δ or ω: None, or a number that the errors of random vectors do not contradict."""
    number = require(lambda result, *args: is_number(result) and bool(np.isfinite(result)) and fits(result), words)

    def guard(compressor: Any, result: Any, N: int, symmetric: bool = False) -> float | None:
        if result is None:
            return None
        number(compressor, result)
        worst = estimate_error(compressor, N) if not symmetric and N <= NUMBERS else 0.0
        if worst > limit_of(result):
            measured = f"E‖C(x) − x‖² is {worst:.3g}·‖x‖² for a random x: it must be at most {limit}"
            raise InvalidReturn(f"returns {result:g}, and {measured}")
        return float(result)

    return guard


@cache
def estimate_error(compressor: Any, N: int) -> float:
    """Return a lower bound of E‖C(x) − x‖²/‖x‖² for a vector with entries of many sizes: mean less four deviations."""
    # Entries have many sizes because, with normally distributed ones, keeping random entries looks as good as keeping
    # the largest. With four deviations, a rule that states its exact δ is refused once in 30,000 checks.
    rng = stream(0, "compression", N)
    x = rng.standard_normal(N) * np.exp(2 * rng.standard_normal(N))
    rows = np.broadcast_to(x, (TRIALS, N)).copy()
    C = compressor.message(rows, lambda: streams(0, "compression", np.arange(TRIALS), N), False)
    errors = np.vecdot(C - x, C - x) / np.vecdot(x, x)
    return float(errors.mean() - 4 * errors.std() / np.sqrt(TRIALS) - 1e-9)


GUARDS: dict[str, dict[str, Guard]] = {
    "compressors": {
        "message": message,
        "bits": require_integer(0, " for a message of {0} numbers: it must be a whole number, at least 0"),
        "delta": bound_guard(
            lambda delta: 0 < delta <= 1,
            ": δ is a number above 0 and at most 1, or None",
            "1 − δ",
            lambda delta: 1 - delta,
        ),
        "omega": bound_guard(
            lambda omega: omega >= 0,
            ": ω is a number, at least 0, or None",
            "ω",
            lambda omega: omega,
        ),
    }
}
