"""The pictures of `mpifed plot`: columns of the rounds against one another, and a page of them.

These functions, and those in boxplot and timeline, take results and return a matplotlib Figure, which style.save
writes. Runs that differ in the seed alone are one curve, their mean (geometric on a logarithmic axis). Up to three
curves lie on bands from minimum to maximum, with ten or more runs from the 10th to the 90th percentile. Curves are
named by the settings that differ. On a logarithmic axis, non-positive numbers stand on a floor line.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.errors import raise_unknown
from mpifed.core.typing import Array
from mpifed.report import axes, curves, palette
from mpifed.report.axes import ABOVE, Pile, find_piles
from mpifed.report.curves import Curve, CurveBand, Picture
from mpifed.report.metrics import metric_info
from mpifed.report.style import DOUBLE, RC, SINGLE, PictureOptions, check_width, escape_dollars, figure_with_legend
from mpifed.results.columns import SCALES
from mpifed.results.result import RunRecord

LOGS = ("x", "y", "xy", "none")
SIDE = 3  # maximum panels side by side
MARKED = 8  # markers of a long curve
ALONE = Pile()


def plot_lines(
    results: Sequence[RunRecord], x: str = "round", y: Sequence[str] | None = None, **wishes: Unpack[PictureOptions]
) -> Any:
    """Draw columns against a column, one panel for each of ``y``.

    A name is a recorded column, bytes (up and down), seconds (elapsed_seconds) or error: the objective minus the
    optimum or, where that is unknown, minus the smallest objective of runs on the same data. By default ``y`` is the
    objective, or the error where f differs between seeds. UserError for a column that no run has, and where there is
    nothing to draw.
    """
    picture = curves.arrange_runs(results, wishes)
    y = y or [curves.default_metric(picture.results, picture.groups)]
    width = check_width(wishes.get("width"), SINGLE if len(y) == 1 else DOUBLE)
    columns = min(len(y), SIDE) if width > 1.5 * SINGLE else 1
    return draw_panels(picture, [(x, name) for name in y], columns, width, wishes)


def plot_page(results: Sequence[RunRecord], **wishes: Unpack[PictureOptions]) -> Any:
    """Draw a page: objective by round; error by exchanges, bytes and seconds; accuracy by round and seconds.

    Where the optimum is unknown, ‖∇f‖² replaces the error. Without accuracy its panels are absent.
    """
    picture = curves.arrange_runs(results, wishes)
    results = picture.results
    gap = any("objective_gap" in result.rounds for result in results)
    error = "error" if gap or not any("grad_norm_sq" in result.rounds for result in results) else "grad_norm_sq"
    pairs = [("round", curves.default_metric(results, picture.groups))]
    pairs += [(x, error) for x in ("exchanges", "bytes", "seconds")]
    if any("accuracy" in result.rounds for result in results):
        pairs += [("round", "accuracy"), ("seconds", "accuracy")]
    return draw_panels(picture, pairs, 2, check_width(wishes.get("width"), DOUBLE), wishes)


class Panel(NamedTuple):
    """Axes, which of them are logarithmic, the floor of non-positive values, and the kind of band."""

    axis: Any
    log_x: bool
    log_y: bool
    floor: float | None
    band: str


class GroupCurves(NamedTuple):
    """The curves of a group in a panel, and the band about their mean, None without a mean."""

    curves: Sequence[Curve]
    mean_estimate: CurveBand | None


def draw_panels(
    picture: Picture, pairs: Sequence[tuple[str, str]], columns: int, width: float, wishes: PictureOptions
) -> Any:
    """Draw a figure of curves, one panel for each (x, y)."""
    log = wishes.get("log")
    kind = wishes.get("band")
    if log is not None and log not in LOGS:
        raise_unknown("axis for log", log, LOGS)
    if kind is not None and kind not in curves.BANDS:
        raise_unknown("band", kind, curves.BANDS)
    results, groups, labels, looks, note = picture
    kind = kind or ("minmax" if len(labels) <= curves.FEW else "none")
    counts = [len(group.runs) for group in groups.groups]
    logs = [
        curves.spans_decades(curves.collect_series(results, name)[1], zero=name == "error")
        if log is None
        else "y" in log
        for _, name in pairs
    ]
    words = (wishes.get("title"), curves.describe_band(counts, logs, kind) if max(counts) > 1 else None, note)
    shape = (-(-len(pairs) // columns), columns)
    with figure_with_legend(width, shape, labels, looks, words) as (figure, axes_of_panels):
        for axis in axes_of_panels.flat[len(pairs) :]:
            axis.remove()
        for axis, pair, logarithm in zip(axes_of_panels.flat, pairs, logs, strict=False):
            draw_panel(axis, picture, pair, ("x" in (log or ""), logarithm), kind)
    return figure


def marker_indices(x: Array, number: int, pile: Pile = ALONE) -> list[int]:
    """Return the indices of points with a marker: all of a few; else MARKED along x, shifted between curves.

    Curves that coincide have their markers in turn.
    """
    if len(x) <= MARKED + 4:
        return list(range(pile.below, len(x), pile.size))
    shift = pile.below / pile.size if pile.size > 1 else (number % 5) / 5
    wanted = x[0] + (x[-1] - x[0]) * (np.arange(MARKED) + shift) / MARKED
    return sorted(set(np.abs(x[:, None] - wanted).argmin(axis=0).tolist()))


def draw_panel(axis: Any, picture: Picture, names: tuple[str, str], logs: tuple[bool, bool], band: str) -> None:
    """Draw the curves of one panel, one for each group: columns (x, y), on axes that are logarithmic or not."""
    log_x, log_y = logs
    (x_name, x_title, xs), (y_name, y_title, ys) = (curves.scale_series(picture, name) for name in names)
    axis.set(xlabel=escape_dollars(x_title), ylabel=escape_dollars(y_title))
    drawn = [curves.drawable_points(x, y, log_x) for x, y in zip(xs, ys, strict=True)]
    points = {id(run): curve for run, curve in zip(picture.results, drawn, strict=True) if curve is not None}
    on_logs = ([one for one, log in zip(curve, logs, strict=True) if log] for curve in points.values())
    drawable = any(all((one > 0).any() for one in columns) for columns in on_logs)
    which = " that a logarithmic axis can show" if log_x or log_y else ""
    curves.require_drawable(drawable, f"no run has numbers of both {x_name} and {y_name}{which}")
    floor = axes.floor_level(y for _, y in points.values()) if log_y else None
    panel = Panel(axis, log_x, log_y, floor, band)
    lines = []
    for group in picture.groups.groups:
        of_group = [
            (points[id(run)], curves.continues_after_end(y_name, run)) for run in group.runs if id(run) in points
        ]
        lines.append(average_group(panel, of_group))
    draw_groups(panel, lines, picture.looks)
    mark_best(panel, picture, dict(zip(map(id, picture.results), zip(xs, ys, strict=True), strict=True)))
    if log_x:
        axes.set_log_x(axis, [x for x, _ in points.values()])
    elif x_name in SCALES or metric_info(x_name).integer:
        axis.xaxis.get_major_locator().set_params(integer=True)
    axes.set_y_scale(axis, log_y, floor)


def mark_best(panel: Panel, picture: Picture, series: Mapping[int, tuple[Array | None, ...]]) -> None:
    """Mark the best round of each curve that is one run, where the run has chosen one, by a star."""
    for group, look in zip(picture.groups.groups, picture.looks, strict=True):
        run = group.runs[0]
        if len(group.runs) == 1 and "best_round" in run.attrs:
            at_best = run.rounds["round"] == run.attrs["best_round"]
            x, y = (np.zeros(0) if column is None else column[at_best] for column in series[id(run)])
            style = {"marker": "*", "markersize": 11, "markeredgecolor": "white", "zorder": 2 * ABOVE}
            panel.axis.plot(x, axes.clip_to_floor(y, panel.floor), linestyle="none", color=look["color"], **style)


def average_group(panel: Panel, runs: Sequence[tuple[Curve, bool]]) -> GroupCurves:
    points = [(x, axes.clip_to_floor(y, panel.floor)) for (x, y), _ in runs]
    mean = (
        curves.average_curves(points, [stays for _, stays in runs], panel.log_y, panel.band)
        if len(points) > 1
        else None
    )
    return GroupCurves(points if mean is None else [(mean.x, mean.middle)], mean)


def draw_groups(panel: Panel, lines: Sequence[GroupCurves], looks: Sequence[dict[str, Any]]) -> None:
    """Draw the groups: lines with gaps above the others, and wider lines below them where they coincide.

    Arrows mark numbers on the floor.
    """
    axis, log_x, log_y, floor, band_kind = panel
    blank = [palette.GAPS[look["linestyle"]] for look in looks]
    single = [one.curves[0] if len(one.curves) == 1 else None for one in lines]
    overlaps = find_piles(single, log_y, blank)
    for number, ((drawn, mean), look, pile) in enumerate(zip(lines, looks, overlaps, strict=True)):
        style = look | {"zorder": ABOVE + blank[number], "linewidth": pile.width(RC["lines.linewidth"])}
        if mean is not None and band_kind != "none":
            axis.fill_between(mean.x, mean.low, mean.high, color=look["color"], alpha=0.18, linewidth=0)
        for x, y in drawn:
            marked = marker_indices(np.log(np.maximum(x, np.min(x[x > 0], initial=1.0))) if log_x else x, number, pile)
            axis.plot(x, y, **style, markevery=marked)
            if floor is not None and (below := y <= floor * (1 + 1e-9)).any():
                first = int(np.argmax(below))
                axes.draw_floor_arrows(axis, x[sorted({first, *(k for k in marked if below[k])})], floor, look["color"])
