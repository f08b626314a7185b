"""Boxes: what runs reached over the values of a setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import unknown
from mpifed.core.typing import Array
from mpifed.report.curves import axis_title, last, logarithmic
from mpifed.report.groups import THERE, Study, label, natural, study
from mpifed.report.metrics import scale, unit
from mpifed.report.style import COLOURS, LETTER, MARKERS, SINGLE, above, canvas, drawing, folded, headed, paper, text
from mpifed.results.result import Result

LONGEST = 24  # characters of a value below its boxes
SLANTED = 4  # lines of text that slanting values take


class Box(NamedTuple):
    """The runs of one value of the setting that agree in all other settings but the seed."""

    value: str
    kind: str  # the other settings in which runs differ
    numbers: Array  # what each run reached


def box(
    results: Sequence[Result],
    key: str,
    y: str = "objective",
    log: str | None = None,
    width: float | None = None,
    title: str | None = None,
) -> Any:
    """The final values of ``y`` over the values of a setting: one box per value, and a point for every run.

    Boxes stand side by side where runs differ in other settings too. ``y`` is a column, rounds, tct, lct, bytes or
    error. UserError for a setting or column that no run has.
    """
    if log not in (None, "y", "none"):
        unknown("axis for the log of boxes", log, ("y", "none"))
    groups = study(results)
    key = whole(key, groups)
    boxes, y_title = collected(results, groups, key, y)
    logarithm = log == "y" if log is not None else logarithmic([box.numbers for box in boxes])
    width = paper(width, SINGLE)
    values = sorted({box.value for box in boxes}, key=natural)
    kinds = list(dict.fromkeys(box.kind for box in boxes))
    labels, across, deep = folded(kinds, width)
    crowded = sum(len(shortened(value)) + 2 for value in values) * LETTER > width - 0.6
    with drawing() as matplotlib:
        heading = headed(width, title)
        figure, axes = canvas(matplotlib, width, 1, 1, heading, deep * (len(kinds) > 1) + SLANTED * crowded)
        axis = axes[0, 0]
        draw(axis, boxes, values, kinds, logarithm)
        slant = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        axis.set_xticks(range(len(values)), [text(shortened(value)) for value in values], **slant)
        axis.set(xlim=(-0.6, len(values) - 0.4), xlabel=text(key), ylabel=text(y_title))
        axis.set_yscale("log" if logarithm else "linear")
        axis.grid(False, axis="x")
        handles = [matplotlib.lines.Line2D([], [], **points(k)) for k in range(len(kinds))]
        above(figure, handles, labels, across, heading)
    return figure


def whole(key: str, groups: Study) -> str:
    """A setting by its whole key, which may be given by its last part. UserError for one that no run has."""
    settings = [setting for group in groups.groups for setting in group.settings.items()]
    keys = list(dict.fromkeys(name for name, value in settings if value != THERE))
    found = {name.rsplit(".", 1)[-1]: name for name in reversed(keys)} | {name: name for name in keys}
    if key not in found:
        unknown("setting", key, found)
    return found[key]


def collected(results: Sequence[Result], groups: Study, key: str, y: str) -> tuple[list[Box], str]:
    """The boxes over a setting, and the title of the axis of ``y`` with the unit of their numbers."""
    y, ends = last(results, y)
    largest = max((abs(end) for end in ends if np.isfinite(end)), default=0.0)
    factor, of = scale(unit(y, results) if y != "error" else "1", largest)
    reached = {id(result): end / factor for result, end in zip(results, ends, strict=True)}
    boxes = [
        Box(group.settings[key], label(group, groups, without=key), np.array([reached[id(run)] for run in group.runs]))
        for group in groups.groups
        if key in group.settings
    ]
    return boxes, axis_title(y, of)


def draw(axis: Any, boxes: Sequence[Box], values: Sequence[str], kinds: Sequence[str], logarithm: bool) -> None:
    """Draw the boxes and the points of their runs; on a logarithmic axis only positive numbers."""
    wide = 0.8 / len(kinds)
    for box in boxes:
        kind = kinds.index(box.kind)
        x = values.index(box.value) + wide * (kind - (len(kinds) - 1) / 2)
        numbers = box.numbers[np.isfinite(box.numbers) & ((box.numbers > 0) | (not logarithm))]
        boxed(axis, numbers, x, 0.8 * wide, COLOURS[kind % len(COLOURS)], showfliers=False)
        axis.plot(
            np.full(len(numbers), x), numbers, linestyle="none", markeredgewidth=0.7, markersize=3, **points(kind)
        )


def boxed(axis: Any, numbers: Array, x: float, width: float, colour: str, **options: Any) -> None:
    """One box, outlined in a colour."""
    line = {"color": colour}
    axis.boxplot(
        [numbers],
        positions=[x],
        widths=width,
        manage_ticks=False,
        patch_artist=True,
        boxprops={"facecolor": "white", "edgecolor": colour},
        whiskerprops=line,
        capprops=line,
        medianprops=line | {"linewidth": 1.6},
        **options,
    )


def points(kind: int) -> dict[str, Any]:
    """Colour and marker of the runs of a kind."""
    return {
        "color": COLOURS[kind % len(COLOURS)],
        "marker": MARKERS[kind % len(MARKERS)],
        "markerfacecolor": "none",
    }


def shortened(value: str) -> str:
    """The end of a long value."""
    return value if len(value) <= LONGEST else "…" + value[1 - LONGEST :]
