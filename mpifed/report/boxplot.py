"""Boxes: what runs reached over the values of a setting."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.errors import UserError, unknown
from mpifed.core.typing import Array
from mpifed.report import axes, palette
from mpifed.report.curves import logarithmic, scaled, series, usual
from mpifed.report.metrics import available, final, last
from mpifed.report.settings import THERE, Study, label, natural, select_runs, study
from mpifed.report.style import LETTER, SINGLE, Wishes, framed, paper, text
from mpifed.results.result import Result

LONGEST = 24  # characters of a value below its boxes
GREY = "#555555"
SLANTED = 4  # lines of text that slanting values take


class Box(NamedTuple):
    """The runs of one value of the setting that agree in all other settings but the seed."""

    value: str
    kind: str  # the other settings in which runs differ
    method: str
    numbers: Array  # what each run reached


def box(results: Sequence[Result], key: str, y: str | None = None, **wishes: Unpack[Wishes]) -> Any:
    """The final values of ``y`` over the values of a setting: one box per value, and a point for every run.

    Boxes stand side by side where runs differ in other settings too. ``y`` is a column, rounds, tct, lct, bytes or
    error; without it, the objective, or the error where f differs between seeds. On a logarithmic axis, numbers that
    are not positive stand on a floor line. UserError for a setting or column that no run has a value of.
    """
    log = wishes.get("log")
    if log not in (None, "y", "none"):
        unknown("axis for the log of boxes", log, ("y", "none"))
    results, note = select_runs(results, wishes.get("everything", False))
    groups = study(results, rename=wishes.get("rename") or ())
    key = whole(key, groups)
    y = y or usual(results, groups)
    boxes, y_title = collected(results, groups, key, y)
    logarithm = log == "y" if log is not None else logarithmic([box.numbers for box in boxes], zero=y == "error")
    width = paper(wishes.get("width"), SINGLE)
    values = sorted({box.value for box in boxes}, key=natural)
    looks = looks_of(boxes, key)
    labels = [kind for kind in looks if kind] or [""]
    drawn = [looks[kind] for kind in looks if kind or len(looks) == 1]
    ticks = [groups.names.value(key, value) for value in values]
    ticks = [tick if len(tick) <= LONGEST else "…" + tick[1 - LONGEST :] for tick in ticks]
    crowded = sum(len(tick) + 2 for tick in ticks) * LETTER > width - 0.6
    below = SLANTED if crowded else 0
    with framed(width, (1, 1), labels, drawn, (wishes.get("title"), note), below) as (figure, places):
        axis = places[0, 0]
        draw(axis, boxes, values, looks, logarithm)
        slant = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if crowded else {}
        axis.set_xticks(range(len(values)), [text(tick) for tick in ticks], **slant)
        short = groups.keys.get(key, key.rsplit(".", 1)[-1])
        axis.set(xlim=(-0.6, len(values) - 0.4), xlabel=text(groups.names.setting(key, short)), ylabel=text(y_title))
        axis.grid(False, axis="x")
    return figure


def looks_of(boxes: Sequence[Box], key: str) -> dict[str, dict[str, Any]]:
    """Colour and marker of the runs of each kind; over methods, each box has the colour of its method instead."""
    methods = {box.kind: box.method for box in boxes}
    found = palette.looks(["" if key == "algorithm" else method for method in methods.values()])
    plain = {"linestyle": "none", "markerfacecolor": "none", "markeredgewidth": 0.7, "markersize": 3}
    grey = {"color": GREY} if key == "algorithm" else {}
    return {kind: look | plain | grey for kind, look in zip(methods, found, strict=True)}


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
    if y != "error" and y in available(results):
        ends = [final(result, y) for result in results]
    else:
        y, columns = series(results, y)
        ends = [last(values) for values in columns]
    if not np.isfinite(ends).any():
        raise UserError(f"there is nothing to draw: no run has a value of {y}")
    factor, title = scaled(y, [np.array(ends)], results, groups.names)
    reached = {id(result): end / factor for result, end in zip(results, ends, strict=True)}
    boxes = []
    for group in groups.groups:
        if key in group.settings:
            numbers = np.array([reached[id(run)] for run in group.runs])
            method = group.settings.get("algorithm", "")
            boxes.append(Box(group.settings[key], label(group, groups, without=key), method, numbers))
    return boxes, title


def draw(
    axis: Any, boxes: Sequence[Box], values: Sequence[str], looks: dict[str, dict[str, Any]], logarithm: bool
) -> None:
    kinds = {value: [kind for kind in looks if any(box[:2] == (value, kind) for box in boxes)] for value in values}
    wide = 0.8 / max(map(len, kinds.values()))
    floor = axes.floor(box.numbers for box in boxes) if logarithm else None
    methods = list(dict.fromkeys(box.method for box in boxes))
    colours = {method: own["color"] for method, own in zip(methods, palette.looks(methods), strict=True)}
    for box in boxes:
        look = looks[box.kind]
        colour = colours[box.method] if look["color"] == GREY else look["color"]
        own = kinds[box.value]
        x = values.index(box.value) + wide * (own.index(box.kind) - (len(own) - 1) / 2)
        numbers = axes.raised(box.numbers[np.isfinite(box.numbers)], floor)
        boxed(axis, numbers, x, 0.8 * wide, colour, showfliers=False)
        above = numbers if floor is None else numbers[numbers > floor]
        axis.plot(np.full(len(above), x), above, **look | {"color": colour})
        if floor is not None and len(above) < len(numbers):
            axes.stand(axis, np.full(1, x), floor, colour)
    axis.set_yscale("log" if logarithm else "linear")
    if floor is not None:
        axes.base(axis, floor)


def boxed(axis: Any, numbers: Array, x: float, width: float, colour: str, **options: Any) -> None:
    line = {"color": colour}
    options |= {"whiskerprops": line, "capprops": line, "medianprops": line | {"linewidth": 1.6}}
    options |= {"patch_artist": True, "boxprops": {"facecolor": "white", "edgecolor": colour}}
    axis.boxplot([numbers], positions=[x], widths=width, manage_ticks=False, **options)
