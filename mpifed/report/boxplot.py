"""Box plots of the final values of runs over the values of a setting."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.errors import raise_unknown
from mpifed.core.typing import Array
from mpifed.report import axes, curves, palette
from mpifed.report.metrics import available_metrics, final_metric, last_finite
from mpifed.report.settings import THERE, RunGroups, group_label, natural_sort_key
from mpifed.report.style import LETTER, SINGLE, PictureOptions, check_width, escape_dollars, figure_with_legend
from mpifed.results.result import RunRecord

LONGEST = 24  # maximum characters of a value below its boxes
GREY = "#555555"
SLANTED = 4  # lines of text that slanted values take


class Box(NamedTuple):
    """Runs with one value of the setting that agree in all other settings except the seed."""

    value: str
    category: str  # label of the other settings in which runs differ
    method: str
    numbers: Array  # final value of each run


def plot_boxes(results: Sequence[RunRecord], key: str, y: str | None = None, **wishes: Unpack[PictureOptions]) -> Any:
    """Draw the final values of ``y`` over the values of a setting: one box for each value, and a point for every run.

    Boxes stand side by side where runs differ in other settings too. ``y`` is a column, rounds, tct, lct, bytes or
    error; by default the objective, or the error where f differs between seeds. On a logarithmic axis, non-positive
    numbers stand on a floor line. UserError for a setting or column that no run has a value of.
    """
    log = wishes.get("log")
    if log not in (None, "y", "none"):
        raise_unknown("axis for the log of boxes", log, ("y", "none"))
    results, groups, *_, note = curves.arrange_runs(results, wishes)
    key = full_key(key, groups)
    y = y or curves.default_metric(results, groups)
    boxes, y_title = collect_boxes(results, groups, key, y)
    logarithm = (
        log == "y" if log is not None else curves.spans_decades([box.numbers for box in boxes], zero=y == "error")
    )
    width = check_width(wishes.get("width"), SINGLE)
    values = sorted({box.value for box in boxes}, key=natural_sort_key)
    looks = box_styles(boxes, key)
    labels = [category for category in looks if category] or [""]
    drawn = [looks[category] for category in looks if category or len(looks) == 1]
    ticks = [groups.names.value(key, value) for value in values]
    ticks = [tick if len(tick) <= LONGEST else "…" + tick[1 - LONGEST :] for tick in ticks]
    crowded = sum(len(tick) + 2 for tick in ticks) * LETTER > width - 0.6
    below = SLANTED if crowded else 0
    with figure_with_legend(width, (1, 1), labels, drawn, (wishes.get("title"), note), below) as (figure, panels):
        axis = panels[0, 0]
        draw_boxes(axis, boxes, values, looks, logarithm)
        slant = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        axis.set_xticks(range(len(values)), [escape_dollars(tick) for tick in ticks], **slant)
        short = groups.keys.get(key, key.rsplit(".", 1)[-1])
        axis.set(
            xlim=(-0.6, len(values) - 0.4),
            xlabel=escape_dollars(groups.names.setting(key, short)),
            ylabel=escape_dollars(y_title),
        )
        axis.grid(False, axis="x")
    return figure


def box_styles(boxes: Sequence[Box], key: str) -> dict[str, dict[str, Any]]:
    """Return colour and marker for the runs of each label; over methods, each box has the colour of its method."""
    methods = {box.category: box.method for box in boxes}
    styles = palette.curve_styles(["" if key == "algorithm" else method for method in methods.values()])
    hollow = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 0.7, "markersize": 3}
    grey = {"color": GREY} if key == "algorithm" else {}
    return {category: look | hollow | grey for category, look in zip(methods, styles, strict=True)}


def full_key(key: str, groups: RunGroups) -> str:
    """Return the full key of a setting that may be given by its last part. UserError for one that no run has."""
    settings = [setting for group in groups.groups for setting in group.settings.items()]
    keys = list(dict.fromkeys(name for name, value in settings if value != THERE))
    matches = {name.rsplit(".", 1)[-1]: name for name in reversed(keys)} | {name: name for name in keys}
    if key not in matches:
        raise_unknown("setting", key, matches)
    return matches[key]


def collect_boxes(results: Sequence[RunRecord], groups: RunGroups, key: str, y: str) -> tuple[list[Box], str]:
    """Return the boxes over a setting, and the title of the axis of ``y`` with the unit of their numbers."""
    if y != "error" and y in available_metrics(results):
        ends = [final_metric(result, y) for result in results]
    else:
        y, columns = curves.collect_series(results, y)
        ends = [last_finite(values) for values in columns]
    curves.require_drawable(bool(np.isfinite(ends).any()), f"no run has a value of {y}")
    factor, title = curves.choose_axis_scale(y, [np.array(ends)], results, groups.names)
    final_numbers = {id(result): end / factor for result, end in zip(results, ends, strict=True)}
    boxes = []
    for group in groups.groups:
        if key in group.settings:
            numbers = np.array([final_numbers[id(run)] for run in group.runs])
            method = group.settings.get("algorithm", "")
            boxes.append(Box(group.settings[key], group_label(group, groups, without=key), method, numbers))
    return boxes, title


def draw_boxes(
    axis: Any, boxes: Sequence[Box], values: Sequence[str], looks: dict[str, dict[str, Any]], logarithm: bool
) -> None:
    categories = {
        value: [category for category in looks if any(box[:2] == (value, category) for box in boxes)]
        for value in values
    }
    width = 0.8 / max(map(len, categories.values()))
    floor = axes.floor_level(box.numbers for box in boxes) if logarithm else None
    methods = list(dict.fromkeys(box.method for box in boxes))
    colours = {method: style["color"] for method, style in zip(methods, palette.curve_styles(methods), strict=True)}
    for box in boxes:
        look = looks[box.category]
        colour = colours[box.method] if look["color"] == GREY else look["color"]
        here = categories[box.value]
        x = values.index(box.value) + width * (here.index(box.category) - (len(here) - 1) / 2)
        numbers = axes.clip_to_floor(box.numbers[np.isfinite(box.numbers)], floor)
        draw_box(axis, numbers, x, 0.8 * width, colour, showfliers=False)
        above = numbers if floor is None else numbers[numbers > floor]
        axis.plot(np.full(len(above), x), above, **look | {"color": colour})
        if floor is not None and len(above) < len(numbers):
            axes.draw_floor_arrows(axis, np.full(1, x), floor, colour)
    axes.set_y_scale(axis, logarithm, floor)


def draw_box(axis: Any, numbers: Array, x: float, width: float, colour: str, **options: Any) -> None:
    line = {"color": colour}
    options |= {"whiskerprops": line, "capprops": line, "medianprops": line | {"linewidth": 1.6}}
    options |= {"patch_artist": True, "boxprops": {"facecolor": "white", "edgecolor": colour}}
    axis.boxplot([numbers], positions=[x], widths=width, manage_ticks=False, **options)
