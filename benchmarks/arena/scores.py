"""From rows to scores: which try is best on a workload under a score, and what it costs with other seeds."""

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.arena.plan import SCORES, Plan, available, facts, labels, rules, workloads
from benchmarks.arena.runs import Rows, Task, tries
from mpifed.core.typing import Array

WORST = 10.0  # a miss counts as so many times the cap where logarithms are averaged
SELF = 0  # "after 0 tries": the one setting for all workloads and scores

Choice = dict[tuple[str, str, str, int], int]  # workload, method, score, tries -> the number of the best of these
Final = dict[tuple[str, str, str, int], Array]  # the same -> cost of each goal with each seed, (goals, seeds)


def names(plan: Plan, part: str) -> list[str]:
    """The workloads of a part that a plan runs."""
    found = [name for name, one in workloads().items() if one.part == part]
    return [name for name in found if not plan.workloads or name in plan.workloads]


def order(costs: Sequence[float]) -> tuple[float, ...]:
    """What tries are sorted by: the cost of the hardest goal, then of easier ones."""
    return tuple(reversed(costs))


def chosen(rows: Rows, plan: Plan, wanted: Iterable[str]) -> Choice:
    """The best of the first so many tries of every method, by score, on the tuning seed."""
    seed, found = rules().seeds.tuning, Choice()
    for name in wanted:
        for label in present(name, plan):
            for score in SCORES:
                costs = [order(rows[Task(name, label, k, seed)].costs[score]) for k in range(plan.tries)]
                for after in plan.after:
                    found[name, label, score, after] = min(range(after), key=costs.__getitem__)
    return found


def present(name: str, plan: Plan) -> list[str]:
    """The methods of a plan that can run on a workload."""
    return [label for label in labels(plan) if available(workloads()[name], label)]


def ratio(cost: float, reference: float) -> float:
    """The logarithm of a cost over a reference's, that of a miss being WORST times the cap."""
    worst = WORST * rules().goal.cap
    return math.log(min(cost / reference, worst) if math.isfinite(cost) else worst)


def common(rows: Rows, plan: Plan, wanted: Sequence[str]) -> dict[str, int]:
    """The try of each method that is best on all these workloads and scores together."""
    seed, found = rules().seeds.tuning, {}
    for label in labels(plan):
        totals = []
        for k in range(plan.tries):
            known = [
                (rows[Task(name, label, k, seed)].costs, facts()[name].reference) for name in allowed(label, wanted)
            ]
            totals.append(sum(mean_ratio(costs, reference) for costs, reference in known))
        found[label] = int(np.argmin(totals))
    return found


def allowed(label: str, wanted: Iterable[str]) -> list[str]:
    """The workloads on which a method can run."""
    return [name for name in wanted if available(workloads()[name], label)]


def mean_ratio(costs: dict[str, list[float]], reference: dict[str, list[float]]) -> float:
    """The mean of ``ratio`` over scores and goals."""
    pairs = [pair for score in SCORES for pair in zip(costs[score], reference[score], strict=True)]
    return sum(ratio(*pair) for pair in pairs) / len(pairs)


def finals(choice: Choice, single: dict[str, int], plan: Plan, wanted: Sequence[str]) -> list[Task]:
    """The runs with final seeds: those of all settings that were chosen, and of the one setting for everything."""
    first = rules().seeds.final
    seeds = range(first, first + plan.seeds)
    found: list[Task] = []
    for name in wanted:
        for label in present(name, plan):
            numbers = {number for (at, by, _, _), number in choice.items() if (at, by) == (name, label)}
            found += tries([name], [label], sorted(numbers | {single[label]}), seeds)
    return found


def scored(rows: Rows, choice: Choice, single: dict[str, int], plan: Plan, wanted: Sequence[str]) -> Final:
    """The costs of the chosen settings with the final seeds; a method that cannot run misses every goal."""
    found = Final()
    for name in wanted:
        able = present(name, plan)
        for label in labels(plan):
            for score in SCORES:
                for after in (SELF, *plan.after):
                    number = single[label] if after == SELF else choice.get((name, label, score, after), 0)
                    found[name, label, score, after] = costs(rows, (name, label, score), number, plan, label in able)
    return found


def costs(rows: Rows, of: tuple[str, str, str], number: int, plan: Plan, able: bool) -> Array:
    """The costs (goals, seeds) of a try."""
    name, label, score = of
    first = rules().seeds.final
    if not able:
        return np.full((len(rules().goal.gaps), plan.seeds), np.inf)
    tasks = [Task(name, label, number, seed) for seed in range(first, first + plan.seeds)]
    return np.array([rows[task].costs[score] for task in tasks]).T


class Cube(NamedTuple):
    """Final costs as one array (workloads, methods, goals, seeds), of one score and number of tries."""

    names: list[str]
    methods: list[str]
    costs: Array


def cube(final: Final, plan: Plan, wanted: Sequence[str], score: str, after: int) -> Cube:
    """The costs of all methods."""
    own = labels(plan)
    found = np.array([[final[name, label, score, after] for label in own] for name in wanted])
    return Cube(list(wanted), own, found)
