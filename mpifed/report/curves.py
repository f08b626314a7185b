"""What pictures draw: columns of runs, and the mean and range of runs that differ in the seed alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import unknown
from mpifed.core.typing import Array
from mpifed.report import metrics
from mpifed.report.groups import settings
from mpifed.report.metrics import DERIVED, available, final, title
from mpifed.results.result import Result

ALIASES = {"rounds": "round", "seconds": "elapsed_seconds", "tct": "elapsed_seconds"}
TASK = ("data", "problem", "seed", "dtype")  # runs that agree in these settings have the same optimum
POINTS = 400  # most points of a curve that stands for several runs
MANY = 10  # runs from which on a band leaves out the outermost
DECADES = 2  # positive values over more decades are drawn on a logarithmic axis

Curve = tuple[Array, Array]


class Band(NamedTuple):
    """Several runs as one curve: their mean, and the range from ``low`` to ``high`` that they cover."""

    x: Array
    middle: Array
    low: Array
    high: Array


def column(result: Result, name: str) -> Array | None:
    """A column of /rounds, or bytes = up + down; None where the run lacks it."""
    if name == "bytes":
        parts = [column(result, part) for part in ("bytes_up", "bytes_down")]
        return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
    return np.asarray(result.rounds[name], float) if name in result.rounds else None


def series(results: Sequence[Result], name: str) -> tuple[str, list[Array | None]]:
    """The recorded name of a column, and its values in every run; "error": see ``errors``.

    UserError for a name that no run has.
    """
    if name == "error":
        return errors(results)
    name = ALIASES.get(name, name)
    columns = [column(result, name) for result in results]
    if all(values is None for values in columns):
        names = [other for other in available(results) if other not in DERIVED]
        unknown("column", name, ["round", *names, "bytes", "error", *ALIASES])
    return name, columns


def errors(results: Sequence[Result]) -> tuple[str, list[Array | None]]:
    """objective_gap if every run has it, else the objective minus its minimum over all runs on the same data."""
    gaps = [column(result, "objective_gap") for result in results]
    if all(gap is not None for gap in gaps):
        return "objective_gap", gaps
    columns = series(results, "objective")[1]
    tasks = [
        tuple(sorted((key, value) for key, value in settings(result).items() if key.split(".")[0] in TASK))
        for result in results
    ]
    least: dict[Any, float] = {}
    for task, values in zip(tasks, columns, strict=True):
        if values is not None:
            least[task] = float(np.fmin.reduce(values, initial=least.get(task, np.inf)))
    with np.errstate(over="ignore", invalid="ignore"):  # runs that diverged
        return "error", [
            None if values is None else values - least[task] for task, values in zip(tasks, columns, strict=True)
        ]


def axis_title(name: str, unit: str) -> str:
    """The title of an axis."""
    return "f − least f found" if name == "error" else title(name, unit)


def last(results: Sequence[Result], name: str) -> tuple[str, list[float]]:
    """The recorded name of a metric, and its final value in every run; nan where a run lacks it."""
    if name in available(results):
        return name, [final(result, name) for result in results]
    name, columns = series(results, name)
    finite = [np.zeros(0) if values is None else values[np.isfinite(values)] for values in columns]
    return name, [float(values[-1]) if len(values) else float("nan") for values in finite]


def pair(x: Array | None, y: Array | None, log_x: bool, log_y: bool) -> Curve | None:
    """The points that can be drawn on these axes; None without any."""
    if x is None or y is None:
        return None
    there = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not log_x)) & ((y > 0) | (not log_y))
    return (x[there], y[there]) if there.any() else None


def logarithmic(columns: Sequence[Array | None], zero: bool = False) -> bool:
    """Whether an axis should be logarithmic: all values are positive (``zero``: or 0), over more than two decades."""
    values = np.concatenate([values[np.isfinite(values)] for values in columns if values is not None] or [np.zeros(0)])
    positive = values[values > 0]
    if not len(positive) or (values < 0).any() or (not zero and len(positive) < len(values)):
        return False
    return bool(np.log10(positive.max()) - np.log10(positive.min()) > DECADES)


def held(name: str, result: Result) -> bool:
    """Whether a run's curve continues after its end: the run finished, and the column is not an amount of one round."""
    return result.status == "finished" and metrics.column(name).span != "round"


def band(curves: Sequence[Curve], hold: Sequence[bool], log: bool) -> Band | None:
    """The mean of curves (geometric with ``log``) and their range; None where the x of a curve decreases.

    Between its points a curve is a straight line on the axes as they are drawn. After its last point it continues at
    that value (``hold``) or is left out. The range is from minimum to maximum, with ten or more runs from the 10th to
    the 90th percentile.
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
    """What curves and bands show: ``counts`` runs each, on axes that are logarithmic or not (``logs``)."""
    few, most = min(counts), max(counts)
    ranges = ["min–max"] * (few < MANY) + ["10–90 %"] * (most >= MANY)
    number = str(most) if few == most else f"{few}–{most}"
    if all(logs):
        mean = "geometric mean"
    elif any(logs):
        mean = "mean (geometric on logarithmic axes)"
    else:
        mean = "mean"
    return f"{mean} and {' or '.join(ranges)} of {number} runs"
