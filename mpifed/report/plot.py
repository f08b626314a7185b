"""`mpifed plot`: columns of the rounds against one another, and a page of them.

The functions here, in boxplot and in timeline take results and return a matplotlib Figure, which style.save writes.
Runs that differ in the seed alone are one curve, their mean (geometric on a logarithmic axis). Up to three curves lie
on bands from minimum to maximum, with ten or more runs from the 10th to the 90th percentile. Curves are named by the
settings that differ. On a logarithmic axis, numbers that are not positive stand on a floor line.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.errors import UserError, unknown
from mpifed.core.typing import Array
from mpifed.report import axes, palette
from mpifed.report.curves import BANDS, FEW, Band, Curve, band, held, logarithmic, pair, scaled, series, spread, usual
from mpifed.report.metrics import column
from mpifed.report.overlap import ABOVE, Pile, piles
from mpifed.report.settings import Study, label, select_runs, study
from mpifed.report.style import DOUBLE, RC, SINGLE, Wishes, framed, paper, text
from mpifed.results.columns import SCALES
from mpifed.results.result import Result

LOGS = ("x", "y", "xy", "none")
SIDE = 3  # most panels side by side
MARKED = 8  # markers of a long curve
ALONE = Pile()


def lines(results: Sequence[Result], x: str = "round", y: Sequence[str] | None = None, **wishes: Unpack[Wishes]) -> Any:
    """Columns against a column, one panel for each of ``y``.

    A name is a recorded column, bytes (up and down), seconds (elapsed_seconds) or error: the objective minus the
    optimum or, where that is unknown, minus the least objective found on the same data. Without ``y`` it is the
    objective, or the error where f differs between seeds. UserError for a column that no run has, and where there is
    nothing to draw.
    """
    results, note = select_runs(results, wishes.get("everything", False))
    y = y or [usual(results, study(results))]
    width = paper(wishes.get("width"), SINGLE if len(y) == 1 else DOUBLE)
    columns = min(len(y), SIDE) if width > 1.5 * SINGLE else 1
    return panels(results, [(x, name) for name in y], columns, width, wishes, note)


def page(results: Sequence[Result], **wishes: Unpack[Wishes]) -> Any:
    """A study on one page: objective by round; error by exchanges, bytes and seconds; accuracy by round and seconds.

    Where the optimum is unknown, ‖∇f‖² stands in for the error. Without an accuracy its panels are absent.
    """
    results, note = select_runs(results, wishes.get("everything", False))
    gap = any("objective_gap" in result.rounds for result in results)
    error = "error" if gap or not any("grad_norm_sq" in result.rounds for result in results) else "grad_norm_sq"
    first = usual(results, study(results))
    pairs = [("round", first), ("exchanges", error), ("bytes", error), ("seconds", error)]
    if any("accuracy" in result.rounds for result in results):
        pairs += [("round", "accuracy"), ("seconds", "accuracy")]
    return panels(results, pairs, 2, paper(wishes.get("width"), DOUBLE), wishes, note)


class Drawing(NamedTuple):
    """What all panels of a figure share: the runs, their groups, the look of each, and the kind of band."""

    results: Sequence[Result]
    groups: Study
    looks: list[dict[str, Any]]
    band: str


class Panel(NamedTuple):
    """Axes, which of them are logarithmic, where what is not positive stands on them, and the kind of band."""

    axis: Any
    log_x: bool
    log_y: bool
    floor: float | None
    band: str


class Averaged(NamedTuple):
    """The curves of a group in a panel, and the band about their mean where it has one."""

    curves: Sequence[Curve]
    mean: Band | None


def panels(
    results: Sequence[Result], pairs: Sequence[tuple[str, str]], columns: int, width: float, wishes: Wishes, note: str
) -> Any:
    """A figure of curves, one panel for each (x, y), headed by what they are of and a ``note``."""
    log = wishes.get("log")
    kind = wishes.get("band")
    if log is not None and log not in LOGS:
        unknown("axis for log", log, LOGS)
    if kind is not None and kind not in BANDS:
        unknown("band", kind, BANDS)
    groups = study(results, rename=wishes.get("rename") or ())
    counts = [len(group.runs) for group in groups.groups]
    labels = [label(group, groups) for group in groups.groups]
    logs = [
        logarithmic(series(results, name)[1], zero=name == "error") if log is None else "y" in log for _, name in pairs
    ]
    looks = palette.looks([group.settings.get("algorithm", "") for group in groups.groups])
    picture = Drawing(results, groups, looks, kind or ("minmax" if len(labels) <= FEW else "none"))
    words = (wishes.get("title"), spread(counts, logs, picture.band) if max(counts) > 1 else None, note)
    with framed(width, (-(-len(pairs) // columns), columns), labels, looks, words) as (figure, places):
        for axis in places.flat[len(pairs) :]:
            axis.remove()
        for axis, (x, y), logarithm in zip(places.flat, pairs, logs, strict=False):
            draw(axis, picture, (x, y), ("x" in (log or ""), logarithm))
    return figure


def sparse(x: Array, number: int, pile: Pile = ALONE) -> list[int]:
    """Indices of the points with a marker: all of a few; else MARKED along x, shifted from those of other curves.

    Curves that lie on one another have their markers in turn.
    """
    if len(x) <= MARKED + 4:
        return list(range(pile.below, len(x), pile.size))
    shift = pile.below / pile.size if pile.size > 1 else (number % 5) / 5
    wanted = x[0] + (x[-1] - x[0]) * (np.arange(MARKED) + shift) / MARKED
    return sorted(set(np.abs(x[:, None] - wanted).argmin(axis=0).tolist()))


def draw(axis: Any, picture: Drawing, names: tuple[str, str], logs: tuple[bool, bool]) -> None:
    """Draw the curves of one panel, one for each group: columns (x, y), on axes that are logarithmic or not."""
    results = picture.results
    log_x, log_y = logs
    (x_name, xs), (y_name, ys) = (series(results, name) for name in names)
    by_x, x_title = scaled(x_name, xs, results, picture.groups.names)
    by_y, y_title = scaled(y_name, ys, results, picture.groups.names)
    axis.set(xlabel=text(x_title), ylabel=text(y_title))
    points = [pair(x, y, log_x) for x, y in zip(xs, ys, strict=True)]
    pairs = zip(results, points, strict=True)
    found = {id(run): (curve[0] / by_x, curve[1] / by_y) for run, curve in pairs if curve is not None}
    if not any(all((one > 0).any() for one, log in zip(curve, logs, strict=True) if log) for curve in found.values()):
        which = " that a logarithmic axis can show" if log_x or log_y else ""
        raise UserError(f"there is nothing to draw: no run has numbers of both {x_name} and {y_name}{which}")
    floor = axes.floor(y for _, y in found.values()) if log_y else None
    panel = Panel(axis, log_x, log_y, floor, picture.band)
    lines = []
    for group in picture.groups.groups:
        own = [(found[id(run)], held(y_name, run)) for run in group.runs if id(run) in found]
        lines.append(averaged(panel, own))
    stacked(panel, lines, picture.looks)
    if log_x:
        axes.along(axis, [x for x, _ in found.values()])
    elif x_name in SCALES or column(x_name).integer:
        axis.xaxis.get_major_locator().set_params(integer=True)
    axis.set_yscale("log" if log_y else "linear")
    if floor is not None:
        axes.base(axis, floor)


def averaged(panel: Panel, runs: Sequence[tuple[Curve, bool]]) -> Averaged:
    curves = [(x, axes.raised(y, panel.floor)) for (x, y), _ in runs]
    mean = band(curves, [stays for _, stays in runs], panel.log_y, panel.band) if len(curves) > 1 else None
    return Averaged(curves if mean is None else [(mean.x, mean.middle)], mean)


def stacked(panel: Panel, lines: Sequence[Averaged], looks: Sequence[dict[str, Any]]) -> None:
    """Draw the groups, those whose lines have gaps above the others, and wider what lies below another.

    Arrows show what stands on the floor.
    """
    axis, log_x, log_y, floor, kind = panel
    blank = [palette.GAPS[look["linestyle"]] for look in looks]
    single = [one.curves[0] if len(one.curves) == 1 else None for one in lines]
    found = piles(single, log_y, blank)
    for number, ((curves, mean), look, pile) in enumerate(zip(lines, looks, found, strict=True)):
        own = look | {"zorder": ABOVE + blank[number], "linewidth": pile.width(RC["lines.linewidth"])}
        if mean is not None and kind != "none":
            axis.fill_between(mean.x, mean.low, mean.high, color=look["color"], alpha=0.18, linewidth=0)
        for x, y in curves:
            marked = sparse(np.log(np.maximum(x, np.min(x[x > 0], initial=1.0))) if log_x else x, number, pile)
            axis.plot(x, y, **own, markevery=marked)
            if floor is not None and (below := y <= floor * (1 + 1e-9)).any():
                first = int(np.argmax(below))
                axes.stand(axis, x[sorted({first, *(k for k in marked if below[k])})], floor, look["color"])
