"""From rows to scores: which try is best, on all tuning workloads or on one, and what it costs with other seeds."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from benchmarks.arena.costs import one_of_each
from benchmarks.arena.plan import (
    HELD,
    KINDS,
    SCORES,
    Plan,
    available,
    entered,
    facts,
    labels,
    numbers,
    random,
    rules,
    workloads,
)
from benchmarks.arena.runs import Rows, Task, tries
from mpifed.core.typing import Array

MISS = 100.0  # a miss, or more, counts as so many times the least cost of all tries where logarithms are averaged

Settings = dict[str, dict[str, int]]  # kind -> method -> the number of its setting that is carried over
Final = dict[tuple[str, str, str], Array]  # workload, method, score -> costs (goals, seeds)


def names(plan: Plan, part: str) -> list[str]:
    """The workloads of a part that a plan runs."""
    found = [name for name, one in workloads().items() if one.part == part]
    return [name for name in found if not plan.workloads or name in plan.workloads]


def compared() -> list[str]:
    """The methods of rules.toml, and a user's own."""
    own = entered()
    return labels() + ([own["label"]] if own else [])


def able(label: str, wanted: Iterable[str]) -> list[str]:
    """The workloads on which a method can run."""
    return [name for name in wanted if available(name, label)]


def tuning_seeds(count: int) -> range:
    """The seeds of tries."""
    return range(rules().seeds.tuning, rules().seeds.tuning + count)


class Known:
    """Rows, and the ``least`` cost of each goal, by workload and score, of any method of the rules.

    Tries with the first tuning seed count.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        methods, costs = set(labels()), defaultdict[tuple[str, str], list[list[float]]](list)
        for task, row in rows.items():
            if task.seed == rules().seeds.tuning and task.method in methods:
                for score in SCORES:
                    costs[task.workload, score].append(row.costs[score])
        self.least = {of: [min(level) for level in zip(*each, strict=True)] for of, each in costs.items()}


def loss(known: Known, name: str, of: tuple[str, int], kind: str, seeds: Iterable[int]) -> float:
    """The mean logarithm of a try's cost over the least of all tries with the first tuning seed."""
    found = []
    for score in KINDS[kind]:
        least = known.least[name, score]
        for seed in seeds:
            for cost, best in zip(known.rows[Task(name, *of, seed)].costs[score], least, strict=True):
                if math.isfinite(best):
                    found.append(math.log(min(cost / best, MISS)))
    return sum(found) / len(found) if found else 0.0


def kept(rows: Rows, plan: Plan, wanted: Sequence[str]) -> dict[str, list[int]]:
    """The tries of each method that are best under some kind of cost with the first tuning seed."""
    known = Known(rows)
    found: dict[str, list[int]] = {}
    for label in compared():
        best: set[int] = set()
        for kind in KINDS:
            ranked = sorted(numbers(label, plan.tries), key=lambda k: carried_loss(known, (label, k), kind, wanted, 1))
            best |= set(ranked[: plan.keep])
        found[label] = sorted(best)
    return found


def carried_loss(known: Known, of: tuple[str, int], kind: str, wanted: Sequence[str], seeds: int) -> float:
    """The mean loss of a try over the workloads on which its method can run."""
    losses = [loss(known, name, of, kind, tuning_seeds(seeds)) for name in able(of[0], wanted)]
    return sum(losses) / max(1, len(losses))


def settings(rows: Rows, plan: Plan, wanted: Sequence[str]) -> Settings:
    """The try of each method and kind that is best on all these workloads together."""
    known, finalists = Known(rows), kept(rows, plan, wanted)
    return {
        kind: {
            label: min(finalists[label], key=lambda k: carried_loss(known, (label, k), kind, wanted, plan.tuning_seeds))
            for label in finalists
        }
        for kind in KINDS
    }


def finals(plan: Plan, carried: Settings, wanted: Sequence[str]) -> list[Task]:
    """The runs that judge settings carried over."""
    found: list[Task] = []
    for label in compared():
        for name in able(label, wanted):
            found += tries([name], [label], sorted({carried[kind][label] for kind in KINDS}), judges(plan, name))
    return found


def judges(plan: Plan, name: str) -> range:
    """The seeds of runs that judge on a workload: on tuning workloads those of the tries."""
    if workloads()[name].part != HELD:
        return tuning_seeds(plan.tuning_seeds)
    return range(rules().seeds.final, rules().seeds.final + plan.held_out_seeds)


def scored(rows: Rows, plan: Plan, carried: Settings, wanted: Sequence[str]) -> Final:
    """The costs of the chosen settings with the seeds that judge; nothing where a method cannot run."""
    found = Final()
    for label in compared():
        for name in able(label, wanted):
            drawn, goals = random(name, label), len(facts()[name].goals)
            for kind, of in KINDS.items():
                number = carried[kind][label]
                judged = [rows[Task(name, label, number, seed)].costs for seed in judges(plan, name)]
                for score in of:
                    costs = np.array([one[score] for one in judged]).reshape(-1, goals).T
                    found[name, label, score] = costs[:, :1] if one_of_each(score, drawn) else costs
    return found
