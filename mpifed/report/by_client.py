"""`mpifed compare --clients`: numbers of clients at the end of runs, over all clients."""

from collections.abc import Sequence
from typing import NamedTuple

from mpifed.core.errors import UserError, unknown
from mpifed.report import best
from mpifed.report.compare import Layout, leading, noted
from mpifed.report.metrics import available, before
from mpifed.report.settings import Group, study
from mpifed.report.tables import Number, Table, escaped
from mpifed.results.columns import EVALUATED_ON, Columns
from mpifed.results.over_clients import SPREADS, client_columns, over_clients
from mpifed.results.result import Result

WHO = {"trained": "by_client", "unseen": "unseen"}  # clients, and where a result has their numbers
MODELS = ("{}", "{}_after", "personal_{}")  # a number at the server's model, after own steps, at a personal model
HEADS = {"worst_tenth": "worst tenth", "iqr": "IQR"}


class Row(NamedTuple):
    """A number of some clients of a group: ``spreads`` by name, mean and deviation over its runs."""

    group: int
    who: str
    name: str
    spreads: dict[str, Number]


def stored(result: Result, who: str) -> Columns:
    """The tables of the clients that trained or never did; empty where none are stored."""
    return getattr(result, WHO[who])


def training(runs: Sequence[Result], who: str) -> str:
    """What stands before the name of a number of clients that is over training samples; else nothing."""
    key = EVALUATED_ON["unseen" if who == "unseen" else "clients"]
    return before(str(run.attrs[key]) for run in runs if key in run.attrs)


def evaluated(runs: Sequence[Result], who: str, name: str) -> list[Result]:
    """The runs that have a number of clients in one round at least; one that was killed may have none."""
    return [run for run in runs if len(stored(run, who).get(name, ()))]


def numbers_of(results: Sequence[Result], wanted: Sequence[str] | None) -> list[str]:
    """The numbers of clients that results have, or those ``wanted``, at all models. UserError for one none has."""
    there = dict.fromkeys(name for who in WHO for result in results for name in client_columns(stored(result, who)))
    if not there:
        raise UserError("no result has numbers of clients: evaluate.clients or evaluate.unseen asks for some")
    for name in wanted or ():
        if name not in there:
            unknown("number of clients", name, there)
    forms = dict.fromkeys(form.format(name) for name in wanted or there for form in MODELS)
    return [name for name in forms if name in there]


def by_client(results: Sequence[Result], layout: Layout) -> str:
    """The table: a row for each group of runs, for those clients that trained and those that never did, and number.

    Mean, worst tenth, standard deviation, interquartile range, least and largest are over clients in the last
    evaluation; of several runs their mean ± standard deviation over ``layout.by``. UserError also where no run counts.
    """
    names = numbers_of(results, layout.columns)
    groups = study(results, layout.by, [*available(results), "n", "status", "clients", "number"], layout.rename)
    rows = [row for k, group in enumerate(groups.groups) for row in rows_of(k, group, names, layout)]
    if not rows:
        raise UserError("no run with numbers of clients has finished: --all counts the others too")
    head = leading(groups, results, layout)
    table = Table(head.heads, head.names, [[*head.rows[row.group]] for row in rows], head.factors)
    if len({row.who for row in rows}) > 1:
        table.add(("clients", "clients"), "clients", (row.who for row in rows))
    called = (training(groups.groups[row.group].runs, row.who) + row.name.replace("_", " ") for row in rows)
    names_of_rows = (groups.names.of(printed, row.name) for printed, row in zip(called, rows, strict=True))
    table.add(("number", "number"), "number", names_of_rows)
    for key in SPREADS:
        if key != "missing" or any(row.spreads[key].mean for row in rows):
            words = HEADS.get(key, key)
            table.add((words, escaped(words)), key, (row.spreads[key] for row in rows))
    return noted(table, groups, layout)


def rows_of(number: int, group: Group, names: Sequence[str], layout: Layout) -> list[Row]:
    runs = [run for run in group.runs if layout.everything or run.status == "finished"]
    pairs = [(who, name) for who in WHO for name in names if any(name in stored(run, who) for run in runs)]
    return [Row(number, who, name, ends(runs, who, name, layout)) for who, name in pairs]


def ends(runs: Sequence[Result], who: str, name: str, layout: Layout) -> dict[str, Number]:
    """The spreads of a number in the last evaluation of runs that have it."""
    own = evaluated(runs, who, name)
    found = {id(run): over_clients(stored(run, who), name) for run in own}
    return {
        key: best.number(best.by_seed(own, layout.by, {id(run): float(found[id(run)][key][-1]) for run in own}))
        for key in SPREADS
    }
