"""A compressor of a user's own: its messages, its bits, and whether its errors contradict its δ or ω."""

from functools import cache
from typing import Any

import numpy as np

from mpifed.core.guards import Guard, Wrong, shown
from mpifed.core.streams import stream, streams
from mpifed.core.typing import Array

TRIALS = 64  # messages of one vector whose mean error is compared with the bound
NUMBERS = 1 << 16  # of longer vectors errors are not sampled


def message(compressor: Any, result: Any, rows: Array, rngs: Any, symmetric: bool) -> Array:
    """C of each row."""
    if not isinstance(result, np.ndarray) or result.shape != rows.shape or result.dtype.kind not in "fiub":
        raise Wrong(f"returns {shown(result)} for rows of shape {rows.shape}: C(x) has the shape of x")
    if not np.isfinite(result).all():
        raise Wrong("returns numbers that are not finite for rows that are")
    return result.astype(rows.dtype, copy=False)


def bits(compressor: Any, result: Any, N: int, itemsize: int, symmetric: bool = False) -> int:
    """The bits of a message."""
    if isinstance(result, bool) or not isinstance(result, int | np.integer) or result < 0:
        raise Wrong(f"returns {shown(result)} for a message of {N} numbers: it must be a whole number, at least 0")
    return int(result)


def delta(compressor: Any, result: Any, N: int, symmetric: bool = False) -> float | None:
    """δ, which the errors of random vectors must not contradict."""
    if result is None:
        return None
    if not is_number(result) or not 0 < result <= 1:
        raise Wrong(f"returns {shown(result)}: δ is a number above 0 and at most 1, or None")
    worst = error(compressor, N) if not symmetric and N <= NUMBERS else 0.0
    if worst > 1 - result:
        raise Wrong(
            f"returns {result:g}, and E‖C(x) − x‖² is {worst:.3g}·‖x‖² for a random x: it must be at most 1 − δ"
        )
    return float(result)


def omega(compressor: Any, result: Any, N: int, symmetric: bool = False) -> float | None:
    """ω, which the errors of random vectors must not contradict."""
    if result is None:
        return None
    if not is_number(result) or not result >= 0:
        raise Wrong(f"returns {shown(result)}: ω is a number, at least 0, or None")
    worst = error(compressor, N) if not symmetric and N <= NUMBERS else 0.0
    if worst > result:
        raise Wrong(f"returns {result:g}, and E‖C(x) − x‖² is {worst:.3g}·‖x‖² for a random x: it must be at most ω")
    return float(result)


def is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(np.isfinite(value))


@cache
def error(compressor: Any, N: int) -> float:
    """What E‖C(x) − x‖²/‖x‖² is at least for one vector with entries of many sizes: the mean less four deviations."""
    rng = stream(0, "compression", N)
    x = rng.standard_normal(N) * np.exp(2 * rng.standard_normal(N))
    rows = np.broadcast_to(x, (TRIALS, N)).copy()
    C = compressor.message(rows, lambda: streams(0, "compression", np.arange(TRIALS), N), False)
    errors = np.vecdot(C - x, C - x) / np.vecdot(x, x)
    return float(errors.mean() - 4 * errors.std() / np.sqrt(TRIALS) - 1e-9)


CHECKS: dict[str, Guard] = {"message": message, "bits": bits, "delta": delta, "omega": omega}
GUARDS = {"compressors": CHECKS}
