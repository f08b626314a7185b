"""`mpifed compare`: runs in a table, one row for all that differ in the seed alone, mean ± standard deviation."""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError, counted, printable, unknown
from mpifed.core.roles import TRAINING
from mpifed.report import best, tables
from mpifed.report.best import Ends
from mpifed.report.curves import axis_title, usual
from mpifed.report.metrics import available, column, latex_title, requested, roles, scale, title, unit
from mpifed.report.settings import ENDING, Study, differing, label, left_out, natural, study
from mpifed.report.statistics import pairwise
from mpifed.report.tables import ABSENT, Number, Table, written
from mpifed.results.result import Result

Columns = dict[str, list[Ends]]  # metric -> what the number of each row is the mean of
LEVEL = 0.05  # of p


class Layout(NamedTuple):
    """What a table contains, and how it is written."""

    by: Sequence[str] = ("seed",)  # settings to take means over
    columns: Sequence[str] | None = None  # recorded columns, or rounds (CR), tct, lct, bytes (up and down); None: usual
    sort: str | None = None  # a setting, from small to large, or a column, best first
    everything: bool = False  # count runs that did not finish
    form: str = "terminal"  # one of FORMATS
    bold: bool = False  # the terminal can show bold text
    rename: Sequence[str] = ()  # OLD=NEW, for names of methods, settings and columns


def compare(results: Sequence[Result], layout: Layout) -> str:
    """The table of results.

    One row per group of runs that agree in all settings except ``layout.by``. A row begins with the settings in which
    rows differ, and with n, its number of runs, where that is not 1 everywhere. A column holds final values, sums over
    rounds of what is recorded per round, or the mean or largest of ages; ``error`` is over the seeds that all rows on
    the same data have. The best mean among rows with the same data and problem is bold unless its lead is explained by
    the seeds; ties are named below the table. UserError for a setting or column that no run has.
    """
    groups = study(results, layout.by, [*available(results), "n", "status"], layout.rename)
    names = metrics_of(results, layout.columns, groups)
    ends = {name: best.final_values(groups, name, layout.by, layout.everything) for name in names}
    order = sequence(groups, ends, layout.sort)
    groups = groups._replace(groups=[groups.groups[k] for k in order])
    ends = {name: [of[k] for k in order] for name, of in ends.items()}
    table, ties = build(groups, ends, results, layout)
    # A terminal without bold shows no best numbers, so there is nothing that a tie could explain.
    told = ties and (layout.form != "terminal" or layout.bold)
    notes = [f"tie for the best, so not bold: {', '.join(ties)}"] if told else []
    without = [name for name in ends if any(role.missing for role in roles(name, results))]
    if without:
        notes.append(f"missing: clients without test samples, left out of {', '.join(map(title, without))}")
    lacking = sum(math.isnan(end) for row in ends.get("error", ()) for end in row.values())
    if lacking:
        notes.append(f"error: without {counted(lacking, 'run')} on data that other rows lack")
    return noted(table, groups, layout, [*notes, *unlike_ends(groups, names, layout)])


def unlike_ends(groups: Study, names: Sequence[str], layout: Layout) -> list[str]:
    """Return the sentences about rows that end at different rounds where no column shows it."""
    found = []
    for key in differing([group.settings for group in groups.groups]):
        if key.split(".")[0] in ENDING and key not in groups.keys:
            rows: dict[str, list[str]] = {}
            for group in groups.groups:
                rows.setdefault(group.settings.get(key, "none"), []).append(label(group, groups))
            parts = [f"{value} ({of[0] if len(of) == 1 else counted(len(of), 'row')})" for value, of in rows.items()]
            found.append(f"rows differ in {key}: {', '.join(parts)}")
    rounds = [run.cr for group in groups.groups for run in group.runs if layout.everything or run.status == "finished"]
    if not found and "rounds" not in names and len(set(rounds)) > 1:
        found.append(f"runs of {min(rounds)} to {max(rounds)} rounds: the column rounds shows how many each row has")
    return found


def noted(table: Table, groups: Study, layout: Layout, notes: Sequence[str] = ()) -> str:
    """The text of a table with notes, one for each run that does not count because it did not finish; CSV has none."""
    text = written(table, layout.form, layout.bold)
    lines = [*notes, *left_out((run for group in groups.groups for run in group.runs), layout.everything)]
    if layout.form == "csv" or not lines:
        return text
    return "\n".join([*(f"% {line}" for line in lines), text] if layout.form == "latex" else [text, "", *lines])


def metrics_of(results: Sequence[Result], columns: Sequence[str] | None, groups: Study) -> list[str]:
    """The metrics of the table; error unasked where f differs between seeds, as objective_gap where that is known."""
    names = requested(results, columns)
    if not columns and "objective" in names and usual(results, groups) == "error":
        names.insert(names.index("objective") + 1, "error")
    if all("objective_gap" in result.rounds for result in results):
        names = ["objective_gap" if name == "error" else name for name in names]
    return list(dict.fromkeys(names))


def sequence(groups: Study, ends: Columns, sort: str | None) -> list[int]:
    rows = list(range(len(groups.groups)))
    if sort is None:
        return rows
    key = next((key for key, name in groups.keys.items() if sort in (key, name, groups.names.setting(key, name))), None)
    if sort not in ends:
        if key is None:
            unknown("column", sort, [*groups.keys.values(), *ends])
        return sorted(rows, key=lambda k: natural(groups.groups[k].settings.get(key, "")))
    sign = -1 if column(sort).better > 0 else 1
    means = [best.number(row).mean for row in ends[sort]]
    return sorted(rows, key=lambda k: (math.isnan(means[k]), sign * means[k]))


def build(groups: Study, ends: Columns, results: Sequence[Result], layout: Layout) -> tuple[Table, list[str]]:
    table = leading(groups, results, layout)
    evaluated_on(table, groups, ends, layout.form == "csv")
    ties = []
    for name, rows in ends.items():
        values = list(map(best.number, rows))
        largest = max((abs(value.mean) for value in values if not math.isnan(value.mean)), default=0.0)
        factor, of = scale(unit(name, results), largest)
        wins = best.winners(groups, values, rows, column(name).better, factor)
        cells = (value._replace(best=rivals == 1) for value, rivals in zip(values, wins, strict=True))
        words = axis_title(name, of, groups.names, results)
        usual_words = title(name, of, results)
        head = (words, latex_title(name, of, results) if words == usual_words else tables.escaped(words))
        table.add(head, f"{name}_seconds" if name in ("tct", "lct") else name, cells, factor)
        if max(wins) > 1:
            ties.append(f"{words} ({max(wins)} rows)")
    return table, ties


def evaluated_on(table: Table, groups: Study, names: Iterable[str], plain: bool) -> None:
    """Add of which samples the metrics ``names`` are, where rows differ in it, and how many clients have none.

    ``plain``: columns have their keys as names, so that they cannot say that they are of training samples.
    """
    found = [[role for run in group.runs for name in names for role in roles(name, [run])] for group in groups.groups]
    kinds = {role.name for own in found for role in own}
    if len(kinds) > 1 or (plain and kinds == {TRAINING}):
        cells = [" or ".join(sorted({role.name for role in own})) or ABSENT for own in found]
        table.add(("samples", "samples"), "evaluated_on", cells)
    if any(role.missing for own in found for role in own):
        counts = [sorted({role.missing for role in own}) for own in found]
        cells = ["–".join(map(str, dict.fromkeys([own[0], own[-1]]))) if own else ABSENT for own in counts]
        table.add(("missing", "missing"), "missing", cells)


def leading(groups: Study, results: Sequence[Result], layout: Layout) -> Table:
    """The table's first columns: settings, and n and status where they differ between rows; n always in CSV."""
    names = groups.names
    plain = layout.form == "csv"
    table = Table([], [], [[] for _ in groups.groups], [])
    for key, short in groups.keys.items():
        cells = [group.settings.get(key, ABSENT) for group in groups.groups]
        if not plain:
            cells = [cell if cell == ABSENT else names.value(key, cell) for cell in cells]
        head = (names.setting(key, short), names.latex(key, short))
        table.add(head, short if key in available(results) else key, cells)
    counts = [sum(layout.everything or run.status == "finished" for run in group.runs) for group in groups.groups]
    if plain or any(n != 1 for n in counts):
        table.add(("n", "$n$"), "n", map(str, counts))
    if any(result.status != "finished" for result in results):
        found = [Counter(printable(run.status) or ABSENT for run in group.runs) for group in groups.groups]
        told = [", ".join(f"{n} {name}" if len(own) > 1 else name for name, n in sorted(own.items())) for own in found]
        table.add(("status", "status"), "status", told)
    return table


def pairs(results: Sequence[Result], name: str, layout: Layout) -> str:
    """The table of pairs: in how many seeds either row is better in column ``name``, and p.

    Wilcoxon's signed-rank test of the differences, corrected by Holm for the number of pairs. Where the rows have too
    few seeds in common for any p below ``LEVEL``, a sentence that says so. UserError for a column that no run or not
    every row has or that is neither better nor worse, and for a single row.
    """
    if layout.form == "csv":
        choose = "choose terminal, markdown or latex"
        raise UserError(f"--test does not go with --format csv, which holds one table: {choose}")
    groups = study(results, layout.by, [*available(results), "n", "status"], layout.rename)
    requested(results, [name])
    sign = column(name).better
    if not sign:
        raise UserError(f"--test {name} is wrong: neither more nor less of {name} is better")
    ends = best.final_values(groups, name, layout.by, layout.everything)
    if len(ends) < 2:
        raise UserError(f"--test {name} is wrong: it needs two rows, and there is one")
    names = [label(group, groups) for group in groups.groups]
    for own, row in zip(names, ends, strict=True):
        if not any(map(math.isfinite, row.values())):
            raise UserError(f"--test {name} is wrong: no run of the row {own} that counts has {name}")
    # Seeds that every row has, and not those that a pair has: p-values of pairs over different seeds have different
    # least values, and Holm's correction would put them in an order that says more about seeds than about rows.
    common = [key for key in ends[0] if all(math.isfinite(row.get(key, math.nan)) for row in ends)]
    if few := too_few(len(common), len(ends)):
        comment = "% " if layout.form == "latex" else ""
        return f"{comment}--test {name} has too few seeds: {few}"
    values = np.array([[-sign * row[key] for row in ends] for key in common])
    found = pairwise(values, signed=True)
    table = Table([], [], [[] for _ in found], [])
    table.add(("", ""), "a", [f"{names[pair.a]} – {names[pair.b]}" for pair in found])
    table.add(("seeds better", "seeds better"), "better", [f"{pair.wins} : {pair.losses}" for pair in found])
    table.add(("p (Holm)", "$p$ (Holm)"), "p", [Number(pair.p) for pair in found])
    return written(table, layout.form, layout.bold)


def too_few(seeds: int, rows: int) -> str:
    """Why no outcome of the test can have a p below ``LEVEL``, and what would be enough; nothing where one can.

    The least p is 2/2^seeds, of a row that is better with every seed, times the number of pairs.
    """
    pairs = math.comb(rows, 2)
    needed = math.ceil(math.log2(2 * pairs / LEVEL))
    if seeds >= needed:
        return ""
    least = min(1.0, pairs * 2.0 ** (1 - seeds))
    return (
        f"the {rows} rows share {seeds}, with which p is at least {least:.2g}; from {needed} on it can be below {LEVEL}"
    )
