"""What the page tells, as numbers: shares and ranks of methods, pairs, winners of a workload, and what tuning gives.

All intervals are those of a paired bootstrap: whole workloads are drawn, and what differs between two methods on each.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import rankdata

from benchmarks.arena.decide import Pick, always
from benchmarks.arena.outcome import Case, cases, without
from benchmarks.arena.scores import CARRIED, MISS, OWN, Final
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.report.statistics import DRAWS, LEVEL, BootstrapBand, signed_rank_test

FEW = 5  # workloads on which two methods must run to be compared
TAIL = (1 - LEVEL) / 2


def of_score(found: Sequence[Case], score: str) -> list[Case]:
    """The cases of a score."""
    return [one for one in found if one.score == score]


def by_workload(found: Sequence[Case], labels: Sequence[str], value: Callable[[Case, str], float]) -> Array:
    """The mean of a value over the cases of each workload, (workloads, methods), nan where a method cannot run."""
    rows: dict[str, list[list[float]]] = {}
    for one in found:
        rows.setdefault(one.workload, []).append([value(one, label) for label in labels])
    return np.array([np.mean(part, axis=0) for part in rows.values()])


def interval(values: Array) -> BootstrapBand:
    """The mean over workloads of values (workloads, …), without those that are nan, and its bootstrap interval."""
    units = len(values)
    drawn = stream(0, "bootstrap", units).integers(units, size=(DRAWS, units))
    counts = np.apply_along_axis(np.bincount, 1, drawn, minlength=units)
    known = np.isfinite(values)

    def mean(weights: Array) -> Array:
        with np.errstate(invalid="ignore"):
            total = np.tensordot(weights, np.where(known, values, 0.0), 1)
            return total / np.tensordot(weights, known.astype(float), 1)

    middle, found = mean(np.ones((1, units)))[0], mean(counts)
    # A draw may lack all workloads on which a value is known.
    found = np.where(np.isnan(found), np.nan_to_num(middle), found)
    low, high = np.quantile(found, [TAIL, 1 - TAIL], axis=0)
    return BootstrapBand(middle, low, high)


class Standing(NamedTuple):
    """Shares of cases within twice the least, where a method can run; ``best``: no other method's share is larger.

    ``where``: on how many workloads each method can run.
    """

    within: BootstrapBand
    best: list[bool]
    where: list[int]


def standing(found: Sequence[Case], labels: Sequence[str]) -> Standing:
    """How methods stand under one score."""
    shares = by_workload(found, labels, Case.within)
    apart = shares[:, :, None] - shares[:, None, :]
    behind = (interval(apart).low > 0) & (np.isfinite(apart).sum(axis=0) >= FEW)  # (the better one, the other)
    return Standing(interval(shares), (~behind.any(axis=0)).tolist(), np.isfinite(shares).sum(axis=0).tolist())


class Pair(NamedTuple):
    """Two methods under a score, over workloads on which both run: how often the first costs less, and p of a test."""

    first: str
    second: str
    wins: int
    losses: int
    p: float


def pairs(found: Sequence[Case], labels: Sequence[str]) -> list[Pair]:
    """Wilcoxon's tests of the mean logarithms of costs under one score, not corrected; the better method is first."""
    losses = by_workload(found, labels, Case.loss)
    tests = []
    for a, first in enumerate(labels):
        for b in range(a):
            apart = losses[:, a] - losses[:, b]
            apart = apart[np.isfinite(apart)]
            if len(apart) >= FEW:
                counts = int(np.sum(apart < 0)), int(np.sum(apart > 0))
                pair = Pair(first, labels[b], *counts, signed_rank_test(apart))
                tests.append(pair if apart.mean() <= 0 else Pair(labels[b], first, *counts[::-1], pair.p))
    return tests


class Rank(NamedTuple):
    """A rank, 1 for the first, and the ranges of it without each other method and without each workload."""

    rank: int
    methods: tuple[int, int]
    workloads: tuple[int, int]


def ranks(found: Sequence[Case], labels: Sequence[str]) -> list[Rank]:
    """Ranks under one score by the share within twice the least; a method that is left out keeps its place free."""
    base = order(found, labels)
    names = dict.fromkeys(one.workload for one in found)
    fewer = np.array([order([one for one in found if one.workload != name], labels) for name in names])
    less = np.tile(base, (len(labels), 1))
    for k, left in enumerate(labels):
        others = np.arange(len(labels)) != k
        less[k, others] = order(without(found, left), [one for one in labels if one != left]) + (base > base[k])[others]
    lots = zip(base.tolist(), spans(less), spans(fewer), strict=True)
    return [Rank(*one) for one in lots]


def order(found: Sequence[Case], labels: Sequence[str]) -> Array:
    """The rank of each method, the last ones for those that run nowhere."""
    shares = by_workload(found, labels, Case.within)
    known = np.isfinite(shares)
    mean = np.where(known, shares, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    # Shares that differ by rounding alone tie.
    return rankdata(-mean.round(9), "min").astype(int)


def spans(found: Array) -> list[tuple[int, int]]:
    """The least and the largest of each column."""
    return list(zip(found.min(axis=0).tolist(), found.max(axis=0).tolist(), strict=True))


class Winner(NamedTuple):
    """Who costs least on a workload under a score at the hardest goal that is reached, and who ties with it."""

    goal: int
    best: list[str]


def winner(final: Final, found: Sequence[Case], name: str, score: str) -> Winner | None:
    """Methods tie where a paired bootstrap over seeds cannot tell their medians apart; None where all miss."""
    reached = [one for one in found if (one.workload, one.score) == (name, score)]
    if not reached:
        return None
    last = max(reached, key=lambda one: one.goal)
    costs = {label: final[name, label, score, CARRIED][last.goal] for label in last.costs}
    seeds = max(map(len, costs.values()))
    drawn = stream(0, "bootstrap", seeds).integers(seeds, size=(DRAWS, seeds))
    # A run without random numbers is the same for all seeds.
    medians = {label: np.median(np.broadcast_to(one, seeds)[drawn], axis=1) for label, one in costs.items()}
    first = min(last.costs, key=last.costs.__getitem__)
    ties = [label for label, one in medians.items() if np.mean(one <= medians[first]) > TAIL]
    return Winner(last.goal, [label for label in ties if math.isfinite(last.costs[label])])


class Gain(NamedTuple):
    """What tuning on the workload itself gives a method: shares of cases reached, and the ratio of costs."""

    workloads: int
    carried: float
    own: float
    ratio: BootstrapBand


def gain(final: Final, label: str) -> Gain | None:
    """The best try on a workload beside the setting carried there, where there are both; None where that is nowhere."""
    tuned = {one[:3]: one.costs[label] for one in cases(final, OWN) if label in one.costs}
    known = {(name, score) for name, own, score, when in final if (own, when) == (label, OWN)}
    both: dict[str, list[list[float]]] = {}
    for one in cases(final):
        if label in one.costs and one[:2] in known:
            own = one._replace(costs=one.costs | {label: tuned.get(one[:3], math.inf)})
            row = [math.isfinite(one.costs[label]), math.isfinite(own.costs[label])]
            both.setdefault(one.workload, []).append([*row, logarithm(one, own, label)])
    if not both:
        return None
    mean = np.array([np.mean(rows, axis=0) for rows in both.values()])
    ratio = interval(mean[:, 2])
    carried, tuned_there = mean[:, :2].mean(axis=0).tolist()
    return Gain(len(both), carried, tuned_there, BootstrapBand(*map(np.exp, ratio)))


def logarithm(carried: Case, own: Case, label: str) -> float:
    """The logarithm of the cost with own tuning over that carried, a miss being MISS times the least carried."""
    least = min(carried.costs.values())
    pair = [one.costs[label] / least for one in (own, carried)]
    return math.log(min(pair[0], MISS)) - math.log(min(pair[1], MISS))


class Regret(NamedTuple):
    """What a choice costs in cases: ratios to the least cost of any method, inf for a miss; ``unable``: cannot run."""

    ratios: list[float]
    unable: int

    @property
    def middle(self) -> float:
        """The median ratio; a miss where there is none."""
        return float(np.median(self.ratios)) if self.ratios else math.inf

    @property
    def within(self) -> int:
        """How many are at most twice the least."""
        return sum(ratio <= 2 for ratio in self.ratios)

    @property
    def missed(self) -> int:
        return sum(math.isinf(ratio) for ratio in self.ratios)


def regret(cases: Sequence[Case], pick: Pick) -> Regret:
    """The regret of a choice."""
    ratios = [one.ratio(pick(one)) for one in cases]
    able = [ratio for ratio in ratios if not math.isnan(ratio)]
    return Regret(able, len(ratios) - len(able))


def hindsight(cases: Sequence[Case], labels: Sequence[str]) -> str:
    """The method that is within twice the least in most of the cases, and of these the one with fewest misses."""
    found = {label: regret(cases, always(label)) for label in labels}
    return max(labels, key=lambda label: (found[label].within, -found[label].missed - found[label].unable))


def difference(cases: Sequence[Case], first: Pick, second: Pick) -> BootstrapBand:
    """By how much the share of cases within twice the least is larger of the first choice, with its interval."""
    by_name: dict[str, list[float]] = {}
    for one in cases:
        both = [float(one.ratio(pick(one)) <= 2) for pick in (first, second)]
        by_name.setdefault(one.workload, []).append(both[0] - both[1])
    return interval(np.array([[np.mean(found)] for found in by_name.values()]))
