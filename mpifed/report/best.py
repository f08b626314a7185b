"""Which rows of a table are best: those whose lead the seeds do not explain, compared over the same seeds."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import stdtrit

from mpifed.report import tables
from mpifed.report.curves import errors, task
from mpifed.report.metrics import final, last
from mpifed.report.settings import Study, settings
from mpifed.report.tables import Number
from mpifed.results.result import Result

TASK = ("data", "problem")  # rows that differ in these settings do not compete: their objectives are not comparable
LEVEL = 0.975  # quantile of Student's t: 95 % on both sides

Ends = Mapping[tuple[str | None, ...], float]  # settings that means are taken over, the seed for example -> last value


def final_values(groups: Study, name: str, by: Sequence[str], everything: bool) -> list[Ends]:
    """The last value of a metric in every run that counts, for each group."""
    counted = [[run for run in group.runs if everything or run.status == "finished"] for group in groups.groups]
    values = (
        above_least(counted) if name == "error" else {id(run): final(run, name) for runs in counted for run in runs}
    )
    return [by_seed(runs, by, values) for runs in counted]


def by_seed(runs: Sequence[Result], by: Sequence[str], values: Mapping[int, float]) -> Ends:
    """The values of runs by their settings ``by``, and by their number among those that agree in these."""
    counts = Counter[tuple[str | None, ...]]()
    found: dict[tuple[str | None, ...], float] = {}
    for run in runs:
        key = tuple(settings(run).get(name) for name in by)
        found[(*key, str(counts[key]))] = values[id(run)]
        counts[key] += 1
    return found


def above_least(groups: Sequence[Sequence[Result]]) -> dict[int, float]:
    """id of a run -> the last value of its error; nan for data that not every competing group has."""
    runs = [run for group in groups for run in group]
    name, columns = errors(runs) if runs else ("error", [])
    ends = [last(values) for values in columns]
    if name != "error":
        return {id(run): end for run, end in zip(runs, ends, strict=True)}
    shared: dict[object, set[object]] = {}
    for group in groups:
        own: dict[object, set[object]] = {}
        for run in group:
            own.setdefault(kind(run), set()).add(task(run))
        for key, tasks in own.items():
            shared[key] = shared.get(key, tasks) & tasks
    return {id(run): end if task(run) in shared[kind(run)] else math.nan for run, end in zip(runs, ends, strict=True)}


def kind(run: Result) -> tuple[tuple[str, str], ...]:
    """Data and problem of a run, whatever their seed."""
    return tuple(part for part in task(run) if part[0] not in ("seed", "data.seed"))


def number(ends: Ends) -> Number:
    """Mean and standard deviation (divisor n − 1) of the values that are there."""
    values = np.array([end for end in ends.values() if not math.isnan(end)])
    if not len(values):
        return Number(math.nan)
    # Squares of values of runs that diverged would overflow. A power of two changes no bit of the others.
    size = 2.0 ** (math.frexp(float(np.abs(values).max()))[1] - 1)
    values = values / size
    return Number(size * float(values.mean()), size * float(values.std(ddof=1)) if len(values) > 1 else math.nan)


def winners(groups: Study, values: Sequence[Number], ends: Sequence[Ends], sign: int, factor: float) -> list[int]:
    """For each row how many are best with it, among the rows with the same data and problem; 0: the row is not best.

    Rows tie with the best that print the same number as it, and those whose difference from it, over the seeds that
    both have, is explained by the seeds.
    """
    means = [-math.inf if math.isnan(value.mean) else sign * tables.shown(value, factor) for value in values]
    keys = [key for key in groups.keys if key.split(".")[0] in TASK]
    tasks = [tuple(group.settings.get(key) for key in keys) for group in groups.groups]
    found = [0] * len(means)
    for own in dict.fromkeys(tasks):
        rivals = [k for k, other in enumerate(tasks) if other == own and means[k] > -math.inf]
        if not sign or not rivals or len({means[k] for k in rivals}) == 1:
            continue
        first = max(rivals, key=lambda k: means[k])
        ties = [k for k in rivals if means[k] == means[first] or explained(ends[first], ends[k])]
        for k in ties:
            found[k] = len(ties)
    return found


def explained(a: Ends, b: Ends) -> bool:
    """Whether the difference of two rows is no larger than seeds explain (95 %)."""
    gaps = np.array([a[key] - b[key] for key in a if key in b])
    gaps = gaps[np.isfinite(gaps)]
    if len(gaps) < 2:
        return False
    bound = float(stdtrit(len(gaps) - 1, LEVEL)) * float(gaps.std(ddof=1)) / math.sqrt(len(gaps))
    return abs(float(gaps.mean())) <= bound
