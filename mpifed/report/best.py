"""Selection of the best rows of a table: those whose lead over the same seeds is larger than chance explains."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import stdtrit

from mpifed.report import tables
from mpifed.report.curves import error_columns, task_settings
from mpifed.report.metrics import final_metric, last_finite
from mpifed.report.settings import RunGroups, run_settings
from mpifed.report.tables import Number
from mpifed.results.result import RunRecord

TASK = ("data", "problem")  # rows that differ in these settings do not compete: their objectives are not comparable
LEVEL = 0.975  # quantile of Student's t: 95 % on both sides

Ends = Mapping[tuple[str | None, ...], float]  # settings to take means over, the seed for example -> last value


def final_values(groups: RunGroups, name: str, by: Sequence[str], everything: bool) -> list[Ends]:
    """Return the last value of a metric in every run that counts, for each group."""
    counted = [[run for run in group.runs if everything or run.status == "finished"] for group in groups.groups]
    values = (
        final_errors(counted)
        if name == "error"
        else {id(run): final_metric(run, name) for runs in counted for run in runs}
    )
    return [values_by_seed(runs, by, values) for runs in counted]


def values_by_seed(runs: Sequence[RunRecord], by: Sequence[str], values: Mapping[int, float]) -> Ends:
    """Return the values of runs by their settings ``by`` and their number among the runs that agree in these."""
    counts = Counter[tuple[str | None, ...]]()
    ends: dict[tuple[str | None, ...], float] = {}
    for run in runs:
        key = tuple(run_settings(run).get(name) for name in by)
        ends[(*key, str(counts[key]))] = values[id(run)]
        counts[key] += 1
    return ends


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
    gaps = np.array([a[key] - b[key] for key in a if key in b])
    gaps = gaps[np.isfinite(gaps)]
    if len(gaps) < 2:
        return False
    bound = float(stdtrit(len(gaps) - 1, LEVEL)) * float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    return abs(float(gaps.mean())) <= bound
