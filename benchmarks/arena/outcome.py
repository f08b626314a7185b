"""All that the page is about: workloads as a user sees them, and the cases in which methods are compared."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.arena.plan import KINDS, facts, workloads
from benchmarks.arena.scores import CARRIED, MISS, Final, compared

COUNTED = {score: kind for kind, scores in KINDS.items() for score in scores}


class Entry(NamedTuple):
    """A workload, as far as a user can see it; ``gaps``: f at a goal, as a share of f0 − f*."""

    part: str
    about: str
    group: str
    batch: int
    m: int
    n: int
    skew: float
    share: float
    curved: bool
    gaps: Sequence[float]


class Case(NamedTuple):
    """A goal under a score that some method reaches: the median cost of each method that can run, inf for a miss."""

    workload: str
    score: str
    goal: int
    costs: dict[str, float]

    def ratio(self, label: str) -> float:
        """The cost over the least of any method; inf for a miss, nan of a method that cannot run."""
        return self.costs[label] / min(self.costs.values()) if label in self.costs else math.nan

    def loss(self, label: str) -> float:
        """The logarithm of the ratio, at most that of MISS."""
        return math.log(min(self.ratio(label), MISS)) if label in self.costs else math.nan

    def within(self, label: str) -> float:
        """1 where the cost is at most twice the least, else 0."""
        return float(self.ratio(label) <= 2) if label in self.costs else math.nan


def cases(final: Final, after: int = CARRIED) -> list[Case]:
    """What methods cost with the settings carried, the median over seeds, where one of them reaches the goal.

    The median of an even number of seeds is the mean of the middle two, a miss where one of these is.
    """
    found: dict[tuple[str, str, int], dict[str, float]] = defaultdict(dict)
    for (name, label, score, when), costs in final.items():
        if when == after:
            for goal, cost in enumerate(np.median(costs, axis=1).tolist()):
                found[name, score, goal][label] = cost
    return kept([Case(*key, costs) for key, costs in found.items()])


def kept(found: Sequence[Case]) -> list[Case]:
    """Those in which a method reaches the goal."""
    return [one for one in found if math.isfinite(min(one.costs.values(), default=math.inf))]


def without(found: Sequence[Case], label: str) -> list[Case]:
    """The cases as they are where there is no such method."""
    return kept([one._replace(costs={own: c for own, c in one.costs.items() if own != label}) for one in found])


class Outcome(NamedTuple):
    """The final costs on the two parts, the methods in their order, and the workloads."""

    tuning: Final
    held: Final
    labels: Sequence[str]
    entries: dict[str, Entry]

    @property
    def both(self) -> Final:
        return self.tuning | self.held


def entry(name: str) -> Entry:
    """A workload, from workloads.toml and goals.toml."""
    one, known = workloads()[name], facts()[name]
    seen = known.m, known.n, known.skew, known.share, known.curved, known.gaps
    return Entry(one.part, one.about, one.group, one.batch, *seen)


def outcome(tuning: Final, held: Final) -> Outcome:
    """All of it, of the workloads that have costs."""
    names = {name for name, *_ in tuning | held}
    return Outcome(tuning, held, compared(), {name: entry(name) for name in workloads() if name in names})
