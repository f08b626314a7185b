"""Data of curves: columns of runs, and the mean and range of runs that differ in the seed alone."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import UserError, raise_unknown
from mpifed.core.typing import Array
from mpifed.report import metrics, palette
from mpifed.report.metrics import DERIVED, available_metrics, metric_title, metric_unit
from mpifed.report.names import AS_PRINTED, Names
from mpifed.report.settings import RunGroups, group_label, group_runs, run_settings, select_runs
from mpifed.report.style import PictureOptions
from mpifed.report.tables import choose_unit
from mpifed.results.result import RunRecord

ALIASES = {"rounds": "round", "seconds": "elapsed_seconds", "tct": "elapsed_seconds"}
TASK = ("data", "problem", "objective", "dtype")  # runs that agree in these have the same optimum
POINTS = 400  # maximum points of a curve that stands for several runs
MANY = 10  # number of runs from which on a band leaves out the outermost
ROUNDING = 1e-9  # values below this fraction of the largest may be 0 except for rounding
BANDS = ("none", "sd", "minmax")
FEW = 3  # maximum curves with bands by default
DECADES = 2  # positive values over more decades are drawn on a logarithmic axis

Curve = tuple[Array, Array]


class Picture(NamedTuple):
    """The runs that a picture shows in groups, the label and style of each, and words about unfinished runs."""

    results: Sequence[RunRecord]
    groups: RunGroups
    labels: list[str]
    looks: list[dict[str, Any]]
    note: str


class Series(NamedTuple):
    """A column: its recorded name, the title of its axis, and its values in every run, None where one lacks it."""

    name: str
    title: str
    values: list[Array | None]


class CurveBand(NamedTuple):
    """A curve that stands for several runs: their mean, and the range from ``low`` to ``high`` that they cover."""

    x: Array
    middle: Array
    low: Array
    high: Array


def arrange_runs(results: Sequence[RunRecord], wishes: PictureOptions) -> Picture:
    """Return the runs of a picture as ``wishes`` ask for them. UserError where no run is left, or a name is unknown."""
    results, note = select_runs(results, wishes.get("everything", False))
    groups = group_runs(results, rename=wishes.get("rename") or ())
    labels = [group_label(group, groups) for group in groups.groups]
    looks = palette.curve_styles([group.settings.get("algorithm", "") for group in groups.groups])
    return Picture(results, groups, labels, looks, note)


def require_drawable(found: bool, otherwise: str) -> None:
    """Raise UserError where there is nothing to draw, with the reason."""
    if not found:
        raise UserError(f"there is nothing to draw: {otherwise}")


def run_column(result: RunRecord, name: str) -> Array | None:
    """Return a column of /rounds, or bytes = up + down; None where the run lacks it."""
    if name == "bytes":
        directions = [run_column(result, part) for part in ("bytes_up", "bytes_down")]
        return None if directions[0] is None or directions[1] is None else directions[0] + directions[1]
    return np.asarray(result.rounds[name], float) if name in result.rounds else None


def collect_series(results: Sequence[RunRecord], name: str) -> tuple[str, list[Array | None]]:
    """Return the recorded name of a column, or of the error, and its values in every run.

    UserError for a name that no run has.
    """
    if name == "error":
        return error_columns(results)
    name = ALIASES.get(name, name)
    columns = [run_column(result, name) for result in results]
    if all(values is None for values in columns):
        names = [other for other in available_metrics(results) if other not in DERIVED]
        raise_unknown("column", name, ["round", *names, "bytes", "error", *ALIASES])
    return name, columns


def task_settings(result: RunRecord) -> tuple[tuple[str, str], ...]:
    """Return the settings that determine f, with the seed of the run unless data have a separate one."""
    values = run_settings(result)
    tables = TASK if "data.seed" in values else (*TASK, "seed")
    return tuple((key, values[key]) for key in sorted(values) if key.split(".")[0] in tables)


def default_metric(results: Sequence[RunRecord], groups: RunGroups) -> str:
    """Return the default column: error where f differs between seeds and methods are compared, else objective.

    f differs where the runs of a group have not the same objective and gradient in round 0. Without an optimum, the
    error of a group alone would compare its runs with themselves.
    """
    has_optimum = all("objective_gap" in result.rounds for result in results)
    if "objective" not in available_metrics(results) or not (has_optimum or len(groups.groups) > 1):
        return "objective"
    return "error" if any(starts_differ(group.runs) for group in groups.groups) else "objective"


def starts_differ(runs: Sequence[RunRecord]) -> bool:
    """Return whether runs of several seeds begin with another f or ∇f."""
    if len({task_settings(run) for run in runs}) == 1:
        return False
    for name in ("objective", "grad_norm_sq"):
        first = [float(run.rounds[name][0]) for run in runs if len(run.rounds.get(name, ()))]
        if first and max(first) - min(first) > ROUNDING * max(map(abs, first)):
            return True
    return False


def error_columns(results: Sequence[RunRecord]) -> tuple[str, list[Array | None]]:
    """Return objective_gap if every run has it, else the objective minus its minimum over all runs on the same data."""
    gaps = [run_column(result, "objective_gap") for result in results]
    if all(gap is not None for gap in gaps):
        return "objective_gap", gaps
    columns = collect_series(results, "objective")[1]
    tasks = [task_settings(result) for result in results]
    minimum: dict[Any, float] = {}
    for data, values in zip(tasks, columns, strict=True):
        if values is not None:
            minimum[data] = float(np.fmin.reduce(values, initial=minimum.get(data, np.inf)))
    pairs = zip(tasks, columns, strict=True)
    with np.errstate(over="ignore", invalid="ignore"):  # runs that diverged
        return "error", [None if values is None else values - minimum[data] for data, values in pairs]


def axis_title(name: str, unit: str, names: Names = AS_PRINTED, results: Sequence[RunRecord] = ()) -> str:
    new = names.of(metric_title(name, results=results), name)
    return f"{new} ({unit})" if unit else new


def choose_axis_scale(
    name: str, columns: Iterable[Array | None], results: Sequence[RunRecord], names: Names
) -> tuple[float, str]:
    """Return the divisor for the values of a column, and the title of their axis with the resulting unit."""
    largest = max((float(np.nanmax(values, initial=0.0)) for values in columns if values is not None), default=0.0)
    factor, unit_text = choose_unit(metric_unit(name, results), largest)
    return factor, axis_title(name, unit_text, names, results)


def scale_series(picture: Picture, name: str) -> Series:
    """Return a column of the runs of a picture, or the error, in the unit of the title of its axis."""
    key, columns = collect_series(picture.results, name)
    factor, title = choose_axis_scale(key, columns, picture.results, picture.groups.names)
    return Series(key, title, [None if values is None else values / factor for values in columns])


def drawable_points(x: Array | None, y: Array | None, log_x: bool) -> Curve | None:
    """Return the points that can be drawn on these axes; None without any."""
    if x is None or y is None:
        return None
    drawable = np.isfinite(x) & np.isfinite(y) & ((x >= 0) | (not log_x))
    return (x[drawable], y[drawable]) if drawable.any() else None


def spans_decades(columns: Sequence[Array | None], zero: bool = False) -> bool:
    """Return whether an axis should be logarithmic: all values are positive, over more than two decades.

    ``zero``: ignore numbers that are 0 or negative by rounding alone.
    """
    values = np.concatenate([values[np.isfinite(values)] for values in columns if values is not None] or [np.zeros(0)])
    largest = values.max(initial=0.0)
    if zero:
        values = values[np.abs(values) > ROUNDING * largest]
    smallest = values.min(initial=largest)
    return bool(smallest > 0 and np.log10(largest) - np.log10(smallest) > DECADES)


def continues_after_end(name: str, result: RunRecord) -> bool:
    """Return whether a run's curve continues after its end: the run finished, and the column is no amount per round."""
    return result.status == "finished" and metrics.metric_info(name).span != "round"


def average_curves(curves: Sequence[Curve], hold: Sequence[bool], log: bool, kind: str = "minmax") -> CurveBand | None:
    """Return the mean of curves (geometric with ``log``) and their range; None where the x of a curve decreases.

    Between points, y or with ``log`` its logarithm is a straight line over x. After its last point a curve continues at
    that value (``hold``) or is left out. The range is the standard deviation on both sides of the mean (``kind`` sd) or
    from minimum to maximum, with ten or more runs from the 10th to the 90th percentile.
    """
    if any((np.diff(x) < 0).any() for x, _ in curves):
        return None
    grid = np.unique(np.concatenate([x for x, _ in curves]))
    # Begin where all curves have begun: a mean over fewer would jump where another one joins.
    grid = grid[grid >= max(x[0] for x, _ in curves)]
    if not len(grid):
        return None
    if len(grid) > POINTS:
        grid = grid[np.linspace(0, len(grid) - 1, POINTS).round().astype(int)]
    rows = interpolate_runs(grid, curves, hold, log)
    covered = ~np.isnan(rows).all(axis=0)
    grid, rows = grid[covered], rows[:, covered]
    mean = np.nanmean(rows, axis=0)
    if kind == "sd":
        counts = np.maximum((~np.isnan(rows)).sum(axis=0) - 1, 1)
        sd = np.sqrt(np.nansum((rows - mean) ** 2, axis=0) / counts)
        low, high = mean - sd, mean + sd
    else:
        low, high = np.nanpercentile(rows, (10, 90) if len(curves) >= MANY else (0, 100), axis=0)
    return CurveBand(grid, *(np.exp(values) if log else values for values in (mean, low, high)))


def interpolate_runs(grid: Array, curves: Sequence[Curve], hold: Sequence[bool], log: bool) -> Array:
    """Return the heights (runs, points) of curves over a grid, with ``log`` their logarithms.

    After its last point a curve continues at that value where ``hold`` says so, and is NaN otherwise.
    """
    rows = []
    for (x, y), stays in zip(curves, hold, strict=True):
        # By default np.interp continues the last value.
        rows.append(np.interp(grid, x, np.log(y) if log else y, right=None if stays else np.nan))
    return np.array(rows)


def describe_band(counts: Sequence[int], logs: Sequence[bool], kind: str = "minmax") -> str:
    """Return a description of curves and bands of ``counts`` runs each; ``logs``: which axes are logarithmic."""
    smallest, largest = min(counts), max(counts)
    ranges = [words for words, used in (("min–max", smallest < MANY), ("10–90 %", largest >= MANY)) if used]
    range_words = {"none": "", "sd": " ± standard deviation"}.get(kind, f" and {' or '.join(ranges)}")
    number = str(largest) if smallest == largest else f"{smallest}–{largest}"
    mean = "mean (geometric on logarithmic axes)" if any(logs) else "mean"
    mean = "geometric mean" if all(logs) else mean
    return f"{mean}{range_words} of {number} runs"
