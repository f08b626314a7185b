"""The pictures of a benchmark: the colour shows the method of a row, the line style the value of the columns' key."""

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from benchmarks import expressions
from benchmarks.bench import Figure
from benchmarks.claims import named
from benchmarks.grid import Cell
from benchmarks.outcome import Outcome
from benchmarks.rows import cells as cells_of
from mpifed.core.methods import METHODS
from mpifed.core.typing import Array
from mpifed.report import axes, metrics, palette
from mpifed.report.boxplot import draw_box
from mpifed.report.curves import FEW as BANDS
from mpifed.report.curves import continues_after_end, drawable_points
from mpifed.report.metrics import metric_unit
from mpifed.report.names import setting_title
from mpifed.report.palette import COLOURS, LINES, MARKERS
from mpifed.report.plot import Panel, average_group, draw_groups
from mpifed.report.settings import run_settings
from mpifed.report.style import (
    DOUBLE,
    HANDLE,
    LINE,
    add_legend,
    escape_dollars,
    fold_legend,
    fold_text,
    make_canvas,
    make_heading,
    matplotlib_style,
)
from mpifed.report.tables import choose_unit

ACROSS = 3  # panels side by side
FOUR = 4  # panels make a square
HIGH = 1.5  # inches of the label of an upright axis
FEW = 8  # up to so many values are all labelled on the axis
NAMES = 1.1  # inches of the names of dots at the left
DECADE = 20  # a logarithmic axis with a smaller range has plain numbers


def figure(outcome: Outcome, wish: Figure) -> Any:
    """Draw a picture of a benchmark file. Returns a matplotlib Figure, or None if none of its runs has a result."""
    cells = shown(outcome, wish)
    if not cells:
        return None
    if wish.kind == "dots":
        return dots(outcome, wish, cells)
    along = wish.kind != "curves"
    keys = list(dict.fromkeys(panel(wish, cell, along) for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    panels = list(product(keys, wish.y))
    looks = looks_of(outcome, cells, wish)
    labels = legend(outcome, wish, looks)
    wide = len(panels) != FOUR and (len(wish.y) == 1 or len(wish.y) % ACROSS == 0)
    across = min(len(panels), ACROSS if wide else 2)
    words, columns, deep = fold_legend(list(labels), DOUBLE)
    with matplotlib_style() as matplotlib:
        alone = len(words) == 1 and len(rows) < len(set(wish.rows))  # a single curve has no legend
        heading = make_heading(DOUBLE, f"{wish.title}: {words[0]}" if alone else wish.title)
        made, places = make_canvas(
            matplotlib, DOUBLE, -(-len(panels) // across), across, heading, deep * (len(words) > 1)
        )
        for axis in places.flat[len(panels) :]:
            axis.remove()
        for axis, (key, y) in zip(places.flat, panels, strict=False):
            own = [cell for cell in cells if panel(wish, cell, along) == key]
            {"curves": curves, "means": means, "boxes": boxes}[wish.kind](axis, outcome, wish, own, y, looks)
            name, by_value, value = key
            value_name = named(outcome.bench, value) if by_value else ""
            axis.set_title(fold_text(", ".join(filter(None, (name, value_name))), DOUBLE / across - HANDLE))
        handles = [matplotlib.lines.Line2D([], [], **style) for style in labels.values()]
        add_legend(made, handles, words, columns, heading)
    return made


def shown(outcome: Outcome, wish: Figure) -> list[Cell]:
    """The cells of a picture that have results."""
    wanted = (wish.blocks, wish.rows, wish.values)
    cells = [
        cell
        for cell in cells_of(outcome.bench)
        if all(not these or part in these for these, part in zip(wanted, cell, strict=True))
    ]
    if wish.kind == "dots":  # drawn from the numbers in rows, without result files
        return [
            cell
            for cell in cells
            if any((cell, y) in outcome.samples and outcome.samples[cell, y].values for y in wish.y)
        ]
    return [cell for cell in cells if outcome.runs.get(cell)]


def legend(outcome: Outcome, wish: Figure, looks: dict[Cell, Any]) -> dict[str, Any]:
    """Label -> look of every curve; a label says so if no run of it reached what the picture shows."""
    along = wish.kind != "curves"
    names = {cell: label(outcome, cell, wish, along) for cell in looks}
    reached = {
        names[cell] for cell in looks if not along or any(np.isfinite(outcome.samples[cell, y].mean) for y in wish.y)
    }
    return {name if name in reached else f"{name}: not reached": looks[cell] for cell, name in names.items()}


def panel(wish: Figure, cell: Cell, along: bool) -> tuple[str, bool, Any]:
    """What the cells of a panel have in common: the heading, whether the value is part of it, and the value."""
    if wish.panels == "row":
        return f"{cell.block}, {cell.row}", False, None
    if wish.panels == "column" and not along:
        return cell.block, True, cell.value
    return cell.block, False, None


def label(outcome: Outcome, cell: Cell, wish: Figure, along: bool) -> str:
    """The name of a curve in the legend."""
    row = "" if wish.panels == "row" else cell.row
    value = "" if along or wish.panels == "column" else named(outcome.bench, cell.value)
    return ", ".join(filter(None, (row, value))) or cell.row


def looks_of(outcome: Outcome, cells: list[Cell], wish: Figure) -> dict[Cell, dict[str, Any]]:
    """Colour and marker by the method of the row, line style by the value; shades by value if a panel shows one row."""
    rows = list(dict.fromkeys(cell.row for cell in cells))
    values = list(dict.fromkeys(cell.value for cell in cells))
    methods = {cell.row: method(outcome, cell) for cell in reversed(cells)}
    if wish.panels == "row" and wish.kind == "curves":
        one = methods[rows[0]] if len(set(methods.values())) == 1 else "fedavg"  # black, for several methods
        shades = palette.curve_styles([one] * len(values))
        return {cell: shades[values.index(cell.value)] for cell in cells}
    own = dict(zip(rows, palette.curve_styles([methods[row] for row in rows]), strict=True))
    if wish.kind != "curves" or wish.panels == "column":
        return {cell: own[cell.row] for cell in cells}
    return {cell: own[cell.row] | {"linestyle": turned(own[cell.row], values.index(cell.value))} for cell in cells}


def turned(look: dict[str, Any], by: int) -> Any:
    """The line style that comes ``by`` places after that of a look."""
    return LINES[(LINES.index(look["linestyle"]) + by) % len(LINES)]


def method(outcome: Outcome, cell: Cell) -> str:
    """The algorithm of a row: the one that its name begins with, else that of its experiment file."""
    named_so = [key for key, one in METHODS.items() if cell.row.lower().startswith(one.title.lower())]
    if named_so:
        return max(named_so, key=lambda key: len(METHODS[key].title))
    return run_settings(outcome.runs[cell][0]).get("algorithm", "")


def curves(axis: Any, outcome: Outcome, wish: Figure, cells: list[Cell], y: str, looks: dict[Cell, Any]) -> None:
    """Draw columns over the rounds: the means of the seeds, up to three of them on bands of their range."""
    log_x, log_y = "x" in wish.log, "y" in wish.log
    drawn = []
    for cell in cells:
        found = []
        for result in outcome.runs[cell]:
            x = expressions.series(result, wish.x, outcome.own)
            points = drawable_points(x, expressions.series(result, y, outcome.own), log_x)
            if points is not None:
                found.append((points, continues_after_end(y, result)))
        drawn.append((cell, found))
    every = [points for _, found in drawn for points, _ in found]
    factor, of = choose_unit(unit_of(wish.x, outcome), max((float(x[-1]) for x, _ in every), default=0.0))
    floor = axes.floor_level(b for _, b in every) if log_y else None
    one = Panel(axis, log_x, log_y, floor, "minmax" if len(cells) <= BANDS else "none")
    own = [average_group(one, [((a / factor, b), stays) for (a, b), stays in found]) for _, found in drawn]
    draw_groups(one, own, [looks[cell] for cell, _ in drawn])
    axis.set(xlabel=escape_dollars(title(wish.x, of)), ylabel=escape_dollars(title(y, "")))
    scales(axis, wish, [a / factor for a, _ in every])
    if floor is not None:
        axes.draw_floor_line(axis, floor)


def means(axis: Any, outcome: Outcome, wish: Figure, cells: list[Cell], y: str, looks: dict[Cell, Any]) -> None:
    """Draw the means of a measure over the columns' key, or over another measure, with their deviation over seeds."""
    for row in dict.fromkeys(cell.row for cell in cells):
        own = [cell for cell in cells if cell.row == row]
        samples = [outcome.samples[cell, y] for cell in own]
        mean = np.array([sample.mean if np.isfinite(sample.mean) else np.nan for sample in samples])
        sd = np.array([sample.sd for sample in samples])
        if "y" in wish.log:
            sd = np.minimum(sd, 0.9 * np.abs(mean))
        axis.errorbar(places(outcome, wish, own), mean, sd, capsize=1.5, elinewidth=0.6, **looks[own[0]])
    axis.set(
        xlabel=escape_dollars(along_of(outcome, wish)), ylabel=escape_dollars(fold_text(expressions.title(y), HIGH))
    )
    scales(axis, wish)
    values = list(dict.fromkeys(cell.value for cell in cells))
    if wish.along:
        at = places(outcome, wish, [next(cell for cell in cells if cell.value == value) for value in values])
        names = [f"{value} {x:.2g}" for value, x in zip(values, at, strict=True)]
        axis.set_xticks(at, names, rotation=60, ha="right", rotation_mode="anchor")
        axis.xaxis.minorticks_off()
    elif not all(map(number, values)):
        axis.set_xticks(range(len(values)), [str(value) for value in values])
    elif len(values) <= FEW or "x" in wish.log:
        axis.set_xticks(values, [f"{value:g}" for value in values])
        axis.xaxis.minorticks_off()


def places(outcome: Outcome, wish: Figure, cells: list[Cell]) -> list[float]:
    """Where the means of cells are drawn: at another measure, at the value of the columns' key, or in its order."""
    if wish.along:
        return [outcome.samples[cell, wish.along].mean for cell in cells]
    return [cell.value if number(cell.value) else index for index, cell in enumerate(cells)]


def along_of(outcome: Outcome, wish: Figure) -> str:
    """The label of the horizontal axis of means and boxes."""
    if wish.along:
        return expressions.title(wish.along)
    columns = outcome.bench.columns
    return setting_title(columns.short) if columns else ""


def boxes(axis: Any, outcome: Outcome, wish: Figure, cells: list[Cell], y: str, looks: dict[Cell, Any]) -> None:
    """Draw median, quartiles and outliers of a measure over the values of the columns' key."""
    rows, values = (list(dict.fromkeys(part)) for part in zip(*[(cell.row, cell.value) for cell in cells], strict=True))
    wide = 0.8 / len(rows)
    for cell in cells:
        at = values.index(cell.value) + wide * (rows.index(cell.row) - (len(rows) - 1) / 2)
        colour = looks[cell]["color"]
        fliers = {"marker": "x", "markersize": 3, "markeredgecolor": colour}
        draw_box(axis, outcome.samples[cell, y].known, at, 0.8 * wide, colour, flierprops=fliers)
    axis.set_xticks(range(len(values)), [str(value) for value in values])
    axis.set(
        xlim=(-0.6, len(values) - 0.4), xlabel=along_of(outcome, wish), ylabel=escape_dollars(expressions.title(y))
    )
    scales(axis, wish)


def dots(outcome: Outcome, wish: Figure, cells: list[Cell]) -> Any:
    """Draw the means of the measures of every row as a matplotlib Figure, from cells that have results.

    A cross at the right edge says that no run reached the condition of the measure, a hollow dot that some did not.
    """
    blocks, rows = (list(dict.fromkeys(part)) for part in ([c.block for c in cells], [c.row for c in cells]))
    down = -(-len(blocks) // ACROSS)
    with matplotlib_style() as matplotlib:
        styles = [
            {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)], "linestyle": "none"}
            for k in range(len(wish.y))
        ]
        labels = [expressions.title(y) for y in wish.y]
        words, columns, lines = fold_legend(labels, DOUBLE)
        heading = make_heading(DOUBLE, wish.title)
        high = down * (LINE * (len(rows) + 3)) + LINE * (lines + 2)
        figure = matplotlib.figure.Figure(figsize=(DOUBLE, high), layout="constrained")
        places = figure.subplots(down, min(ACROSS, len(blocks)), squeeze=False, sharey=True)
        for axis in places.flat[len(blocks) :]:
            axis.remove()
        width = (DOUBLE - NAMES) / places.shape[1]
        for axis, block in zip(places.flat, blocks, strict=False):
            axis.set_title(fold_text(block, width - HANDLE))
            drawn(axis, outcome, wish, [cell for cell in cells if cell.block == block], rows, styles)
        places.flat[0].set(ylim=(len(rows) - 0.5, -0.5))
        for row in places:
            row[0].set_yticks(range(len(rows)), [escape_dollars(name) for name in rows])
        handles = [matplotlib.lines.Line2D([], [], **style) for style in styles]
        add_legend(figure, handles, words, columns, heading)
        if len(handles) == 1:
            for axis in places[-1]:
                axis.set_xlabel(escape_dollars(fold_text(labels[0], width)))
    return figure


def drawn(
    axis: Any, outcome: Outcome, wish: Figure, cells: list[Cell], rows: list[str], styles: list[dict[str, Any]]
) -> None:
    """Draw one panel: the mean over the runs that reached a measure's condition, and their range."""
    none = []
    for measure, style in zip(wish.y, styles, strict=True):
        for place, row in enumerate(rows):
            found = [outcome.samples[cell, measure] for cell in cells if cell.row == row]
            if not found:
                continue
            known = np.concatenate([sample.known for sample in found])
            if not known.size:
                none.append(place)
                continue
            all_reached = sum(sample.unreached for sample in found) == 0
            axis.plot([known.min(), known.max()], [place, place], color=style["color"], linewidth=0.8)
            axis.plot(known.mean(), place, **style, markerfacecolor=style["color"] if all_reached else "white")
    if "x" in wish.log:
        axis.set_xscale("log")
        axes.label_decades(axis.xaxis)
    edge = axis.get_yaxis_transform()
    (crosses,) = axis.plot(np.ones(len(none)), none, "x", color="0.6", transform=edge, clip_on=False, markersize=3)
    crosses.set_in_layout(False)


def scales(axis: Any, wish: Figure, xs: Sequence[Array] = ()) -> None:
    """Set logarithmic axes where the figure asks for them; a range below DECADE gets plain numbers."""
    from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

    for sign, axle, become in (("x", axis.xaxis, axis.set_xscale), ("y", axis.yaxis, axis.set_yscale)):
        if sign in wish.log and not (sign == "x" and wish.kind == "boxes"):
            if sign == "x" and xs:
                axes.set_log_x(axis, xs)
            else:
                become("log")
            if axle.get_scale() != "log":
                continue
            least, most = axle.get_view_interval()
            if most < DECADE * least:
                axle.set_major_locator(MaxNLocator(4))
                axle.set_major_formatter(ScalarFormatter(useOffset=False))
                axle.set_minor_locator(NullLocator())
            else:
                axes.label_decades(axle)


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def unit_of(name: str, outcome: Outcome) -> str:
    """The unit of a column."""
    if name == "iterations" or name in outcome.own.columns:
        return "1"
    first = [result for results in outcome.runs.values() for result in results[:1]]
    return metric_unit({"seconds": "elapsed_seconds", "tct": "elapsed_seconds"}.get(name, name), first)


def title(name: str, of: str) -> str:
    """The label of an axis: column and unit."""
    return metrics.metric_title({"seconds": "elapsed_seconds"}.get(name, name), of)
