"""Numbers of clients: the table of `mpifed compare --clients`, and the picture of `mpifed plot --clients`."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Unpack

import numpy as np

from mpifed.core.errors import UserError, raise_unknown
from mpifed.core.typing import Array
from mpifed.report import palette
from mpifed.report.axes import ABOVE
from mpifed.report.compare import TableOptions, format_with_notes, make_leading_table, mean_and_sd, number_runs
from mpifed.report.curves import arrange_runs
from mpifed.report.metrics import available_metrics, samples_prefix
from mpifed.report.settings import RunGroup, group_runs
from mpifed.report.style import DOUBLE, PictureOptions, check_width, escape_dollars, figure_with_legend
from mpifed.report.tables import Number, ReportTable, escape_latex
from mpifed.results.columns import EVALUATED_ON, Columns, client_column_info
from mpifed.results.over_clients import SPREADS, client_metrics, summarise_clients
from mpifed.results.result import RunRecord

WHO = {"trained": "by_client", "unseen": "unseen"}  # clients -> the field of a result with their numbers
MODELS = ("{}", "{}_after", "personal_{}")  # a number at the server's model, after local steps, at a personal model
HEADS = {"worst_tenth": "worst tenth", "iqr": "IQR"}
QUANTILES = np.linspace(0, 1, 101)
NOTE = "with markers: mean over clients; thin: worst tenth"
MODEL_NAMES = ("server's\nmodel", "after own\nsteps", "personal\nmodel")


class ClientRow(NamedTuple):
    """A row: one number of some clients of a group; ``spreads`` has mean and deviation over its runs, by name."""

    group: int
    who: str
    name: str
    spreads: dict[str, Number]


def client_tables(result: RunRecord, who: str) -> Columns:
    """Return the tables of the clients that trained, or of those that never did; empty where none are stored."""
    return getattr(result, WHO[who])


def training_prefix(runs: Sequence[RunRecord], who: str) -> str:
    """Return "training " before the name of a number on training samples; else nothing."""
    key = EVALUATED_ON["unseen" if who == "unseen" else "clients"]
    return samples_prefix(str(run.attrs[key]) for run in runs if key in run.attrs)


def runs_with_metric(runs: Sequence[RunRecord], who: str, name: str) -> list[RunRecord]:
    """Return the runs that have a number of clients in at least one round; a killed run may have none."""
    return [run for run in runs if len(client_tables(run, who).get(name, ()))]


def client_metric_names(results: Sequence[RunRecord], wanted: Sequence[str] | None) -> list[str]:
    """Return the numbers of clients in results, or those ``wanted``, at all models. UserError for one that none has."""
    tables = [client_tables(result, who) for who in WHO for result in results]
    recorded = dict.fromkeys(name for table in tables for name in client_metrics(table))
    if not recorded:
        raise UserError("no result has numbers of clients: evaluate.clients or evaluate.unseen asks for some")
    for name in wanted or ():
        if name not in recorded:
            raise_unknown("number of clients", name, recorded)
    forms = dict.fromkeys(form.format(name) for name in wanted or recorded for form in MODELS)
    return [name for name in forms if name in recorded]


def compare_clients(results: Sequence[RunRecord], layout: TableOptions) -> str:
    """Return the table: for each group and each number a row of the clients that trained, and one of the unseen
    clients.

    Mean, worst tenth, standard deviation, interquartile range, minimum and maximum are over clients in the last
    evaluation; of several runs their mean ± standard deviation over ``layout.by``. UserError also where no run counts.
    """
    names = client_metric_names(results, layout.columns)
    taken = [*available_metrics(results), "n", "status", "clients", "number"]
    groups = group_runs(results, layout.by, taken, layout.rename)
    rows = [row for k, group in enumerate(groups.groups) for row in group_rows(k, group, names, layout)]
    if not rows:
        raise UserError("no run with numbers of clients has finished: --all counts the others too")
    head = make_leading_table(groups, results, layout)
    table = ReportTable(head.heads, head.names, [[*head.rows[row.group]] for row in rows], head.factors)
    if len({row.who for row in rows}) > 1:
        table.add(("clients", "clients"), "clients", (row.who for row in rows))
    titles = (training_prefix(groups.groups[row.group].runs, row.who) + row.name.replace("_", " ") for row in rows)
    names_of_rows = (groups.names.of(printed, row.name) for printed, row in zip(titles, rows, strict=True))
    table.add(("number", "number"), "number", names_of_rows)
    for key in SPREADS:
        if key != "missing" or any(row.spreads[key].mean for row in rows):
            words = HEADS.get(key, key)
            table.add((words, escape_latex(words)), key, (row.spreads[key] for row in rows))
    return format_with_notes(table, groups, layout)


def group_rows(number: int, group: RunGroup, names: Sequence[str], layout: TableOptions) -> list[ClientRow]:
    runs = group.runs_that_count(layout.everything)
    pairs = [(who, name) for who in WHO for name in names if any(name in client_tables(run, who) for run in runs)]
    return [ClientRow(number, who, name, final_spreads(runs, who, name, layout)) for who, name in pairs]


def final_spreads(runs: Sequence[RunRecord], who: str, name: str, layout: TableOptions) -> dict[str, Number]:
    """Return the spreads of a number in the last evaluation of the runs that have it."""
    runs_here = runs_with_metric(runs, who, name)
    found = [summarise_clients(client_tables(run, who), name) for run in runs_here]
    numbers = number_runs(runs_here, layout.by)
    return {
        key: mean_and_sd({number: float(table[key][-1]) for number, table in zip(numbers, found, strict=True)})
        for key in SPREADS
    }


class GroupLine(NamedTuple):
    """The runs of a group, with the style of their curves."""

    runs: Sequence[RunRecord]
    look: dict[str, Any]


def plot_clients(results: Sequence[RunRecord], y: Sequence[str] | None = None, **wishes: Unpack[PictureOptions]) -> Any:
    """Draw a row of panels for each number ``y``, by default the first that results have.

    The panels are its mean and worst tenth by round; the clients of the last evaluation by rising number; and, where
    some never train, their mean and worst tenth at the server's model, after local steps and at personal models. Of
    several runs of a group the mean is drawn. UserError where no result has numbers of clients, or none of this name.
    """
    results, groups, labels, looks, note = arrange_runs(results, wishes)
    recorded = client_metric_names(results, y)
    names = list(y or recorded[:1])
    lines = [
        GroupLine(group.runs, look | {"zorder": ABOVE + palette.GAPS[look["linestyle"]]})
        for group, look in zip(groups.groups, looks, strict=True)
    ]
    panels = [(draw_by_round, "trained"), (draw_by_rank, "trained"), (draw_by_model, "unseen")]
    drawn = [
        (draw, who) for draw, who in panels if any(name in client_tables(run, who) for run in results for name in names)
    ]
    width = check_width(wishes.get("width"), DOUBLE)
    words = (wishes.get("title"), NOTE, note)
    with figure_with_legend(width, (len(names), len(drawn)), labels, looks, words) as (figure, axes):
        for row, name in zip(axes, names, strict=True):
            title = client_column_info(name).symbol or name.replace("_", " ")
            for axis, (draw, who) in zip(row, drawn, strict=True):
                draw(axis, lines, name)
                axis.set_ylabel(escape_dollars(groups.names.of(training_prefix(results, who) + title, name)))
    return figure


def thin_style(look: dict[str, Any]) -> dict[str, Any]:
    return {key: look[key] for key in ("color", "linestyle", "zorder")} | {"linewidth": 0.6}


def marker_positions(number: int, lines: Sequence[GroupLine], step: int) -> tuple[int, int]:
    """Return offset and step of the markers of a curve, in turn, so that none hides a marker of another."""
    return number * step // len(lines), step


def draw_by_round(axis: Any, lines: Sequence[GroupLine], name: str) -> None:
    """Draw mean and worst tenth over the rounds that all runs of a group have evaluated."""
    axis.set_xlabel("round")
    for number, (runs, look) in enumerate(lines):
        tables = [
            summarise_clients(client_tables(run, "trained"), name) for run in runs_with_metric(runs, "trained", name)
        ]
        if tables:
            count = min(len(table["round"]) for table in tables)
            equal = np.all([table["round"][:count] == tables[0]["round"][:count] for table in tables], axis=0)
            rounds = tables[0]["round"][:count][equal]
            mean, worst = (
                np.mean([table[key][:count][equal] for table in tables], axis=0) for key in ("mean", "worst_tenth")
            )
            axis.plot(rounds, mean, **look, markevery=marker_positions(number, lines, max(1, len(rounds) // 8)))
            axis.plot(rounds, worst, **thin_style(look))


def draw_by_rank(axis: Any, lines: Sequence[GroupLine], name: str) -> None:
    """Draw the quantiles over the clients of the last evaluation; of several runs the mean of their quantiles."""
    axis.set_xlabel("clients (%), by rising number")
    for number, (runs, look) in enumerate(lines):
        rows = [last_values(run, "trained", name) for run in runs_with_metric(runs, "trained", name)]
        if rows:
            quantiles = np.mean([np.quantile(row, QUANTILES) for row in rows], axis=0)
            axis.plot(100 * QUANTILES, quantiles, **look, markevery=marker_positions(number, lines, 12))


def draw_by_model(axis: Any, lines: Sequence[GroupLine], name: str) -> None:
    """Draw mean and worst tenth of the clients that never train, over the models at which they are tested."""
    columns = {column for runs, _ in lines for run in runs for column in client_metrics(client_tables(run, "unseen"))}
    forms = [form for form in MODELS if form.format(name) in columns]
    if len(forms) < 2:  # there are no other models than the server's
        axis.remove()
    axis.set_xticks(
        range(len(forms)), [words for form, words in zip(MODELS, MODEL_NAMES, strict=True) if form in forms]
    )
    axis.set(xlim=(-0.3, len(forms) - 0.7), xlabel="clients that never train")
    for runs, look in lines:
        for key, style in (("mean", look), ("worst_tenth", thin_style(look))):
            points = []
            for column in [form.format(name) for form in forms]:
                counted = runs_with_metric(runs, "unseen", column)
                values = [summarise_clients(client_tables(run, "unseen"), column)[key][-1] for run in counted]
                points.append(float(np.mean(values)) if values else np.nan)
            axis.plot(range(len(forms)), points, **style)


def last_values(run: RunRecord, who: str, name: str) -> Array:
    """Return the number of each client in the last evaluation, without the clients that have none."""
    row = client_tables(run, who)[name][-1]
    return row[~np.isnan(row)] if not np.isnan(row).all() else np.full(1, np.nan)
