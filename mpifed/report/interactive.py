"""One HTML file with the curves of all runs, made by plotly, with menus for its axes and for the runs that it shows.

The file contains its data and the plotly library, and loads nothing from a network. Columns are stored as float32. A
run with too many rounds keeps some of them: half evenly, half by powers, so that its start is exact.
"""

import base64
import textwrap
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.errors import import_required, raise_unknown
from mpifed.core.files import replace_file
from mpifed.core.typing import Array
from mpifed.report import curves, palette, settings
from mpifed.report.axes import clip_to_floor, floor_level
from mpifed.report.curves import Picture, Series
from mpifed.report.metrics import available_metrics
from mpifed.report.plot import LOGS
from mpifed.report.settings import RunGroups, run_settings
from mpifed.report.style import PictureOptions
from mpifed.results.result import RunRecord

ENDINGS = (".html", ".htm")
X = ("round", "exchanges", "bytes", "elapsed_seconds", "simulated_seconds")
Y = ("objective", "error", "grad_norm_sq", "accuracy", "personal_accuracy", "personal_objective")
ALL_POINTS = 40_000  # of all runs together
LEAST, MOST = 60, 1000  # minimum and maximum points of a run
# as palette.LINES
DASHES = ("solid", "dash", "dashdot", "dot", "longdashdot", "longdash", "8px,3px,8px,3px,2px,3px", "3px,6px")
FOLD = 64  # letters of a line under the pointer
HEIGHT = 560  # pixels of a page
ENTRY = 22  # pixels of an entry of its legend
ENTRIES = 12  # entries of a legend that make a page higher
MENU = 40  # pixels from a menu to the next one
TEMPLATE = (
    "<b>%{fullData.name}</b><br>%{xaxis.title.text}: %{x:.6~g}<br>%{yaxis.title.text}: %{y:.6~g}<br>%{fullData.text}"
)
ON_FLOOR = TEMPLATE.replace("%{y:", "%{customdata:")  # points on the floor line of a logarithmic axis are not there
HELP = """The menus choose the axes, and which runs are shown. Click a name below the picture to switch it off or
on, double-click for it alone. Drag to zoom, double-click the picture to zoom out. The pointer shows settings."""
SHELL = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>mpifed: runs</title>
<style>body {{ margin: 8px; font: 14px/1.4 system-ui, sans-serif; color: #222 }} p {{ margin: 0 0 8px }}</style>
</head>
<body>
{paragraphs}
{picture}
</body>
</html>
"""


class Page(NamedTuple):
    """A page: its figure of plotly, the words above it, and how many rounds of a run it shows at most."""

    figure: Any
    heading: str
    shown: int
    rounds: int

    def to_html(self) -> str:
        config = {"responsive": True, "displaylogo": False, "toImageButtonOptions": {"format": "svg"}}
        picture = self.figure.to_html(config, include_plotlyjs=True, full_html=False)
        paragraphs = "\n".join(f"<p>{escape(words)}</p>" for words in (self.heading, HELP) if words)
        return SHELL.format(paragraphs=paragraphs, picture=picture)

    def save(self, path: str | Path, force: bool = False) -> str:
        raw = self.to_html().encode()
        with replace_file(path, force) as part:
            part.write_bytes(raw)
        remark = f"; {self.shown} of {self.rounds} rounds of a run are shown" if self.shown < self.rounds else ""
        return f"{len(raw) / 1e6:.1f} MB{remark}"


class PageLine(NamedTuple):
    """A line of the page: a run, or the mean of the runs of a group, with numbers of runs, and of rows or rounds."""

    group: int
    runs: list[int]
    points: Array  # rows of the run; rounds of a mean
    config: settings.Settings


def make_page(
    results: Sequence[RunRecord], x: str = "round", y: Sequence[str] | None = None, **wishes: Unpack[PictureOptions]
) -> Page:
    """Return the page of these results, which first shows ``x``, the first of ``y`` and the axes of ``log``.

    UserError for a column that no run has, and where plotly is not installed.
    """
    log = wishes.get("log")
    if log is not None and log not in LOGS:
        raise_unknown("axis for log", log, LOGS)
    picture = curves.arrange_runs(results, wishes)
    results, groups, *_ = picture
    recorded = [*available_metrics(results), "round"]
    names = [*(y or [curves.default_metric(results, groups)]), *(name for name in Y if name in recorded)]
    xs = collect_once(picture, [x, *(name for name in X if name in recorded)])
    ys = collect_once(picture, names)
    rows = [thin_rows([column.values[k] for column in ys], len(results)) for k in range(len(results))]
    lines = page_lines(results, groups, rows)
    menus = [
        axis_menu("y", results, ys, lines, None if log is None else "y" in log),
        axis_menu("x", results, xs, lines, "x" in (log or "")),
        run_menu(lines, groups),
    ]
    figure = draw_page(picture, lines, menus)
    title = " · ".join(words for words in (wishes.get("title"), picture.note) if words)
    return Page(figure, title, max(map(len, rows)), max(len(result.rounds["round"]) for result in results))


def collect_once(picture: Picture, names: Sequence[str]) -> list[Series]:
    """Return columns, each once also where it has two names."""
    columns = [curves.scale_series(picture, name) for name in names]
    return list({column.name: column for column in columns}.values())


def thin_rows(columns: Sequence[Array | None], runs: int) -> Array:
    """Return the rows of a run that are shown: those that were evaluated, or some of them."""
    rows = np.flatnonzero(np.any([np.isfinite(column) for column in columns if column is not None], axis=0))
    limit = int(np.clip(ALL_POINTS // runs, LEAST, MOST))
    if len(rows) <= limit:
        return rows
    even = np.linspace(0, len(rows) - 1, limit // 2)
    powers = np.geomspace(1, len(rows), limit - limit // 2) - 1
    return rows[np.unique(np.concatenate([even, powers]).round().astype(int))]


def page_lines(results: Sequence[RunRecord], groups: RunGroups, rows: Sequence[Array]) -> list[PageLine]:
    """Return the lines of all groups: the mean of a group of several runs, and each run."""
    index = {id(result): k for k, result in enumerate(results)}
    lines = []
    for number, group in enumerate(groups.groups):
        runs = [index[id(run)] for run in group.runs]
        if len(runs) > 1:
            rounds = np.unique(np.concatenate([results[k].rounds["round"][rows[k]] for k in runs]))
            few = np.linspace(0, len(rounds) - 1, min(len(rounds), curves.POINTS)).round().astype(int)
            lines.append(PageLine(number, runs, rounds[few], group.settings))
        lines += [PageLine(number, [k], rows[k], run_settings(results[k])) for k in runs]
    return lines


def axis_menu(
    axis: str, results: Sequence[RunRecord], columns: Sequence[Series], lines: Sequence[PageLine], log: bool | None
) -> dict[str, Any]:
    """Return the menu of an axis: each column on a linear and on a logarithmic axis, the first as ``log`` says."""
    buttons = []
    scales = []
    for column in columns:
        error = column.name in ("error", "objective_gap")
        usual = axis == "y" and curves.spans_decades(column.values, zero=error)
        for logarithmic in (usual, not usual):
            if not logarithmic or any((values > 0).any() for values in column.values if values is not None):
                buttons.append(axis_button(axis, results, column, lines, logarithmic))
                scales += [logarithmic] if column is columns[0] else []
    active = scales.index(log) if log in scales else 0
    return {"buttons": buttons, "active": active}


def axis_button(
    axis: str, results: Sequence[RunRecord], column: Series, lines: Sequence[PageLine], log: bool
) -> dict[str, Any]:
    """Return the entry of a menu that shows a column on an axis; on y, non-positive numbers then stand on a floor."""
    title = escape_text(column.title)
    above = log and axis == "y"
    floor = floor_level(values for values in column.values if values is not None) if above else None
    numbers = [line_values(line, results, column, floor, above) for line in lines]
    change: dict[str, Any] = {axis: [encode_numbers(values) for values in numbers]}
    look: dict[str, Any] = {f"{axis}axis.type": "log" if log else "linear", f"{axis}axis.title.text": title}
    if axis == "y":
        change["hovertemplate"] = [f"{TEMPLATE if floor is None else ON_FLOOR}<extra></extra>"]
        change["customdata"] = [None]
        look |= {"annotations[0].visible": floor is not None, "shapes[0].visible": floor is not None}
    if floor is not None:
        change["customdata"] = [encode_numbers(line_values(line, results, column, None, False)) for line in lines]
        look |= {"annotations[0].y": float(np.log10(floor)), "shapes[0].y0": floor, "shapes[0].y1": floor}
    label = f"{axis}: {title}{', logarithmic' if log else ''}"
    return {"label": label, "method": "update", "args": [change, look | {f"{axis}axis.autorange": True}]}


def line_values(
    line: PageLine, results: Sequence[RunRecord], column: Series, floor: float | None, geometric: bool
) -> Array:
    """Return the numbers of a column along a line; of several runs their mean by round, geometric or not."""
    columns = [(k, column.values[k]) for k in line.runs]
    recorded = [(k, values) for k, values in columns if values is not None and np.isfinite(values).any()]
    if not recorded:
        return np.full(len(line.points), np.nan)
    if len(line.runs) == 1:
        return clip_to_floor(recorded[0][1][line.points], floor)
    points = []
    for k, values in recorded:
        measured = np.isfinite(values)
        rounds = np.asarray(results[k].rounds["round"], float)[measured]
        points.append((rounds, clip_to_floor(values[measured], floor)))
    hold = [curves.continues_after_end(column.name, results[k]) for k, _ in recorded]
    rows = curves.interpolate_runs(line.points.astype(float), points, hold, geometric)
    counts = np.isfinite(rows).sum(axis=0)
    means = np.where(counts > 0, np.nansum(rows, axis=0) / np.maximum(counts, 1), np.nan)
    # As in a picture a mean begins where all curves have begun.
    means[line.points < max(rounds[0] for rounds, _ in points)] = np.nan
    return np.exp(means) if geometric else means


def run_menu(lines: Sequence[PageLine], groups: RunGroups) -> dict[str, Any]:
    """Return the menu of runs: means over seeds, every run, and those with one value of a setting or of the seed."""
    alone = {line.group for line in lines} - {line.group for line in lines if len(line.runs) > 1}
    single = [len(line.runs) == 1 for line in lines]
    means = [len(line.runs) > 1 or line.group in alone for line in lines]
    shown = {"means over seeds": means} if means != single else {}
    shown["every run"] = single
    for key, short in {**groups.keys, "seed": "seed"}.items():
        values = {line.config[key] for line in lines if key in line.config}
        chosen = single if key == "seed" else means
        for value in sorted(values, key=settings.natural_sort_key) if len(values) > 1 else ():
            words = groups.names.value(key, value) if key in settings.NAMED else groups.names.part(key, short, value)
            shown[words] = [flag and line.config.get(key) == value for flag, line in zip(chosen, lines, strict=True)]
    buttons = []
    for words, flags in shown.items():
        of_groups = [line.group if flag else -1 for flag, line in zip(flags, lines, strict=True)]
        named = [
            flag and of_groups.index(group) == k for k, (flag, group) in enumerate(zip(flags, of_groups, strict=True))
        ]
        change = {"visible": flags, "showlegend": named}
        buttons.append({"label": f"show: {escape_text(words)}", "method": "restyle", "args": [change]})
    return {"buttons": buttons, "active": 0, "visible": len(buttons) > 1}


def draw_page(picture: Picture, lines: Sequence[PageLine], menus: Sequence[dict[str, Any]]) -> Any:
    """Return the figure, in the state of the active entry of each menu."""
    plotly = import_required("plotly.graph_objects", 'an interactive page needs plotly: pip install "mpifed[plot]"')
    axis = {"exponentformat": "power", "gridcolor": "#e5e5e5", "zeroline": False, "automargin": True}
    left = {"xref": "paper", "x": 0, "xanchor": "left", "yanchor": "bottom", "showarrow": False}
    dots = {"type": "line", "line": {"color": "#777", "width": 1, "dash": "dot"}, "xref": "paper", "x0": 0, "x1": 1}
    layout: dict[str, Any] = {
        "xaxis": axis,
        "yaxis": axis,
        "annotations": [{**left, "text": "≤ 0"}],
        "shapes": [dots],
        "hovermode": "closest",
        "hoverlabel": {"align": "left", "font": {"size": 11}, "namelength": -1, "bgcolor": "white"},
        "template": "none",
        "modebar": {"orientation": "v"},
        "showlegend": True,
        "legend": {"orientation": "h", "yanchor": "top", "y": -0.18, "x": 0},
        "height": HEIGHT + ENTRY * min(len(picture.labels), ENTRIES),
        "margin": {"l": 10, "r": 10, "t": 10, "b": 10},
    }
    above = {"x": 0, "xanchor": "left", "y": 1, "yanchor": "bottom"}
    layout["updatemenus"] = [{**menu, **above, "pad": {"b": 8 + MENU * (2 - row)}} for row, menu in enumerate(menus)]
    figure = plotly.Figure({"data": style_lines(picture, lines), "layout": layout})
    for menu in menus:
        button = menu["buttons"][menu["active"]]
        getattr(figure, f"plotly_{button['method']}")(*button["args"])
    return figure


def style_lines(picture: Picture, lines: Sequence[PageLine]) -> list[dict[str, Any]]:
    """Return the traces of lines without their numbers: names, colours, and the text under the pointer."""
    blank = [palette.GAPS[look["linestyle"]] for look in picture.looks]
    traces = []
    for line in lines:
        look = picture.looks[line.group]
        thin = len(line.runs) == 1 and len(picture.groups.groups[line.group].runs) > 1
        words = describe_run(picture.results[line.runs[0]])
        if len(line.runs) > 1:
            words = [f"mean of {len(line.runs)} runs", words[1]]
        dash = DASHES[palette.LINES.index(look["linestyle"])]
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "connectgaps": True,
                "name": escape_text(picture.labels[line.group] or "all runs"),
                "legendgroup": str(line.group),
                "zorder": sorted(blank).index(blank[line.group]),
                "line": {"color": look["color"], "dash": dash, "width": 1 if thin else 1.8},
                "opacity": 0.6 if thin else 1,
                "text": "<br>".join(fold_words(text) for text in words),
            }
        )
    return traces


def describe_run(run: RunRecord) -> list[str]:
    """Return the text for the pointer: file and status of a run, and its settings, the seed last."""
    config = {key: value for key, value in run_settings(run).items() if value != settings.THERE}
    seed = {"seed": config.pop("seed")} if "seed" in config else {}
    lines = [", ".join(f"{key} = {value}" for key, value in part.items()) for part in (config, seed)]
    return [f"{run.path or 'in memory'}: {run.status}", *lines]


def fold_words(text: str) -> str:
    """Return text in lines of at most FOLD letters, which plotly does not break."""
    lines = textwrap.wrap(text, FOLD, subsequent_indent="\u00a0\u00a0\u00a0\u00a0")
    return "<br>".join(map(escape_text, lines))


def escape_text(text: str) -> str:
    """Return text without what plotly would read as a tag, an entity or a variable."""
    return escape(text, quote=False).replace("%", "&#37;")


def encode_numbers(values: Array) -> dict[str, str]:
    """Return an array as plotly stores it in JSON, in single precision; NaN for what is not finite."""
    with np.errstate(over="ignore"):
        small = np.asarray(values, "<f4")
    small = np.where(np.isfinite(small), small, np.float32("nan"))
    return {"dtype": "f4", "bdata": base64.b64encode(small.tobytes()).decode()}
