"""One HTML file with the curves of all runs: axes to switch, runs to switch on and off, settings under the pointer.

The file contains its data and the plotly library, and loads nothing from a network. Columns are stored as float32. A
run with more rounds than there is room for keeps some: half of them evenly, half by powers, so that its start is exact.
"""

import base64
import json
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.errors import needed, unknown
from mpifed.core.files import replacing
from mpifed.core.typing import Array
from mpifed.report import palette
from mpifed.report.curves import held, logarithmic, scaled, series, usual
from mpifed.report.metrics import available
from mpifed.report.plot import LOGS
from mpifed.report.settings import NAMED, THERE, Study, label, natural, select_runs, settings, study
from mpifed.report.style import Wishes
from mpifed.results.result import Result

ENDINGS = (".html", ".htm")
X = ("round", "exchanges", "bytes", "elapsed_seconds", "simulated_seconds")
Y = ("objective", "error", "grad_norm_sq", "accuracy", "personal_accuracy", "personal_objective")
POINTS = 60_000  # of all runs together
LEAST, MOST = 60, 1000  # points of a run
DASHES = ("solid", "dash", "dashdot", "dot", "longdashdot", "longdash", "8px,3px,8px,3px,2px,3px")  # as palette.LINES


class Page(NamedTuple):
    """The page, and how many of a run's rounds it shows at most."""

    text: str
    shown: int
    rounds: int

    def save(self, path: str | Path, force: bool = False) -> str:
        raw = self.text.encode()
        with replacing(path, force) as part:
            part.write_bytes(raw)
        thinned = f"; {self.shown} of {self.rounds} rounds of a run are shown" if self.shown < self.rounds else ""
        return f"{len(raw) / 1e6:.1f} MB{thinned}"


class Axis(NamedTuple):
    """A column of the page: its title, whether its axis should be logarithmic, and its values in every run."""

    title: str
    log: bool
    values: list[Array | None]


def interactive(
    results: Sequence[Result], x: str = "round", y: Sequence[str] | None = None, **wishes: Unpack[Wishes]
) -> Page:
    """The page of these results; ``x``, the first of ``y`` and ``log`` are what it shows at first.

    UserError for a column that no run has, and where plotly is not installed.
    """
    log = wishes.get("log")
    if log is not None and log not in LOGS:
        unknown("axis for log", log, LOGS)
    plotly = needed("plotly.offline", 'an interactive page needs plotly: pip install "mpifed[plot]"')
    results, note = select_runs(results, wishes.get("everything", False))
    groups = study(results, rename=wishes.get("rename") or ())
    known = [*available(results), "round"]
    names = [*(y or [usual(results, groups)]), *(name for name in Y if name in known)]
    xs = {series(results, name)[0]: name for name in (x, *(name for name in X if name in known))}
    ys = {series(results, name)[0]: name for name in names}
    axes = {key: axis(results, name, groups) for key, name in {**ys, **xs}.items()}
    kept = [thinned([axes[key].values[k] for key in ys], len(results)) for k in range(len(results))]
    data = {
        "title": " · ".join(words for words in (wishes.get("title"), note) if words),
        "axes": {key: {"title": one.title, "log": one.log} for key, one in axes.items()},
        "x": list(xs),
        "y": list(ys),
        "log": None if log is None else {"x": "x" in log, "y": "y" in log},
        "groups": described(groups),
        "settings": switches(results, groups),
        "runs": runs(results, groups, axes, kept),
    }
    rounds = max(len(result.rounds["round"]) for result in results)
    return Page(filled(data, str(plotly.get_plotlyjs())), max(map(len, kept)), rounds)


def axis(results: Sequence[Result], name: str, groups: Study) -> Axis:
    """A column with its values in the unit of its title."""
    key, values = series(results, name)
    factor, title = scaled(key, values, results, groups.names)
    log = name not in X and logarithmic(values, zero=name == "error")
    return Axis(title, log, [None if v is None else v / factor for v in values])


def thinned(columns: Sequence[Array | None], runs: int) -> Array:
    """The rows of a run that are shown: those that were evaluated, or some of them."""
    rows = np.flatnonzero(np.any([np.isfinite(column) for column in columns if column is not None], axis=0))
    most = int(np.clip(POINTS // runs, LEAST, MOST))
    if len(rows) <= most:
        return rows
    even = np.linspace(0, len(rows) - 1, most // 2)
    powers = np.geomspace(1, len(rows), most - most // 2) - 1
    return rows[np.unique(np.concatenate([even, powers]).round().astype(int))]


def described(groups: Study) -> list[dict[str, Any]]:
    looks = palette.looks([group.settings.get("algorithm", "") for group in groups.groups])
    dashes = [DASHES[palette.LINES.index(look["linestyle"])] for look in looks]
    blank = [palette.GAPS[look["linestyle"]] for look in looks]
    below = [sorted(blank).index(share) for share in blank]
    return [
        {"label": label(group, groups) or "all runs", "colour": look["color"], "dash": dash, "below": order}
        for group, look, dash, order in zip(groups.groups, looks, dashes, below, strict=True)
    ]


def switches(results: Sequence[Result], groups: Study) -> list[dict[str, Any]]:
    """The settings by which runs are switched on and off, the seed last: name, and values in order."""
    rows = [settings(result) for result in results]
    found = []
    for key, short in {**groups.keys, "seed": "seed"}.items():
        values = sorted({row[key] for row in rows if key in row}, key=natural)
        if len(values) > 1:
            shown = [groups.names.value(key, value) for value in values]
            found.append({"key": key, "name": groups.names.setting(key, short), "values": values, "shown": shown})
    return found


def runs(
    results: Sequence[Result], groups: Study, axes: dict[str, Axis], kept: Sequence[Array]
) -> list[dict[str, Any]]:
    """The runs, group by group: settings, what the pointer shows, and columns."""
    index = {id(result): k for k, result in enumerate(results)}
    found = []
    for number, group in enumerate(groups.groups):
        for run in group.runs:
            own = settings(run)
            k = index[id(run)]
            columns = {key: one.values[k] for key, one in axes.items()}
            hold = [key for key in axes if held(key, run)]
            switched = {key: own[key] for key in (*groups.keys, "seed") if key in own}
            data = {key: packed(values[kept[k]]) for key, values in columns.items() if values is not None}
            found.append({"group": number, "about": about(run, own), "settings": switched, "hold": hold, "data": data})
    return found


def about(run: Result, own: dict[str, str]) -> list[str]:
    """What the pointer shows of a run: its file and status, and a line of settings for each table."""
    tables: dict[str, list[str]] = {table: [] for table in NAMED}
    for key, value in own.items():
        table, _, name = key.partition(".")
        if value != THERE:
            tables.setdefault(table, []).append(f"{name} = {value}" if name else value)
    lines = [f"{table}: {', '.join(of)}" for table, of in tables.items() if of]
    return [f"{run.path or 'in memory'}: {run.status}", *lines]


def packed(values: Array) -> str:
    with np.errstate(over="ignore"):
        small = np.asarray(values, "<f4")
    return base64.b64encode(np.where(np.isfinite(small), small, np.float32("nan")).tobytes()).decode()


def filled(data: dict[str, Any], library: str) -> str:
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
