"""All that the page is about: workloads as a user sees them, and the cases in which methods are compared."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.arena.plan import KINDS, LOW, Facts, Workload, facts, workloads
from benchmarks.arena.scores import MISS, Final, compared

COUNTED = {score: kind for kind, scores in KINDS.items() for score in scores}


class Entry(NamedTuple):
    """A workload, and what is known of it before methods run."""

    workload: Workload
    known: Facts


class Case(NamedTuple):
    """A goal under a score that some method reaches: the median cost of each method that can run, inf for a miss."""

    workload: str
    score: str
    goal: int
    costs: dict[str, float]
    accuracy: str = LOW

    @property
    def least(self) -> float:
        return min(self.costs.values(), default=math.inf)

    def ratio(self, label: str) -> float:
        """The cost over the least of any method; inf for a miss, nan of a method that cannot run."""
        return self.costs[label] / self.least if label in self.costs else math.nan

    def loss(self, label: str) -> float:
        """The logarithm of the ratio, at most that of MISS."""
        return math.log(min(self.ratio(label), MISS)) if label in self.costs else math.nan


def cases(final: Final) -> list[Case]:
    """What methods cost with the settings carried, the median over seeds, where one of them reaches the goal.

    The median of an even number of seeds is the mean of the middle two, a miss where one of these is.
    """
    found: dict[tuple[str, str, int], dict[str, float]] = defaultdict(dict)
    for (name, label, score), costs in final.items():
        for goal, cost in enumerate(np.median(costs, axis=1).tolist()):
            found[name, score, goal][label] = cost
    kept = [Case(*key, costs, facts()[key[0]].accuracies[key[2]]) for key, costs in found.items()]
    return [one for one in kept if math.isfinite(one.least)]


def of_accuracy(found: Sequence[Case], level: str) -> list[Case]:
    """The cases of an accuracy."""
    return [one for one in found if one.accuracy == level]


class Outcome(NamedTuple):
    """The final costs on the two parts, the methods in their order, and the workloads."""

    tuning: Final
    held: Final
    labels: Sequence[str]
    entries: dict[str, Entry]

    @property
    def both(self) -> Final:
        return self.tuning | self.held


def outcome(tuning: Final, held: Final) -> Outcome:
    """All of it, of the workloads that have costs."""
    names = {name for name, *_ in tuning | held}
    entries = {name: Entry(one, facts()[name]) for name, one in workloads().items() if name in names}
    return Outcome(tuning, held, compared(), entries)
