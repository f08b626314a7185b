"""What pictures draw: columns of runs, and the mean and range of runs that differ in the seed alone."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import unknown
from mpifed.core.typing import Array
from mpifed.report import metrics
from mpifed.report.metrics import DERIVED, available, scale, title, unit
from mpifed.report.names import AS_PRINTED, Names
from mpifed.report.settings import Study, settings
from mpifed.results.result import Result

ALIASES = {"rounds": "round", "seconds": "elapsed_seconds", "tct": "elapsed_seconds"}
TASK = ("data", "problem", "objective", "dtype")  # runs that agree in these have the same optimum
POINTS = 400  # most points of a curve that stands for several runs
MANY = 10  # runs from which on a band leaves out the outermost
ROUNDING = 1e-9  # what is smaller than this share of the largest value may be 0 but for rounding
BANDS = ("none", "sd", "minmax")
FEW = 3  # most curves that have bands unless they are asked for
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


def task(result: Result) -> tuple[tuple[str, str], ...]:
    """The settings that fix f; the seed of the run among them unless data have one of their own."""
    own = settings(result)
    tables = TASK if "data.seed" in own else (*TASK, "seed")
    return tuple((key, own[key]) for key in sorted(own) if key.split(".")[0] in tables)


def usual(results: Sequence[Result], groups: Study) -> str:
    """The column to draw where none is named: error where f differs between seeds and methods are compared.

    f differs where the runs of a group have not the same objective and gradient in round 0. Without an optimum, the
    error of a group alone would compare its runs with themselves.
    """
    known = all("objective_gap" in result.rounds for result in results)
    if "objective" not in available(results) or not (known or len(groups.groups) > 1):
        return "objective"
    return "error" if any(differ(group.runs) for group in groups.groups) else "objective"


def differ(runs: Sequence[Result]) -> bool:
    """Whether runs of several seeds begin with another f or ∇f."""
    if len({task(run) for run in runs}) == 1:
        return False
    for name in ("objective", "grad_norm_sq"):
        first = [float(run.rounds[name][0]) for run in runs if len(run.rounds.get(name, ()))]
        if first and max(first) - min(first) > ROUNDING * max(map(abs, first)):
            return True
    return False


def errors(results: Sequence[Result]) -> tuple[str, list[Array | None]]:
    """objective_gap if every run has it, else the objective minus its minimum over all runs on the same data."""
    gaps = [column(result, "objective_gap") for result in results]
    if all(gap is not None for gap in gaps):
        return "objective_gap", gaps
    columns = series(results, "objective")[1]
    tasks = [task(result) for result in results]
    least: dict[Any, float] = {}
    for own, values in zip(tasks, columns, strict=True):
        if values is not None:
            least[own] = float(np.fmin.reduce(values, initial=least.get(own, np.inf)))
    pairs = zip(tasks, columns, strict=True)
    with np.errstate(over="ignore", invalid="ignore"):  # runs that diverged
        return "error", [None if values is None else values - least[own] for own, values in pairs]


def axis_title(name: str, unit: str, names: Names = AS_PRINTED, results: Sequence[Result] = ()) -> str:
    new = names.of(title(name, results=results), name)
    return f"{new} ({unit})" if unit else new


def scaled(name: str, columns: Iterable[Array | None], results: Sequence[Result], names: Names) -> tuple[float, str]:
    """What to divide the values of a column by, and the title of their axis with the unit that they then have."""
    largest = max((float(np.nanmax(values, initial=0.0)) for values in columns if values is not None), default=0.0)
    factor, of = scale(unit(name, results), largest)
    return factor, axis_title(name, of, names, results)


def pair(x: Array | None, y: Array | None, log_x: bool) -> Curve | None:
    """The points that can be drawn on these axes; None without any."""
    if x is None or y is None:
        return None
    there = np.isfinite(x) & np.isfinite(y) & ((x >= 0) | (not log_x))
    return (x[there], y[there]) if there.any() else None


def logarithmic(columns: Sequence[Array | None], zero: bool = False) -> bool:
    """Whether an axis should be logarithmic: all values are positive, over more than two decades.

    ``zero``: numbers that rounding alone makes 0 or negative do not matter.
    """
    values = np.concatenate([values[np.isfinite(values)] for values in columns if values is not None] or [np.zeros(0)])
    most = values.max(initial=0.0)
    if zero:
        values = values[np.abs(values) > ROUNDING * most]
    least = values.min(initial=most)
    return bool(least > 0 and np.log10(most) - np.log10(least) > DECADES)


def held(name: str, result: Result) -> bool:
    """Whether a run's curve continues after its end: the run finished, and the column is not an amount of one round."""
    return result.status == "finished" and metrics.column(name).span != "round"


def band(curves: Sequence[Curve], hold: Sequence[bool], log: bool, kind: str = "minmax") -> Band | None:
    """The mean of curves (geometric with ``log``) and their range; None where the x of a curve decreases.

    Between points, y or with ``log`` its logarithm is a straight line over x. After its last point a curve continues at
    that value (``hold``) or is left out. The range is the standard deviation on both sides of the mean (``kind`` sd) or
    from minimum to maximum, with ten or more runs from the 10th to the 90th percentile.
    """
    if any((np.diff(x) < 0).any() for x, _ in curves):
        return None
    grid = np.unique(np.concatenate([x for x, _ in curves]))
    # From where all curves have begun: a mean over fewer would jump where another one joins.
    grid = grid[grid >= max(x[0] for x, _ in curves)]
    if not len(grid):
        return None
    if len(grid) > POINTS:
        grid = grid[np.linspace(0, len(grid) - 1, POINTS).round().astype(int)]
    heights = [
        # np.interp holds the last value where it is not told otherwise.
        (x, np.log(y) if log else y, None if stays else np.nan)
        for (x, y), stays in zip(curves, hold, strict=True)
    ]
    rows = np.array([np.interp(grid, x, y, right=after) for x, y, after in heights])
    there = ~np.isnan(rows).all(axis=0)
    grid, rows = grid[there], rows[:, there]
    mean = np.nanmean(rows, axis=0)
    if kind == "sd":
        counts = np.maximum((~np.isnan(rows)).sum(axis=0) - 1, 1)
        sd = np.sqrt(np.nansum((rows - mean) ** 2, axis=0) / counts)
        low, high = mean - sd, mean + sd
    else:
        low, high = np.nanpercentile(rows, (10, 90) if len(curves) >= MANY else (0, 100), axis=0)
    return Band(grid, *(np.exp(values) if log else values for values in (mean, low, high)))


def spread(counts: Sequence[int], logs: Sequence[bool], kind: str = "minmax") -> str:
    """What curves and bands show: ``counts`` runs each, on axes that are logarithmic or not (``logs``)."""
    few, most = min(counts), max(counts)
    ranges = [words for words, there in (("min–max", few < MANY), ("10–90 %", most >= MANY)) if there]
    shown = {"none": "", "sd": " ± standard deviation"}.get(kind, f" and {' or '.join(ranges)}")
    number = str(most) if few == most else f"{few}–{most}"
    mean = "mean (geometric on logarithmic axes)" if any(logs) else "mean"
    mean = "geometric mean" if all(logs) else mean
    return f"{mean}{shown} of {number} runs"
