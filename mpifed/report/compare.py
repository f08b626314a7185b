"""Runs in a table: a row for all that differ in nothing but the seed, mean ± standard deviation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from mpifed.core.errors import printable, unknown
from mpifed.report import tables
from mpifed.report.groups import Group, Study, natural, study
from mpifed.report.metrics import better, chosen, final, known, latex_title, scale, title, unit
from mpifed.report.summary import count
from mpifed.report.tables import ABSENT, Number, Table
from mpifed.results.result import Result

FORMATS: dict[str, Callable[[Table], str]] = {
    "terminal": tables.terminal,
    "markdown": tables.markdown,
    "latex": tables.latex,
    "csv": tables.comma_separated,
}
WORLD = ("data", "problem")  # rows that differ in these settings do not compete: their objectives are others


def compare(
    results: Sequence[Result],
    by: Sequence[str] = ("seed",),
    columns: Sequence[str] | None = None,
    form: str = "terminal",
    sort: str | None = None,
    everything: bool = False,
    bold: bool = False,
) -> str:
    """The table of results in one of ``FORMATS``.

    A row is a group of runs that differ in no setting but ``by``; it begins with the settings in which rows differ, and
    with n, the number of its runs, where that is not 1 everywhere. ``columns`` are names of recorded columns, of which
    the last value stands (the sum where a column tells of single rounds), or rounds (CR), tct, lct and bytes (up and
    down). ``sort`` is a setting, from small to large, or a column, best first. The best means of rows on the same data and
    problem are bold; ``bold`` says whether a terminal may show that. Runs that did not finish are named with their
    status and count only with ``everything``. Raises UserError for a setting or column that is not there.
    """
    if form not in FORMATS:
        unknown("format", form, FORMATS)
    names = chosen(results, columns)
    made = study(results, by, [*known(results), "n", "status"])
    numbers = [[number(group, name, everything) for name in names] for group in made.groups]
    order = sequence(made, names, numbers, sort)
    made, numbers = made._replace(groups=[made.groups[k] for k in order]), [numbers[k] for k in order]
    table = build(made, names, numbers, results, always=form == "csv", everything=everything)
    text = tables.terminal(table, bold) if form == "terminal" else FORMATS[form](table)
    left = (
        []
        if everything
        else [
            f"left out: {printable(result.path or 'a result')} ({printable(result.status) or 'no status'}, "
            f"{count(result.cr, 'round')})"
            for group in made.groups
            for result in group.runs
            if result.status != "finished"
        ]
    )
    if form == "csv" or not left:
        return text
    return "\n".join([*(f"% {line}" for line in left), text] if form == "latex" else [text, "", *left])


def number(group: Group, name: str, everything: bool) -> Number:
    """Mean and standard deviation (of a sample, by n − 1) of a measure over the runs of a group that have it."""
    values = np.array([final(run, name) for run in group.runs if everything or run.status == "finished"])
    values = values[~np.isnan(values)]
    if not len(values):
        return Number(math.nan)
    size = 2.0 ** (math.frexp(float(np.abs(values).max()))[1] - 1)  # what diverged has squares that overflow
    values = values / size
    return Number(size * float(values.mean()), size * float(values.std(ddof=1)) if len(values) > 1 else math.nan)


def sequence(made: Study, names: list[str], numbers: list[list[Number]], sort: str | None) -> list[int]:
    """The rows in the order that ``sort`` asks for."""
    places = list(range(len(made.groups)))
    if sort is None:
        return places
    key = next((key for key, name in made.keys.items() if sort in (key, name)), None)
    if sort not in names:
        if key is None:
            unknown("column", sort, [*made.keys.values(), *names])
        return sorted(places, key=lambda k: natural(made.groups[k].settings.get(key, "")))
    sign, column = -1 if better(sort) > 0 else 1, names.index(sort)
    return sorted(places, key=lambda k: (math.isnan(numbers[k][column].mean), sign * numbers[k][column].mean))


def build(
    made: Study,
    names: list[str],
    numbers: list[list[Number]],
    results: Sequence[Result],
    always: bool,
    everything: bool,
) -> Table:
    """The table, with columns of n and status where they tell something or ``always``."""
    heads = [(name, tables.escaped(name)) for name in made.keys.values()]
    rows: list[list[str | Number]] = [[group.settings.get(key, ABSENT) for key in made.keys] for group in made.groups]
    plain = [name if key in names else key for key, name in made.keys.items()]
    counted = [[run for run in group.runs if everything or run.status == "finished"] for group in made.groups]
    if always or any(len(runs) != 1 for runs in counted):
        heads.append(("n", "$n$"))
        plain.append("n")
        rows = [[*row, str(len(runs))] for row, runs in zip(rows, counted, strict=True)]
    if any(result.status != "finished" for result in results):
        heads.append(("status", "status"))
        plain.append("status")
        rows = [[*row, status(group)] for row, group in zip(rows, made.groups, strict=True)]
    factors = [1.0] * len(heads)
    for column, name in enumerate(names):
        values = [row[column] for row in numbers]
        factor, of = scale(
            unit(name, results), max((abs(v.mean) for v in values if not math.isnan(v.mean)), default=0.0)
        )
        heads.append((title(name, of), latex_title(name, of)))
        plain.append(f"{name}_seconds" if name in ("tct", "lct") else name)
        factors.append(factor)
        best = winners(made, values, better(name), factor)
        rows = [[*row, value._replace(best=wins)] for row, value, wins in zip(rows, values, best, strict=True)]
    return Table(heads, plain, rows, factors)


def winners(made: Study, values: list[Number], sign: int, factor: float) -> list[bool]:
    """Which rows are best among those on the same data and problem: none where all are equal, or only one is there."""
    seen = [sign * tables.shown(value, factor) if not math.isnan(value.mean) else -math.inf for value in values]
    worlds = [[group.settings.get(key) for key in made.keys if key.split(".")[0] in WORLD] for group in made.groups]
    best = []
    for own, world in zip(seen, worlds, strict=True):
        rivals = [value for value, other in zip(seen, worlds, strict=True) if other == world and value > -math.inf]
        best.append(sign != 0 and own > -math.inf and own == max(rivals) and own > min(rivals))
    return best


def status(group: Group) -> str:
    """How the runs of a group ended: finished, or 2 finished, 1 failed."""
    found = Counter(printable(run.status) or ABSENT for run in group.runs)
    return (
        next(iter(found)) if len(found) == 1 else ", ".join(f"{times} {name}" for name, times in sorted(found.items()))
    )
