"""Curves of runs: columns of the rounds against one another, and a page of them.

Every function of plot, boxes and timeline takes results and returns a matplotlib Figure; mpifed.report.style.save writes it.
Runs that differ in nothing but the seed are one curve, their mean (the geometric one on a logarithmic axis) on a band from
least to greatest, of ten runs and more from the 10th percentile to the 90th; curves are called by the settings in which
they differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

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
    """Columns against a column, a panel for each of ``y``.

    A name is a recorded column or, of the rounds, bytes (up and down), seconds (without measuring and writing), error
    (objective less the optimum or, where none is known, less the least objective found on the same data). ``log`` says
    which axes are logarithmic: x, y, xy or none; None: y where its values are positive over more than two decades. Raises
    UserError for a column that no run has, and where there is nothing to draw.
    """
    width = paper(width, SINGLE if len(y) == 1 else DOUBLE)
    columns = min(len(y), SIDE) if width > 1.5 * SINGLE else 1
    return panels(results, [(x, name) for name in y], columns, log, width, title)


def page(
    results: Sequence[Result], log: str | None = None, width: float | None = None, title: str | None = None
) -> Any:
    """A study on one page: the objective by round, the error (where an optimum is known; else ‖∇f‖²) by exchanges, bytes
    and seconds, and the accuracy, where there is one, by round and seconds."""
    gap = any("objective_gap" in result.rounds for result in results)
    error = "error" if gap or not any("grad_norm_sq" in result.rounds for result in results) else "grad_norm_sq"
    pairs = [("round", "objective"), ("exchanges", error), ("bytes", error), ("seconds", error)]
    if any("accuracy" in result.rounds for result in results):
        pairs += [("round", "accuracy"), ("seconds", "accuracy")]
    return panels(results, pairs, 2, log, paper(width, DOUBLE), title)


def panels(
    results: Sequence[Result],
    pairs: Sequence[tuple[str, str]],
    columns: int,
    log: str | None,
    width: float,
    title: str | None,
) -> Any:
    """A figure of curves, a panel for each (x, y)."""
    if log is not None and log not in LOGS:
        unknown("axis for log", log, LOGS)
    made = study(results)
    counts = [len(group.runs) for group in made.groups]
    labels, across, deep = folded([label(group, made) for group in made.groups], width)
    logs = [log_y(results, name, log) for _, name in pairs]
    heading = headed(width, title, spread(counts, logs) if max(counts) > 1 else None)
    with drawing() as matplotlib:
        figure, axes = canvas(matplotlib, width, -(-len(pairs) // columns), columns, heading, deep * (len(labels) > 1))
        for axis in axes.flat[len(pairs) :]:
            axis.remove()
        for axis, (x, y), logarithm in zip(axes.flat, pairs, logs, strict=False):
            draw(axis, results, made, x, y, "x" in (log or ""), logarithm)
        handles = [matplotlib.lines.Line2D([], [], **look(place)) for place in range(len(labels))]
        above(figure, handles, labels, across, heading)
    return figure


def sparse(x: Array, number: int) -> list[int]:
    """The points of a curve that have a marker: all of a few, else MARKED along x, apart from those of other curves."""
    if len(x) <= MARKED + 4:
        return list(range(len(x)))
    wanted = x[0] + (x[-1] - x[0]) * (np.arange(MARKED) + (number % 5) / 5) / MARKED
    return sorted(set(np.abs(x[:, None] - wanted).argmin(axis=0).tolist()))


def log_y(results: Sequence[Result], name: str, log: str | None) -> bool:
    """Whether the axis of a column is logarithmic."""
    if log is not None:
        return "y" in log
    return logarithmic(series(results, name)[1], zero=name == "error")


def draw(axis: Any, results: Sequence[Result], made: Study, x: str, y: str, log_x: bool, log_y: bool) -> None:
    """The curves of one panel."""
    (x, xs), (y, ys) = series(results, x), series(results, y)
    places = {id(result): place for place, result in enumerate(results)}
    factors = []
    for name, values, axle in ((x, xs, axis.xaxis), (y, ys, axis.yaxis)):
        largest = max((float(np.nanmax(column, initial=0.0)) for column in values if column is not None), default=0.0)
        factor, of = scale(unit(name, results) if name != "error" else "1", largest)
        axle.set_label_text(text(axis_title(name, of)))
        factors.append(factor)
    empty = True
    for number, group in enumerate(made.groups):
        found = [
            (pair(xs[place], ys[place], log_x, log_y), held(y, results[place]))
            for place in (places[id(run)] for run in group.runs)
        ]
        curves = [(a / factors[0], b / factors[1]) for curve, _ in found if curve is not None for a, b in [curve]]
        hold = [stays for curve, stays in found if curve is not None]
        empty &= not curves
        middle = band(curves, hold, log_y) if len(curves) > 1 else None
        if middle is not None:
            axis.fill_between(middle.x, middle.low, middle.high, color=look(number)["color"], alpha=0.18, linewidth=0)
            curves = [(middle.x, middle.middle)]
        for a, b in curves:
            axis.plot(a, b, **look(number), markevery=sparse(np.log(a) if log_x else a, number))
    if empty:
        raise UserError(
            f"there is nothing to draw: no run has numbers of both {x} and {y}"
            + (" that a logarithmic axis can show" if log_x or log_y else "")
        )
    axis.set_xscale("log" if log_x else "linear")
    axis.set_yscale("log" if log_y else "linear")
