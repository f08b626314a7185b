"""One HTML file with the curves of all runs, with axes to choose, runs to hide, and settings under the pointer.

The file contains its data and the plotly library, and loads nothing from a network. Columns are stored as float32. A
run with too many rounds keeps some of them: half evenly, half by powers, so that its start is exact.
"""

import base64
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.errors import import_required, raise_unknown
from mpifed.core.files import replace_file
from mpifed.core.typing import Array
from mpifed.report import palette
from mpifed.report.curves import choose_axis_scale, collect_series, continues_after_end, default_metric, spans_decades
from mpifed.report.metrics import available_metrics
from mpifed.report.plot import LOGS
from mpifed.report.settings import (
    NAMED,
    THERE,
    RunGroups,
    group_label,
    group_runs,
    natural_sort_key,
    run_settings,
    select_runs,
)
from mpifed.report.style import PictureOptions
from mpifed.results.result import RunRecord

ENDINGS = (".html", ".htm")
X = ("round", "exchanges", "bytes", "elapsed_seconds", "simulated_seconds")
Y = ("objective", "error", "grad_norm_sq", "accuracy", "personal_accuracy", "personal_objective")
POINTS = 60_000  # of all runs together
LEAST, MOST = 60, 1000  # minimum and maximum points of a run
DASHES = ("solid", "dash", "dashdot", "dot", "longdashdot", "longdash", "8px,3px,8px,3px,2px,3px")  # as palette.LINES


class Page(NamedTuple):
    """A page, with the maximum number of rounds of a run that it shows."""

    text: str
    shown: int
    rounds: int

    def save(self, path: str | Path, force: bool = False) -> str:
        raw = self.text.encode()
        with replace_file(path, force) as part:
            part.write_bytes(raw)
        remark = f"; {self.shown} of {self.rounds} rounds of a run are shown" if self.shown < self.rounds else ""
        return f"{len(raw) / 1e6:.1f} MB{remark}"


class PageAxis(NamedTuple):
    """A column of the page: its title, whether its axis should be logarithmic, and its values in every run."""

    title: str
    log: bool
    values: list[Array | None]


def make_page(
    results: Sequence[RunRecord], x: str = "round", y: Sequence[str] | None = None, **wishes: Unpack[PictureOptions]
) -> Page:
    """Return the page of these results, which first shows ``x``, the first of ``y`` and the axes of ``log``.

    UserError for a column that no run has, and where plotly is not installed.
    """
    log = wishes.get("log")
    if log is not None and log not in LOGS:
        raise_unknown("axis for log", log, LOGS)
    plotly = import_required("plotly.offline", 'an interactive page needs plotly: pip install "mpifed[plot]"')
    results, note = select_runs(results, wishes.get("everything", False))
    groups = group_runs(results, rename=wishes.get("rename") or ())
    columns = [*available_metrics(results), "round"]
    names = [*(y or [default_metric(results, groups)]), *(name for name in Y if name in columns)]
    xs = {collect_series(results, name)[0]: name for name in (x, *(name for name in X if name in columns))}
    ys = {collect_series(results, name)[0]: name for name in names}
    axes = {key: make_axis(results, name, groups) for key, name in {**ys, **xs}.items()}
    kept_rows = [thin_rows([axes[key].values[k] for key in ys], len(results)) for k in range(len(results))]
    data = {
        "title": " · ".join(words for words in (wishes.get("title"), note) if words),
        "axes": {key: {"title": one.title, "log": one.log} for key, one in axes.items()},
        "x": list(xs),
        "y": list(ys),
        "log": None if log is None else {"x": "x" in log, "y": "y" in log},
        "groups": describe_groups(groups),
        "settings": list_switches(results, groups),
        "runs": describe_runs(results, groups, axes, kept_rows),
    }
    rounds = max(len(result.rounds["round"]) for result in results)
    return Page(fill_template(data, str(plotly.get_plotlyjs())), max(map(len, kept_rows)), rounds)


def make_axis(results: Sequence[RunRecord], name: str, groups: RunGroups) -> PageAxis:
    """Return a column with its values in the unit of its title."""
    key, values = collect_series(results, name)
    factor, title = choose_axis_scale(key, values, results, groups.names)
    log = name not in X and spans_decades(values, zero=name == "error")
    return PageAxis(title, log, [None if v is None else v / factor for v in values])


def thin_rows(columns: Sequence[Array | None], runs: int) -> Array:
    """Return the rows of a run that are shown: those that were evaluated, or some of them."""
    rows = np.flatnonzero(np.any([np.isfinite(column) for column in columns if column is not None], axis=0))
    limit = int(np.clip(POINTS // runs, LEAST, MOST))
    if len(rows) <= limit:
        return rows
    even = np.linspace(0, len(rows) - 1, limit // 2)
    powers = np.geomspace(1, len(rows), limit - limit // 2) - 1
    return rows[np.unique(np.concatenate([even, powers]).round().astype(int))]


def describe_groups(groups: RunGroups) -> list[dict[str, Any]]:
    looks = palette.curve_styles([group.settings.get("algorithm", "") for group in groups.groups])
    dashes = [DASHES[palette.LINES.index(look["linestyle"])] for look in looks]
    blank = [palette.GAPS[look["linestyle"]] for look in looks]
    ranks = [sorted(blank).index(gap) for gap in blank]
    return [
        {"label": group_label(group, groups) or "all runs", "colour": look["color"], "dash": dash, "below": order}
        for group, look, dash, order in zip(groups.groups, looks, dashes, ranks, strict=True)
    ]


def list_switches(results: Sequence[RunRecord], groups: RunGroups) -> list[dict[str, Any]]:
    """Return the settings by which runs are shown or hidden, the seed last, with names and sorted values."""
    rows = [run_settings(result) for result in results]
    switches = []
    for key, short in {**groups.keys, "seed": "seed"}.items():
        values = sorted({row[key] for row in rows if key in row}, key=natural_sort_key)
        if len(values) > 1:
            shown = [groups.names.value(key, value) for value in values]
            switches.append({"key": key, "name": groups.names.setting(key, short), "values": values, "shown": shown})
    return switches


def describe_runs(
    results: Sequence[RunRecord], groups: RunGroups, axes: dict[str, PageAxis], kept_rows: Sequence[Array]
) -> list[dict[str, Any]]:
    """Return the runs, group by group, with their settings, the text for the pointer, and columns."""
    index = {id(result): k for k, result in enumerate(results)}
    entries = []
    for number, group in enumerate(groups.groups):
        for run in group.runs:
            config = run_settings(run)
            k = index[id(run)]
            columns = {key: one.values[k] for key, one in axes.items()}
            hold = [key for key in axes if continues_after_end(key, run)]
            switched = {key: config[key] for key in (*groups.keys, "seed") if key in config}
            data = {key: encode_column(values[kept_rows[k]]) for key, values in columns.items() if values is not None}
            entries.append(
                {"group": number, "about": describe_run(run, config), "settings": switched, "hold": hold, "data": data}
            )
    return entries


def describe_run(run: RunRecord, config: dict[str, str]) -> list[str]:
    """Return the text for the pointer: file and status of a run, and a line of settings for each table."""
    tables: dict[str, list[str]] = {table: [] for table in NAMED}
    for key, value in config.items():
        table, _, name = key.partition(".")
        if value != THERE:
            tables.setdefault(table, []).append(f"{name} = {value}" if name else value)
    lines = [f"{table}: {', '.join(parts)}" for table, parts in tables.items() if parts]
    return [f"{run.path or 'in memory'}: {run.status}", *lines]


def encode_column(values: Array) -> str:
    with np.errstate(over="ignore"):
        small = np.asarray(values, "<f4")
    return base64.b64encode(np.where(np.isfinite(small), small, np.float32("nan")).tobytes()).decode()


def fill_template(data: dict[str, Any], library: str) -> str:
    here = files("mpifed.report")
    parts = {
        "library": library,
        "program": (here / "interactive.js").read_text("utf-8"),
        # The name of a file may hold </script> or <!--<script>, which would end or lengthen the element of the data.
        "data": json.dumps(data, ensure_ascii=False).replace("<", "\\u003c"),
    }
    text = (here / "interactive.html").read_text("utf-8")
    for name, part in parts.items():
        text = text.replace(f"/* {name} */", part, 1)
    return text
