"""`mpifed compare`: runs in a table, one row for all that differ in the seed alone, mean ± standard deviation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import printable, unknown
from mpifed.report import tables
from mpifed.report.groups import Group, Study, natural, study
from mpifed.report.metrics import available, column, final, latex_title, requested, scale, title, unit
from mpifed.report.summary import count
from mpifed.report.tables import ABSENT, Number, Table
from mpifed.results.result import Result

FORMATS: dict[str, Callable[[Table], str]] = {
    "terminal": tables.terminal,
    "markdown": tables.markdown,
    "latex": tables.latex,
    "csv": tables.comma_separated,
}
TASK = ("data", "problem")  # rows that differ in these settings do not compete: their objectives are not comparable


class Layout(NamedTuple):
    """What a table contains, and how it is written."""

    by: Sequence[str] = ("seed",)  # settings to take means over
    columns: Sequence[str] | None = None  # recorded columns, or rounds (CR), tct, lct, bytes (up and down); None: usual
    sort: str | None = None  # a setting, from small to large, or a column, best first
    everything: bool = False  # count runs that did not finish
    form: str = "terminal"  # one of FORMATS
    bold: bool = False  # the terminal can show bold text


def compare(results: Sequence[Result], layout: Layout) -> str:
    """The table of results.

    One row per group of runs that agree in all settings except ``layout.by``. A row begins with the settings in which
    rows differ, and with n, its number of runs, where that is not 1 everywhere. A column holds final values, or the sum
    over rounds of what is recorded per round. The best means among rows with the same data and problem are bold. Runs
    that did not finish are listed below the table with their status. UserError for a setting or column that no run has.
    """
    form = layout.form
    if form not in FORMATS:
        unknown("format", form, FORMATS)
    names = requested(results, layout.columns)
    groups = study(results, layout.by, [*available(results), "n", "status"])
    numbers = [[number(group, name, layout.everything) for name in names] for group in groups.groups]
    order = sequence(groups, names, numbers, layout.sort)
    groups, numbers = groups._replace(groups=[groups.groups[k] for k in order]), [numbers[k] for k in order]
    table = build(groups, names, numbers, results, layout)
    text = tables.terminal(table, layout.bold) if form == "terminal" else FORMATS[form](table)
    left = [] if layout.everything else left_out(groups)
    if form == "csv" or not left:
        return text
    return "\n".join([*(f"% {line}" for line in left), text] if form == "latex" else [text, "", *left])


def left_out(groups: Study) -> list[str]:
    """A line for each run that did not finish."""
    return [
        f"left out: {printable(run.path or 'a result')} ({printable(run.status) or 'no status'}, "
        f"{count(run.cr, 'round')})"
        for group in groups.groups
        for run in group.runs
        if run.status != "finished"
    ]


def number(group: Group, name: str, everything: bool) -> Number:
    """Mean and standard deviation (divisor n − 1) of a metric over the runs of a group that have it."""
    values = np.array([final(run, name) for run in group.runs if everything or run.status == "finished"])
    values = values[~np.isnan(values)]
    if not len(values):
        return Number(math.nan)
    size = 2.0 ** (math.frexp(float(np.abs(values).max()))[1] - 1)  # squares of diverged values would overflow
    values = values / size
    return Number(size * float(values.mean()), size * float(values.std(ddof=1)) if len(values) > 1 else math.nan)


def sequence(groups: Study, names: list[str], numbers: list[list[Number]], sort: str | None) -> list[int]:
    """The order of the rows."""
    rows = list(range(len(groups.groups)))
    if sort is None:
        return rows
    key = next((key for key, name in groups.keys.items() if sort in (key, name)), None)
    if sort not in names:
        if key is None:
            unknown("column", sort, [*groups.keys.values(), *names])
        return sorted(rows, key=lambda k: natural(groups.groups[k].settings.get(key, "")))
    sign, index = -1 if column(sort).better > 0 else 1, names.index(sort)
    return sorted(rows, key=lambda k: (math.isnan(numbers[k][index].mean), sign * numbers[k][index].mean))


def build(
    groups: Study, names: list[str], numbers: list[list[Number]], results: Sequence[Result], layout: Layout
) -> Table:
    """The table, with columns n and status where they differ between rows; n always in CSV."""
    heads = [(name, tables.escaped(name)) for name in groups.keys.values()]
    rows: list[list[str | Number]] = [
        [group.settings.get(key, ABSENT) for key in groups.keys] for group in groups.groups
    ]
    plain = [name if key in names else key for key, name in groups.keys.items()]
    counts = [sum(layout.everything or run.status == "finished" for run in group.runs) for group in groups.groups]
    if layout.form == "csv" or any(n != 1 for n in counts):
        heads.append(("n", "$n$"))
        plain.append("n")
        rows = [[*row, str(n)] for row, n in zip(rows, counts, strict=True)]
    if any(result.status != "finished" for result in results):
        heads.append(("status", "status"))
        plain.append("status")
        rows = [[*row, status(group)] for row, group in zip(rows, groups.groups, strict=True)]
    factors = [1.0] * len(heads)
    for index, name in enumerate(names):
        values = [row[index] for row in numbers]
        largest = max((abs(value.mean) for value in values if not math.isnan(value.mean)), default=0.0)
        factor, of = scale(unit(name, results), largest)
        heads.append((title(name, of), latex_title(name, of)))
        plain.append(f"{name}_seconds" if name in ("tct", "lct") else name)
        factors.append(factor)
        best = winners(groups, values, column(name).better, factor)
        rows = [[*row, value._replace(best=wins)] for row, value, wins in zip(rows, values, best, strict=True)]
    return Table(heads, plain, rows, factors)


def winners(groups: Study, values: list[Number], sign: int, factor: float) -> list[bool]:
    """Which rows are best among those with the same data and problem: none if all are equal, or there is only one."""
    seen = [sign * tables.shown(value, factor) if not math.isnan(value.mean) else -math.inf for value in values]
    tasks = [[group.settings.get(key) for key in groups.keys if key.split(".")[0] in TASK] for group in groups.groups]
    best = []
    for own, task in zip(seen, tasks, strict=True):
        rivals = [value for value, other in zip(seen, tasks, strict=True) if other == task and value > -math.inf]
        best.append(sign != 0 and own > -math.inf and own == max(rivals) and own > min(rivals))
    return best


def status(group: Group) -> str:
    """How the runs of a group ended: finished, or 2 finished, 1 failed."""
    counts = Counter(printable(run.status) or ABSENT for run in group.runs)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{n} {name}" for name, n in sorted(counts.items()))
