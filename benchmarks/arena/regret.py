"""What a choice of methods costs beside the best method of each case."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.arena.decide import Pick, always
from benchmarks.arena.outcome import Case
from benchmarks.arena.results import interval
from mpifed.report.statistics import BootstrapBand


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
