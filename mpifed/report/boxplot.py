"""Boxes: what runs came to over the values of a setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpifed.core.errors import unknown
from mpifed.report.curves import axis_title, last, logarithmic
from mpifed.report.groups import THERE, label, natural, study
from mpifed.report.metrics import scale, unit
from mpifed.report.style import COLOURS, LETTER, MARKERS, SINGLE, above, canvas, drawing, folded, headed, paper, text
from mpifed.results.result import Result

LONGEST = 24  # letters of a value below its boxes
SLANTED = 4  # lines that slanting values take


def box(
    results: Sequence[Result],
    key: str,
    y: str = "objective",
    log: str | None = None,
    width: float | None = None,
    title: str | None = None,
    everything: bool = False,
) -> Any:
    """What runs came to in ``y`` over the values of a setting: a box a value, beside one another where runs differ in
    other settings than the seed too, and every run as a point.

    ``y`` is a column, rounds, tct, lct, bytes or error. Runs that did not finish count only with ``everything``. Raises
    UserError for a setting or column that is not there.
    """
    if log not in (None, "y", "none"):
        unknown("axis for the log of boxes", log, ("y", "none"))
    results = [result for result in results if everything or result.status == "finished"]
    made = study(results)
    keys = list(
        dict.fromkeys(name for group in made.groups for name, value in group.settings.items() if value != THERE)
    )
    whole = {name.rsplit(".", 1)[-1]: name for name in reversed(keys)} | {name: name for name in keys}
    if key not in whole:
        unknown("setting", key, whole)
    key, (y, ends) = whole[key], last(results, y)
    came = {id(result): end for result, end in zip(results, ends, strict=True)}
    groups = [group for group in made.groups if key in group.settings]
    values = sorted({group.settings[key] for group in groups}, key=natural)
    kinds = list(dict.fromkeys(label(group, made, without=key) for group in groups))
    logarithm = log == "y" if log is not None else logarithmic([np.array(ends)])
    width = paper(width, SINGLE)
    labels, across, deep = folded(kinds, width)
    crowded = sum(len(shortened(value)) + 2 for value in values) * LETTER > width - 0.6
    largest = max((abs(end) for end in ends if np.isfinite(end)), default=0.0)
    factor, of = scale(unit(y, results) if y != "error" else "1", largest)
    with drawing() as matplotlib:
        heading = headed(width, title)
        figure, axes = canvas(matplotlib, width, 1, 1, heading, deep * (len(kinds) > 1) + SLANTED * crowded)
        axis, wide = axes[0, 0], 0.8 / len(kinds)
        for group in groups:
            kind = kinds.index(label(group, made, without=key))
            at = values.index(group.settings[key]) + wide * (kind - (len(kinds) - 1) / 2)
            numbers = np.array([came[id(run)] for run in group.runs]) / factor
            numbers = numbers[np.isfinite(numbers) & ((numbers > 0) | (not logarithm))]
            colour = COLOURS[kind % len(COLOURS)]
            line = {"color": colour}
            axis.boxplot(
                [numbers],
                positions=[at],
                widths=0.8 * wide,
                manage_ticks=False,
                patch_artist=True,
                showfliers=False,
                boxprops={"facecolor": "white", "edgecolor": colour},
                whiskerprops=line,
                capprops=line,
                medianprops=line | {"linewidth": 1.6},
            )
            axis.plot(
                np.full(len(numbers), at),
                numbers,
                MARKERS[kind % len(MARKERS)],
                color=colour,
                markersize=3,
                markerfacecolor="none",
                markeredgewidth=0.7,
            )
        slant = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        axis.set_xticks(range(len(values)), [text(shortened(value)) for value in values], **slant)
        axis.set(
            xlim=(-0.6, len(values) - 0.4),
            xlabel=text(key),
            ylabel=text(axis_title(y, of)),
            yscale="log" if logarithm else "linear",
        )
        axis.grid(False, axis="x")
        handles = [
            matplotlib.lines.Line2D(
                [], [], color=COLOURS[k % len(COLOURS)], marker=MARKERS[k % len(MARKERS)], markerfacecolor="none"
            )
            for k in range(len(kinds))
        ]
        above(figure, handles, labels, across, heading)
    return figure


def shortened(value: str) -> str:
    """The end of a value that is long."""
    return value if len(value) <= LONGEST else "…" + value[1 - LONGEST :]
