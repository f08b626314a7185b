"""`mpifed plot`: columns of the rounds against one another, and a page of them.

The functions here, in boxplot and in timeline take results and return a matplotlib Figure, which style.save writes.
Runs that differ in the seed alone are one curve: their mean (geometric on a logarithmic axis), on a band from minimum
to maximum, with ten or more runs from the 10th to the 90th percentile. Curves are named by the settings that differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import UserError, unknown
from mpifed.core.typing import Array
from mpifed.report.curves import axis_title, band, held, logarithmic, pair, series, spread
from mpifed.report.groups import Study, label, study
from mpifed.report.metrics import scale, unit
from mpifed.report.style import DOUBLE, SINGLE, above, canvas, drawing, folded, headed, look, paper, text
from mpifed.results.result import Result

LOGS = ("x", "y", "xy", "none")
SIDE = 3  # most panels side by side
MARKED = 8  # markers of a long curve


def lines(
    results: Sequence[Result],
    x: str = "round",
    y: Sequence[str] = ("objective",),
    log: str | None = None,
    width: float | None = None,
    title: str | None = None,
) -> Any:
    """Columns against a column, one panel for each of ``y``.

    A name is a recorded column, bytes (up and down), seconds (elapsed_seconds) or error: the objective minus the
    optimum or, where that is unknown, minus the least objective found on the same data. ``log`` names the logarithmic
    axes: x, y, xy or none; None: y where its values are positive over more than two decades. UserError for a column
    that no run has, and where there is nothing to draw.
    """
    width = paper(width, SINGLE if len(y) == 1 else DOUBLE)
    columns = min(len(y), SIDE) if width > 1.5 * SINGLE else 1
    return panels(results, [(x, name) for name in y], columns, log, width, title)


def page(
    results: Sequence[Result], log: str | None = None, width: float | None = None, title: str | None = None
) -> Any:
    """A study on one page: objective by round; error by exchanges, bytes and seconds; accuracy by round and seconds.

    Where the optimum is unknown, ‖∇f‖² stands in for the error. Without an accuracy its panels are absent.
    """
    gap = any("objective_gap" in result.rounds for result in results)
    error = "error" if gap or not any("grad_norm_sq" in result.rounds for result in results) else "grad_norm_sq"
    pairs = [("round", "objective"), ("exchanges", error), ("bytes", error), ("seconds", error)]
    if any("accuracy" in result.rounds for result in results):
        pairs += [("round", "accuracy"), ("seconds", "accuracy")]
    return panels(results, pairs, 2, log, paper(width, DOUBLE), title)


class Scale(NamedTuple):
    """A column and the kind of axis that it is drawn on."""

    name: str
    log: bool


def panels(
    results: Sequence[Result],
    pairs: Sequence[tuple[str, str]],
    columns: int,
    log: str | None,
    width: float,
    title: str | None,
) -> Any:
    """A figure of curves, one panel for each (x, y)."""
    if log is not None and log not in LOGS:
        unknown("axis for log", log, LOGS)
    groups = study(results)
    counts = [len(group.runs) for group in groups.groups]
    labels, across, deep = folded([label(group, groups) for group in groups.groups], width)
    logs = [log_y(results, name, log) for _, name in pairs]
    heading = headed(width, title, spread(counts, logs) if max(counts) > 1 else None)
    with drawing() as matplotlib:
        figure, axes = canvas(matplotlib, width, -(-len(pairs) // columns), columns, heading, deep * (len(labels) > 1))
        for axis in axes.flat[len(pairs) :]:
            axis.remove()
        for axis, (x, y), logarithm in zip(axes.flat, pairs, logs, strict=False):
            draw(axis, results, groups, Scale(x, "x" in (log or "")), Scale(y, logarithm))
        handles = [matplotlib.lines.Line2D([], [], **look(index)) for index in range(len(labels))]
        above(figure, handles, labels, across, heading)
    return figure


def sparse(x: Array, number: int) -> list[int]:
    """Indices of the points with a marker: all of a few; else MARKED along x, shifted from those of other curves."""
    if len(x) <= MARKED + 4:
        return list(range(len(x)))
    wanted = x[0] + (x[-1] - x[0]) * (np.arange(MARKED) + (number % 5) / 5) / MARKED
    return sorted(set(np.abs(x[:, None] - wanted).argmin(axis=0).tolist()))


def log_y(results: Sequence[Result], name: str, log: str | None) -> bool:
    """Whether the axis of a column is logarithmic."""
    if log is not None:
        return "y" in log
    return logarithmic(series(results, name)[1], zero=name == "error")


def draw(axis: Any, results: Sequence[Result], groups: Study, x: Scale, y: Scale) -> None:
    """Draw the curves of one panel, one for each group."""
    (x_name, xs), (y_name, ys) = series(results, x.name), series(results, y.name)
    factors = [
        entitle(axle, name, values, results)
        for axle, name, values in ((axis.xaxis, x_name, xs), (axis.yaxis, y_name, ys))
    ]
    index = {id(result): k for k, result in enumerate(results)}
    empty = True
    for number, group in enumerate(groups.groups):
        curves, hold = [], []
        for k in (index[id(run)] for run in group.runs):
            points = pair(xs[k], ys[k], x.log, y.log)
            if points is not None:
                curves.append((points[0] / factors[0], points[1] / factors[1]))
                hold.append(held(y_name, results[k]))
        empty &= not curves
        mean = band(curves, hold, y.log) if len(curves) > 1 else None
        if mean is not None:
            axis.fill_between(mean.x, mean.low, mean.high, color=look(number)["color"], alpha=0.18, linewidth=0)
            curves = [(mean.x, mean.middle)]
        for a, b in curves:
            axis.plot(a, b, **look(number), markevery=sparse(np.log(a) if x.log else a, number))
    if empty:
        shown = " that a logarithmic axis can show" if x.log or y.log else ""
        raise UserError(f"there is nothing to draw: no run has numbers of both {x_name} and {y_name}{shown}")
    axis.set_xscale("log" if x.log else "linear")
    axis.set_yscale("log" if y.log else "linear")


def entitle(axle: Any, name: str, columns: Sequence[Array | None], results: Sequence[Result]) -> float:
    """Write the title of an axis; what its values are to be divided by."""
    largest = max((float(np.nanmax(column, initial=0.0)) for column in columns if column is not None), default=0.0)
    factor, of = scale(unit(name, results) if name != "error" else "1", largest)
    axle.set_label_text(text(axis_title(name, of)))
    return factor
