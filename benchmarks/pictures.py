"""The pictures of a benchmark: colour and marker show the row, the line style shows the value of the columns' key."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from benchmarks import expressions
from benchmarks.bench import Figure
from benchmarks.claims import named
from benchmarks.grid import Cell
from benchmarks.outcome import Outcome
from mpifed.report import metrics, style
from mpifed.report.boxplot import boxed
from mpifed.report.curves import band, held, pair
from mpifed.report.metrics import scale, unit
from mpifed.report.plot import sparse
from mpifed.report.style import COLOURS, DOUBLE, HANDLE, LINES, above, canvas, drawing, fold, folded, headed, text

ACROSS = 3  # panels side by side
FEW = 8  # up to so many values are all labelled on the axis
DECADE = 20  # a logarithmic axis with a smaller range has plain numbers


def figure(outcome: Outcome, wish: Figure) -> Any:
    """Draw a picture of a benchmark file. Returns a matplotlib Figure, or None if none of its runs has a result."""
    cells = shown(outcome, wish)
    if not cells:
        return None
    along = wish.kind != "curves"
    keys = list(dict.fromkeys(panel(wish, cell, along) for cell in cells))
    rows = list(dict.fromkeys(cell.row for cell in cells))
    values = [value for value in outcome.bench.values if not wish.values or value in wish.values]
    panels = list(product(keys, wish.y))
    looks = {cell: look(cell, rows, values, wish, along) for cell in cells}
    labels = legend(outcome, wish, looks)
    across = min(len(panels), ACROSS if len(wish.y) == 1 or len(wish.y) % ACROSS == 0 else 2)
    words, columns, deep = folded(list(labels), DOUBLE)
    with drawing() as matplotlib:
        alone = len(words) == 1 and len(rows) < len(set(wish.rows))  # a single curve has no legend
        heading = headed(DOUBLE, f"{wish.title}: {words[0]}" if alone else wish.title)
        made, axes = canvas(matplotlib, DOUBLE, -(-len(panels) // across), across, heading, deep * (len(words) > 1))
        for axis in axes.flat[len(panels) :]:
            axis.remove()
        for axis, (key, y) in zip(axes.flat, panels, strict=False):
            own = [cell for cell in cells if panel(wish, cell, along) == key]
            {"curves": curves, "means": means, "boxes": boxes}[wish.kind](axis, outcome, wish, own, y, looks)
            name, by_value, value = key
            value_name = named(outcome.bench, value) if by_value else ""
            axis.set_title(fold(", ".join(filter(None, (name, value_name))), DOUBLE / across - HANDLE))
        handles = [matplotlib.lines.Line2D([], [], **style) for style in labels.values()]
        above(made, handles, words, columns, heading)
    return made


def shown(outcome: Outcome, wish: Figure) -> list[Cell]:
    """The cells of a picture that have results."""
    cells = [
        Cell(block.name, row["name"], value)
        for block in outcome.bench.block
        if not wish.blocks or block.name in wish.blocks
        for row in block.rows
        if not wish.rows or row["name"] in wish.rows
        for value in outcome.bench.values
        if not wish.values or value in wish.values
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


def look(cell: Cell, rows: list[str], values: list[Any], wish: Figure, along: bool) -> dict[str, Any]:
    """Colour and marker of the row, line style of the value; the value has all three if a panel shows one row."""
    row, value = rows.index(cell.row), values.index(cell.value)
    if along or wish.panels == "column":
        index, line = row, 0
    elif wish.panels == "row":
        index, line = value, value
    else:
        index, line = row, value
    return style.look(index) | {"linestyle": LINES[(line + index // len(COLOURS)) % len(LINES)]}


def curves(axis: Any, outcome: Outcome, wish: Figure, cells: list[Cell], y: str, looks: dict[Cell, Any]) -> None:
    """Draw columns over the rounds: the middle of the seeds on a band of their range."""
    log_x, log_y = "x" in wish.log, "y" in wish.log
    largest = 0.0
    drawn = []
    for cell in cells:
        found = []
        for result in outcome.runs[cell]:
            points = pair(
                expressions.series(result, wish.x, outcome.own),
                expressions.series(result, y, outcome.own),
                log_x,
                log_y,
            )
            if points is not None:
                found.append((points, held(y, result)))
                largest = max(largest, float(points[0][-1]))
        drawn.append((cell, found))
    factor, of = scale(unit_of(wish.x, outcome), largest)
    for cell, found in drawn:
        lines = [(a / factor, b) for (a, b), _ in found]
        middle = band(lines, [stays for _, stays in found], log_y) if len(lines) > 1 else None
        if middle is not None:
            axis.fill_between(middle.x, middle.low, middle.high, color=looks[cell]["color"], alpha=0.15, linewidth=0)
            lines = [(middle.x, middle.middle)]
        for a, b in lines:
            axis.plot(a, b, **looks[cell], markevery=sparse(np.log(a) if log_x else a, cells.index(cell)))
    axis.set(xlabel=text(title(wish.x, of)), ylabel=text(title(y, "")))
    scales(axis, wish)


def means(axis: Any, outcome: Outcome, wish: Figure, cells: list[Cell], y: str, looks: dict[Cell, Any]) -> None:
    """Draw the means of a measure over the columns' key, with the standard deviation over the seeds."""
    for row in dict.fromkeys(cell.row for cell in cells):
        own = [cell for cell in cells if cell.row == row]
        samples = [outcome.samples[cell, y] for cell in own]
        x = [cell.value if number(cell.value) else index for index, cell in enumerate(own)]
        mean = np.array([sample.mean if np.isfinite(sample.mean) else np.nan for sample in samples])
        sd = np.array([sample.sd for sample in samples])
        if "y" in wish.log:
            sd = np.minimum(sd, 0.9 * np.abs(mean))
        axis.errorbar(x, mean, sd, capsize=1.5, elinewidth=0.6, **looks[own[0]])
    columns = outcome.bench.columns
    axis.set(xlabel=text(columns.short if columns else ""), ylabel=text(expressions.title(y)))
    scales(axis, wish)
    values = list(dict.fromkeys(cell.value for cell in cells))
    if not all(map(number, values)):
        axis.set_xticks(range(len(values)), [str(value) for value in values])
    elif len(values) <= FEW or "x" in wish.log:
        axis.set_xticks(values, [f"{value:g}" for value in values])
        axis.xaxis.minorticks_off()


def boxes(axis: Any, outcome: Outcome, wish: Figure, cells: list[Cell], y: str, looks: dict[Cell, Any]) -> None:
    """Draw median, quartiles and outliers of a measure over the values of the columns' key."""
    rows, values = (list(dict.fromkeys(part)) for part in zip(*[(cell.row, cell.value) for cell in cells], strict=True))
    wide = 0.8 / len(rows)
    for cell in cells:
        at = values.index(cell.value) + wide * (rows.index(cell.row) - (len(rows) - 1) / 2)
        colour = looks[cell]["color"]
        fliers = {"marker": "x", "markersize": 3, "markeredgecolor": colour}
        boxed(axis, outcome.samples[cell, y].known, at, 0.8 * wide, colour, flierprops=fliers)
    axis.set_xticks(range(len(values)), [str(value) for value in values])
    axis.set(
        xlim=(-0.6, len(values) - 0.4),
        xlabel=outcome.bench.columns.short if outcome.bench.columns else "",
        ylabel=text(expressions.title(y)),
    )
    scales(axis, wish)


def scales(axis: Any, wish: Figure) -> None:
    """Set logarithmic axes where the figure asks for them; a range below DECADE gets plain numbers."""
    from matplotlib.ticker import MaxNLocator, NullLocator, ScalarFormatter

    for sign, axle, become in (("x", axis.xaxis, axis.set_xscale), ("y", axis.yaxis, axis.set_yscale)):
        if sign in wish.log and not (sign == "x" and wish.kind == "boxes"):
            become("log")
            least, most = axle.get_view_interval()
            if most < DECADE * least:
                axle.set_major_locator(MaxNLocator(4))
                axle.set_major_formatter(ScalarFormatter(useOffset=False))
                axle.set_minor_locator(NullLocator())


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def unit_of(name: str, outcome: Outcome) -> str:
    """The unit of a column."""
    if name == "iterations" or name in outcome.own.columns:
        return "1"
    return unit(
        {"seconds": "elapsed_seconds", "tct": "elapsed_seconds"}.get(name, name),
        [result for results in outcome.runs.values() for result in results[:1]],
    )


def title(name: str, of: str) -> str:
    """The label of an axis: column and unit."""
    return metrics.title({"seconds": "elapsed_seconds"}.get(name, name), of)
