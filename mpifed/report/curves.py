"""What pictures draw: columns of runs against one another, and of runs that differ in the seed their middle and range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mpifed.core.errors import unknown
from mpifed.report.groups import settings
from mpifed.report.metrics import A_ROUND, DERIVED, final, known, title
from mpifed.results.result import Result

ALIASES = {"rounds": "round", "seconds": "elapsed_seconds", "tct": "elapsed_seconds"}
WORLD = ("data", "problem", "seed", "dtype")  # runs that agree in these settings have the same optimum
POINTS = 400  # most points of a curve that stands for several runs
MANY = 10  # with so many runs a band leaves out the outermost
DECADES = 2  # a wider span of positive values is drawn on a logarithmic axis

Array = NDArray[Any]
Curve = tuple[Array, Array]


class Band(NamedTuple):
    """Several runs as one curve: its middle and, between ``low`` and ``high``, where they lie."""

    x: Array
    middle: Array
    low: Array
    high: Array


def column(result: Result, name: str) -> Array | None:
    """A column of the rounds, or bytes = up + down; None where the run has none."""
    if name == "bytes":
        parts = [column(result, part) for part in ("bytes_up", "bytes_down")]
        return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
    return np.asarray(result.rounds[name], float) if name in result.rounds else None


def series(results: Sequence[Result], name: str) -> tuple[str, list[Array | None]]:
    """A column of every run under the name that it is recorded by; error: see ``errors``.

    Raises UserError for a name that no run has.
    """
    if name == "error":
        return errors(results)
    name = ALIASES.get(name, name)
    columns = [column(result, name) for result in results]
    if all(values is None for values in columns):
        names = [other for other in known(results) if other not in DERIVED]
        unknown("column", name, ["round", *names, "bytes", "error", *ALIASES])
    return name, columns


def errors(results: Sequence[Result]) -> tuple[str, list[Array | None]]:
    """objective_gap where every run knows the optimum; else the objective less the least of all runs on the same data."""
    gaps = [column(result, "objective_gap") for result in results]
    if all(gap is not None for gap in gaps):
        return "objective_gap", gaps
    columns = series(results, "objective")[1]
    worlds = [
        tuple(sorted((key, value) for key, value in settings(result).items() if key.split(".")[0] in WORLD))
        for result in results
    ]
    least: dict[Any, float] = {}
    for world, values in zip(worlds, columns, strict=True):
        if values is not None:
            least[world] = float(np.fmin.reduce(values, initial=least.get(world, np.inf)))
    with np.errstate(over="ignore", invalid="ignore"):  # of runs that diverged
        return "error", [
            None if values is None else values - least[world] for world, values in zip(worlds, columns, strict=True)
        ]


def axis_title(name: str, unit: str) -> str:
    """What an axis is called."""
    return "f − least f found" if name == "error" else title(name, unit)


def last(results: Sequence[Result], name: str) -> tuple[str, list[float]]:
    """What every run came to in a column; nan where it has none."""
    if name in known(results):
        return name, [final(result, name) for result in results]
    name, columns = series(results, name)
    known_values = [np.zeros(0) if values is None else values[np.isfinite(values)] for values in columns]
    return name, [float(values[-1]) if len(values) else float("nan") for values in known_values]


def pair(x: Array | None, y: Array | None, log_x: bool, log_y: bool) -> Curve | None:
    """The points that can be drawn; None where there are none."""
    if x is None or y is None:
        return None
    there = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not log_x)) & ((y > 0) | (not log_y))
    return (x[there], y[there]) if there.any() else None


def logarithmic(columns: Sequence[Array | None], zero: bool = False) -> bool:
    """Whether values want a logarithmic axis: all positive (``zero``: or 0) over more than two decades."""
    values = np.concatenate([values[np.isfinite(values)] for values in columns if values is not None] or [np.zeros(0)])
    positive = values[values > 0]
    if not len(positive) or (values < 0).any() or (not zero and len(positive) < len(values)):
        return False
    return bool(np.log10(positive.max()) - np.log10(positive.min()) > DECADES)


def held(name: str, result: Result) -> bool:
    """Whether a run keeps its last value after its end: it finished, and the value is no part of a round."""
    return result.status == "finished" and name not in A_ROUND


def band(curves: Sequence[Curve], hold: Sequence[bool], log: bool) -> Band | None:
    """The mean of curves (geometric where ``log``) with their range; None where an x goes back.

    Between its points a curve is a straight line on the axes as they are drawn; after its last one it stays where it is
    (``hold``) or is left out. The range is from least to greatest, of ten runs and more from the 10th percentile to the
    90th.
    """
    if any((np.diff(x) < 0).any() for x, _ in curves):
        return None
    grid = np.unique(np.concatenate([x for x, _ in curves]))
    grid = grid[grid >= max(x[0] for x, _ in curves)]
    if not len(grid):
        return None
    if len(grid) > POINTS:
        grid = grid[np.linspace(0, len(grid) - 1, POINTS).round().astype(int)]
    rows = np.array(
        [
            np.interp(grid, x, np.log(y) if log else y, right=None if stays else np.nan)
            for (x, y), stays in zip(curves, hold, strict=True)
        ]
    )
    there = ~np.isnan(rows).all(axis=0)
    grid, rows = grid[there], rows[:, there]
    ends = (10, 90) if len(curves) >= MANY else (0, 100)
    low, high = np.nanpercentile(rows, ends, axis=0)
    found = (np.nanmean(rows, axis=0), low, high)
    return Band(grid, *(np.exp(values) if log else values for values in found))


def spread(counts: Sequence[int], logs: Sequence[bool]) -> str:
    """What the curves and bands of so many runs each are, on axes that are logarithmic or not."""
    few, most = min(counts), max(counts)
    ends = "10–90 %" if few >= MANY else "min–max" if most < MANY else "min–max or 10–90 %"
    number = str(most) if few == most else f"{few}–{most}"
    mean = "geometric mean" if all(logs) else "mean (geometric on logarithmic axes)" if any(logs) else "mean"
    return f"{mean} and {ends} of {number} runs"
