"""The table of `mpifed compare`: one row for all runs that differ in the seed alone, mean ± standard deviation."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError, escape_unprintable, format_count, raise_unknown
from mpifed.core.roles import TRAINING
from mpifed.report import tables
from mpifed.report.curves import axis_title, default_metric, error_columns, task_settings
from mpifed.report.metrics import (
    available_metrics,
    final_metric,
    last_finite,
    latex_title,
    metric_info,
    metric_title,
    metric_unit,
    sample_roles,
    select_metrics,
)
from mpifed.report.settings import (
    ENDING,
    RunGroups,
    differing_keys,
    group_label,
    group_runs,
    left_out_lines,
    natural_sort_key,
    run_settings,
)
from mpifed.report.statistics import pairwise_tests
from mpifed.report.tables import ABSENT, Number, ReportTable, choose_unit, format_table
from mpifed.results.best import cut_at_best, find_best
from mpifed.results.result import RunRecord

Ends = Mapping[tuple[str | None, ...], float]  # settings to take means over, the seed for example -> last value
EndsByMetric = dict[str, list[Ends]]  # metric -> for each row the values to take the mean of
LEVEL = 0.05  # of p
ENDS = ("end", "best")
TASK = ("data", "problem")  # rows that differ in these settings do not compete: their objectives are not comparable
QUANTILE = 0.975  # quantile of Student's t: 95 % on both sides


class TableOptions(NamedTuple):
    """The content and the form of a table."""

    by: Sequence[str] = ("seed",)  # settings to take means over
    columns: Sequence[str] | None = None  # recorded columns, or rounds (CR), tct, lct, bytes (up and down); None: usual
    sort: str | None = None  # a setting, from small to large, or a column, best first
    everything: bool = False  # count unfinished runs too
    format: str = "terminal"  # one of FORMATS
    bold: bool = False  # the terminal can show bold text
    at: str = "end"  # or "best": numbers of the best evaluation
    rename: Sequence[str] = ()  # OLD=NEW, for names of methods, settings and columns


def compare(results: Sequence[RunRecord], layout: TableOptions) -> str:
    """Return the table of results.

    One row per group of runs that agree in all settings except ``layout.by``. A row begins with the settings in which
    rows differ, and with n, its number of runs, where that is not 1 everywhere. A column holds final values, sums over
    rounds of amounts per round, or the mean or largest of ages; ``error`` is over the seeds that all rows on the same
    data have. The best mean among rows with the same data and problem is bold unless its lead is explained by the
    seeds; ties are named below the table. UserError for a setting or column that no run has.
    """
    results, chosen = choose_rounds(results, layout.at)
    groups = group_runs(results, layout.by, [*available_metrics(results), "n", "status"], layout.rename)
    names = choose_metrics(results, layout.columns, groups)
    ends = final_values(groups, names, layout.by, layout.everything)
    order = order_rows(groups, ends, layout.sort)
    groups = groups._replace(groups=[groups.groups[k] for k in order])
    ends = {name: [of[k] for k in order] for name, of in ends.items()}
    table, ties = build_table(groups, ends, results, layout)
    # A terminal without bold shows no best numbers, so that ties need no explanation.
    named = ties and (layout.format != "terminal" or layout.bold)
    notes = [f"tie for the best, so not bold: {', '.join(ties)}"] if named else []
    without = [name for name in ends if any(role.missing for role in sample_roles(name, results))]
    if without:
        lacking = " or ".join(sorted({r.name for name in without for r in sample_roles(name, results) if r.missing}))
        notes.append(f"missing: clients without {lacking} samples, left out of {', '.join(map(metric_title, without))}")
    absent = sum(math.isnan(end) for row in ends.get("error", ()) for end in row.values())
    if absent:
        notes.append(f"error: without {format_count(absent, 'run')} on data that other rows lack")
    return format_with_notes(table, groups, layout, [*chosen, *notes, *unlike_ends(groups, names, layout)])


def choose_rounds(results: Sequence[RunRecord], at: str) -> tuple[Sequence[RunRecord], list[str]]:
    """Return the runs as they end, or as they stood in their best rounds, with a sentence that says so."""
    if at not in ENDS:
        raise_unknown("round for --at", at, ENDS)
    if at == "end":
        return results, []
    columns = dict.fromkeys(find_best(result).by for result in results)
    cut = [cut_at_best(result) for result in results]
    return cut, [f"numbers are of each run's best round by {', '.join(columns)}, not of its last"]


def unlike_ends(groups: RunGroups, names: Sequence[str], layout: TableOptions) -> list[str]:
    """Return sentences about rows that end at different rounds where no column shows it."""
    sentences = []
    for key in differing_keys([group.settings for group in groups.groups]):
        if key.split(".")[0] in ENDING and key not in groups.keys:
            rows: dict[str, list[str]] = {}
            for group in groups.groups:
                rows.setdefault(group.settings.get(key, "none"), []).append(group_label(group, groups))
            who = {value: of[0] if len(of) == 1 else format_count(len(of), "row") for value, of in rows.items()}
            parts = [f"{value} ({label})" for value, label in who.items()]
            sentences.append(f"rows differ in {key}: {', '.join(parts)}")
    rounds = [run.cr for group in groups.groups for run in group.runs_that_count(layout.everything)]
    if not sentences and "rounds" not in names and len(set(rounds)) > 1:
        span = f"{min(rounds)} to {max(rounds)} rounds"
        sentences.append(f"runs of {span}: the column rounds shows how many each row has")
    return sentences


def format_with_notes(table: ReportTable, groups: RunGroups, layout: TableOptions, notes: Sequence[str] = ()) -> str:
    """Return the text of a table with notes, one for each unfinished run, which does not count; CSV has none."""
    text = format_table(table, layout.format, layout.bold)
    lines = [*notes, *left_out_lines((run for group in groups.groups for run in group.runs), layout.everything)]
    if layout.format == "csv" or not lines:
        return text
    return "\n".join([*(f"% {line}" for line in lines), text] if layout.format == "latex" else [text, "", *lines])


def choose_metrics(results: Sequence[RunRecord], columns: Sequence[str] | None, groups: RunGroups) -> list[str]:
    """Return the metrics of the table: error is added where f differs between seeds; objective_gap replaces it."""
    names = select_metrics(results, columns)
    if not columns and "objective" in names and default_metric(results, groups) == "error":
        names.insert(names.index("objective") + 1, "error")
    if all("objective_gap" in result.rounds for result in results):
        names = ["objective_gap" if name == "error" else name for name in names]
    return list(dict.fromkeys(names))


def order_rows(groups: RunGroups, ends: EndsByMetric, sort: str | None) -> list[int]:
    rows = list(range(len(groups.groups)))
    if sort is None:
        return rows
    key = next((key for key, name in groups.keys.items() if sort in (key, name, groups.names.setting(key, name))), None)
    if sort not in ends:
        if key is None:
            raise_unknown("column", sort, [*groups.keys.values(), *ends])
        return sorted(rows, key=lambda k: natural_sort_key(groups.groups[k].settings.get(key, "")))
    sign = -1 if metric_info(sort).better > 0 else 1
    means = [mean_and_sd(row).mean for row in ends[sort]]
    return sorted(rows, key=lambda k: (math.isnan(means[k]), sign * means[k]))


def build_table(
    groups: RunGroups, ends: EndsByMetric, results: Sequence[RunRecord], layout: TableOptions
) -> tuple[ReportTable, list[str]]:
    table = make_leading_table(groups, results, layout)
    add_samples(table, groups, ends, layout.format == "csv")
    ties = []
    for name, rows in ends.items():
        values = list(map(mean_and_sd, rows))
        largest = max((abs(value.mean) for value in values if not math.isnan(value.mean)), default=0.0)
        factor, unit_text = choose_unit(metric_unit(name, results), largest)
        wins = count_ties(groups, values, rows, metric_info(name).better, factor)
        cells = (value._replace(best=rivals == 1) for value, rivals in zip(values, wins, strict=True))
        words = axis_title(name, unit_text, groups.names, results)
        usual_words = metric_title(name, unit_text, results)
        head = (words, latex_title(name, unit_text, results) if words == usual_words else tables.escape_latex(words))
        table.add(head, f"{name}_seconds" if name in ("tct", "lct") else name, cells, factor)
        if max(wins) > 1:
            ties.append(f"{words} ({max(wins)} rows)")
    return table, ties


def add_samples(table: ReportTable, groups: RunGroups, names: Iterable[str], plain: bool) -> None:
    """Add the samples of the metrics ``names``, where rows differ in them, and how many clients have none.

    ``plain``: columns have their keys as names, so that they cannot say that they are on training samples.
    """
    rows = [
        [role for run in group.runs for name in names for role in sample_roles(name, [run])] for group in groups.groups
    ]
    sample_names = {role.name for row in rows for role in row}
    if len(sample_names) > 1 or (plain and sample_names == {TRAINING}):
        cells = [" or ".join(sorted({role.name for role in row})) or ABSENT for row in rows]
        table.add(("samples", "samples"), "evaluated_on", cells)
    if any(role.missing for row in rows for role in row):
        counts = [sorted({role.missing for role in row}) for row in rows]
        cells = ["–".join(map(str, dict.fromkeys([row[0], row[-1]]))) if row else ABSENT for row in counts]
        table.add(("missing", "missing"), "missing", cells)


def make_leading_table(groups: RunGroups, results: Sequence[RunRecord], layout: TableOptions) -> ReportTable:
    """Return a table with the first columns: settings, and n and status where rows differ in them; n always in CSV."""
    names = groups.names
    for_csv = layout.format == "csv"
    table = ReportTable([], [], [[] for _ in groups.groups], [])
    for key, short in groups.keys.items():
        cells = [group.settings.get(key, ABSENT) for group in groups.groups]
        if not for_csv:
            cells = [cell if cell == ABSENT else names.value(key, cell) for cell in cells]
        head = (names.setting(key, short), names.latex(key, short))
        table.add(head, short if key in available_metrics(results) else key, cells)
    counts = [len(group.runs_that_count(layout.everything)) for group in groups.groups]
    if for_csv or any(n != 1 for n in counts):
        table.add(("n", "$n$"), "n", map(str, counts))
    if any(result.status != "finished" for result in results):
        statuses = [Counter(escape_unprintable(run.status) or ABSENT for run in group.runs) for group in groups.groups]
        words = [[f"{n} {name}" if len(row) > 1 else name for name, n in sorted(row.items())] for row in statuses]
        table.add(("status", "status"), "status", map(", ".join, words))
    return table


def compare_pairs(results: Sequence[RunRecord], name: str, layout: TableOptions) -> str:
    """Return the table of pairs: in how many seeds either row is better in column ``name``, and p.

    Wilcoxon's signed-rank test of the differences, corrected by Holm for the number of pairs. Where the rows have too
    few seeds in common for any p below ``LEVEL``, a sentence that says so. UserError for a column that no run or not
    every row has or that is neither better nor worse, and for a single row.
    """
    if layout.format == "csv":
        choose = "choose terminal, markdown or latex"
        raise UserError(f"--test does not go with --format csv, which holds one table: {choose}")
    results, _ = choose_rounds(results, layout.at)
    groups = group_runs(results, layout.by, [*available_metrics(results), "n", "status"], layout.rename)
    select_metrics(results, [name])
    sign = metric_info(name).better
    require_testable(sign, name, f"neither more nor less of {name} is better")
    ends = final_values(groups, [name], layout.by, layout.everything)[name]
    require_testable(len(ends) > 1, name, "it needs two rows, and there is one")
    names = [group_label(group, groups) for group in groups.groups]
    for row_name, row in zip(names, ends, strict=True):
        some = any(map(math.isfinite, row.values()))
        require_testable(some, name, f"no run of the row {row_name} that counts has {name}")
    # Seeds that every row has, not those of a pair: the smallest possible p depends on the number of seeds, so that
    # Holm's correction would order pairs by their seeds rather than by their rows.
    common = [key for key in ends[0] if all(math.isfinite(row.get(key, math.nan)) for row in ends)]
    if few := explain_too_few(len(common), len(ends)):
        comment = "% " if layout.format == "latex" else ""
        return f"{comment}--test {name} has too few seeds: {few}"
    values = np.array([[-sign * row[key] for row in ends] for key in common])
    tests = pairwise_tests(values)
    table = ReportTable([], [], [[] for _ in tests], [])
    table.add(("", ""), "a", [f"{names[pair.a]} – {names[pair.b]}" for pair in tests])
    table.add(("seeds better", "seeds better"), "better", [f"{pair.wins} : {pair.losses}" for pair in tests])
    table.add(("p (Holm)", "$p$ (Holm)"), "p", [Number(pair.p) for pair in tests])
    return format_table(table, layout.format, layout.bold)


def require_testable(holds: object, name: str, fault: str) -> None:
    """Raise UserError, with what is wrong about a test of the column ``name``, unless a check ``holds``."""
    if not holds:
        raise UserError(f"--test {name} is wrong: {fault}")


def explain_too_few(seeds: int, rows: int) -> str:
    """Return why no p of the test can be below ``LEVEL``, and how many seeds suffice; nothing where one can.

    The smallest p is 2/2^seeds, of a row that is better with every seed, times the number of pairs.
    """
    pairs = math.comb(rows, 2)
    needed = math.ceil(math.log2(2 * pairs / LEVEL))
    if seeds >= needed:
        return ""
    low = min(1.0, pairs * 2.0 ** (1 - seeds))
    return (
        f"the {rows} rows share {seeds}, with which p is at least {low:.2g}; from {needed} on it can be below {LEVEL}"
    )


def final_values(groups: RunGroups, names: Sequence[str], by: Sequence[str], everything: bool) -> dict[str, list[Ends]]:
    """Return the last value of each metric in every run that counts, for each group."""
    counted = [group.runs_that_count(everything) for group in groups.groups]
    keys = [number_runs(runs, by) for runs in counted]
    ends: dict[str, list[Ends]] = {}
    for name in names:
        values = {id(run): math.nan if name == "error" else final_metric(run, name) for runs in counted for run in runs}
        values |= final_errors(counted) if name == "error" else {}
        ends[name] = [
            {key: values[id(run)] for key, run in zip(of_group, runs, strict=True)}
            for of_group, runs in zip(keys, counted, strict=True)
        ]
    return ends


def number_runs(runs: Sequence[RunRecord], by: Sequence[str]) -> list[tuple[str | None, ...]]:
    """Return for each run its settings ``by`` and its number among the runs that agree in these."""
    counts = Counter[tuple[str | None, ...]]()
    keys: list[tuple[str | None, ...]] = []
    for run in runs:
        settings = run_settings(run)
        key = tuple(settings.get(name) for name in by)
        keys.append((*key, str(counts[key])))
        counts[key] += 1
    return keys


def final_errors(groups: Sequence[Sequence[RunRecord]]) -> dict[int, float]:
    """Return id of a run -> the last value of its error; nan for data that not every competing group has."""
    runs = [run for group in groups for run in group]
    name, errors_of_runs = error_columns(runs) if runs else ("error", [])
    ends = [last_finite(values) for values in errors_of_runs]
    if name != "error":
        return {id(run): end for run, end in zip(runs, ends, strict=True)}
    shared: dict[object, set[object]] = {}
    for group in groups:
        of_group: dict[object, set[object]] = {}
        for run in group:
            of_group.setdefault(task_without_seed(run), set()).add(task_settings(run))
        for key, tasks in of_group.items():
            shared[key] = shared.get(key, tasks) & tasks
    return {
        id(run): end if task_settings(run) in shared[task_without_seed(run)] else math.nan
        for run, end in zip(runs, ends, strict=True)
    }


def task_without_seed(run: RunRecord) -> tuple[tuple[str, str], ...]:
    """Return the settings of data and problem of a run without their seeds."""
    return tuple(part for part in task_settings(run) if part[0] not in ("seed", "data.seed"))


def mean_and_sd(ends: Ends) -> Number:
    """Return the mean and the standard deviation (divisor n − 1) of the values that are not NaN."""
    values = np.array([end for end in ends.values() if not math.isnan(end)])
    if not len(values):
        return Number(math.nan)
    # Squares of values of diverged runs would overflow. A power of two changes no bit of the others.
    power = 2.0 ** (math.frexp(float(np.abs(values).max()))[1] - 1)
    values = values / power
    return Number(power * float(values.mean()), power * float(values.std(ddof=1)) if len(values) > 1 else math.nan)


def count_ties(
    groups: RunGroups, values: Sequence[Number], ends: Sequence[Ends], sign: int, factor: float
) -> list[int]:
    """Return for each row how many rows tie for best with it, itself included; 0: it is not best.

    Only rows with the same data and problem compete. Rows tie with the best if they print the same number, or if chance
    explains their difference over the seeds that both have.
    """
    means = [-math.inf if math.isnan(value.mean) else sign * tables.rounded_mean(value, factor) for value in values]
    keys = [key for key in groups.keys if key.split(".")[0] in TASK]
    tasks = [tuple(group.settings.get(key) for key in keys) for group in groups.groups]
    counts = [0] * len(means)
    for current in dict.fromkeys(tasks):
        rivals = [k for k, other in enumerate(tasks) if other == current and means[k] > -math.inf]
        if not sign or not rivals or len({means[k] for k in rivals}) == 1:
            continue
        first = max(rivals, key=lambda k: means[k])
        ties = [k for k in rivals if means[k] == means[first] or is_by_chance(ends[first], ends[k])]
        for k in ties:
            counts[k] = len(ties)
    return counts


def is_by_chance(a: Ends, b: Ends) -> bool:
    """Return whether the difference of two rows is no larger than seeds explain (95 %)."""
    from scipy.special import stdtrit  # slow to import, and seldom needed

    gaps = np.array([a[key] - b[key] for key in a if key in b])
    gaps = gaps[np.isfinite(gaps)]
    if len(gaps) < 2:
        return False
    bound = float(stdtrit(len(gaps) - 1, QUANTILE)) * float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    return abs(float(gaps.mean())) <= bound
