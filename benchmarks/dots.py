"""A picture of many methods: a line for each, and on it a dot for each measure; a panel for each block."""

from typing import Any

import numpy as np

from benchmarks import expressions
from benchmarks.grid import Cell
from benchmarks.outcome import Outcome
from benchmarks.parts import Figure
from mpifed.report import axes
from mpifed.report.palette import COLOURS, MARKERS
from mpifed.report.style import (
    DOUBLE,
    HANDLE,
    LINE,
    add_legend,
    escape_dollars,
    fold_legend,
    fold_text,
    make_heading,
    matplotlib_style,
)

ACROSS = 3  # panels side by side
NAMES = 1.1  # inches of the names at the left


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
