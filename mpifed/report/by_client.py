"""The table of `mpifed compare --clients`: numbers of clients at the end of runs, over all clients."""

from collections.abc import Sequence
from typing import NamedTuple

from mpifed.core.errors import UserError, raise_unknown
from mpifed.report import best
from mpifed.report.compare import TableOptions, format_with_notes, make_leading_table
from mpifed.report.metrics import available_metrics, samples_prefix
from mpifed.report.settings import RunGroup, group_runs
from mpifed.report.tables import Number, ReportTable, escape_latex
from mpifed.results.columns import EVALUATED_ON, Columns
from mpifed.results.over_clients import SPREADS, client_metrics, summarise_clients
from mpifed.results.result import RunRecord

WHO = {"trained": "by_client", "unseen": "unseen"}  # clients -> the field of a result with their numbers
MODELS = ("{}", "{}_after", "personal_{}")  # a number at the server's model, after local steps, at a personal model
HEADS = {"worst_tenth": "worst tenth", "iqr": "IQR"}


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
    recorded = dict.fromkeys(
        name for who in WHO for result in results for name in client_metrics(client_tables(result, who))
    )
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
    groups = group_runs(
        results, layout.by, [*available_metrics(results), "n", "status", "clients", "number"], layout.rename
    )
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
    runs = [run for run in group.runs if layout.everything or run.status == "finished"]
    pairs = [(who, name) for who in WHO for name in names if any(name in client_tables(run, who) for run in runs)]
    return [ClientRow(number, who, name, final_spreads(runs, who, name, layout)) for who, name in pairs]


def final_spreads(runs: Sequence[RunRecord], who: str, name: str, layout: TableOptions) -> dict[str, Number]:
    """Return the spreads of a number in the last evaluation of the runs that have it."""
    runs_here = runs_with_metric(runs, who, name)
    spreads = {id(run): summarise_clients(client_tables(run, who), name) for run in runs_here}
    return {
        key: best.mean_and_sd(
            best.values_by_seed(runs_here, layout.by, {id(run): float(spreads[id(run)][key][-1]) for run in runs_here})
        )
        for key in SPREADS
    }
