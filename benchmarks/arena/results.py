"""What the page tells, as numbers: regrets of choices with intervals by workload, and what needs no rounds at all."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.arena.decide import Choice, Pick, always
from benchmarks.arena.outcome import Case, Entry
from benchmarks.arena.plan import rules
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.report.statistics import DRAWS, LEVEL

TAIL = (1 - LEVEL) / 2
TWICE = 2.0
BITS = 32  # of a number that travels
ONCE, POOLED = "samples sent once", "pooled solver"
TOLD = ("bits", "passes", "equal")  # scores that are known of these


class Regret(NamedTuple):
    """What a choice costs in cases: ratios to the least cost of any method, inf for a miss; ``unable``: cannot run.

    ``of``: the workload of each ratio.
    """

    ratios: Array
    of: Sequence[str]
    unable: int

    @property
    def middle(self) -> float:
        """The median ratio; a miss where there is none."""
        return middle(self.ratios)

    @property
    def within(self) -> int:
        """How many are at most twice the least."""
        return int(np.sum(self.ratios <= TWICE))

    @property
    def missed(self) -> int:
        return int(np.isinf(self.ratios).sum())

    def interval(self, measure: Callable[[Array], float]) -> tuple[float, float]:
        """95 % of a measure of ratios where workloads are drawn with their cases."""
        names = list(dict.fromkeys(self.of))
        parts = [self.ratios[np.array([of == name for of in self.of])] for name in names]
        drawn = stream(0, "bootstrap", len(names)).integers(len(names), size=(DRAWS, len(names)))
        found = np.array([measure(np.concatenate([parts[k] for k in row])) for row in drawn])
        low, high = np.quantile(found, [TAIL, 1 - TAIL], method="closest_observation")
        return float(low), float(high)


def middle(ratios: Array) -> float:
    """The median, the upper of the middle two where there are two; a miss of nothing."""
    return float(np.sort(ratios)[len(ratios) // 2]) if len(ratios) else math.inf


def share_within(ratios: Array) -> float:
    """The share that is at most twice the least."""
    return float(np.mean(ratios <= TWICE))


def share_missed(ratios: Array) -> float:
    """The share that misses."""
    return float(np.mean(np.isinf(ratios)))


def regret(found: Sequence[Case], pick: Pick) -> Regret:
    """The regret of a choice."""
    ratios = np.array([one.ratio(pick(one)) for one in found])
    able = ~np.isnan(ratios)
    return Regret(ratios[able], [one.workload for one, can in zip(found, able, strict=True) if can], int(sum(~able)))


def ranked(found: Sequence[Case], labels: Sequence[str]) -> list[tuple[str, Regret]]:
    """The regret of each method, first those within twice the least in most cases, then those with fewest misses."""
    regrets = [(label, regret(found, always(label))) for label in labels]
    return sorted(regrets, key=lambda one: score(one[1]), reverse=True)


def hindsight(found: Sequence[Case], labels: Sequence[str]) -> Choice:
    """The two methods, one where the other cannot run, that are within twice the least in most of these cases."""
    pairs = [Choice(best, last, {}) for best in labels for last in labels]
    return max(pairs, key=lambda pair: (score(regret(found, pair.pick)), pair.best == pair.last))


def score(found: Regret) -> tuple[int, int]:
    """How often it is within twice the least, and then how seldom it misses."""
    return found.within, -found.missed - found.unable


def reference(entry: Entry, one: Case) -> dict[str, float]:
    """What a case costs where clients send their samples once, and where all samples are in one place.

    The server then has a device as fast as all clients' together, and L-BFGS. Bits of samples are those of their
    numbers at 32 bits; the pooled solver sends none.
    """
    known, tick = entry.known, rules().system.tick
    passes = known.pooled[one.goal]
    passes = math.inf if passes < 0 else passes
    upload = tick / 2 + tick * known.numbers / known.m / known.n
    return {
        "bits": {ONCE: float(BITS * known.numbers) if math.isfinite(passes) else math.inf, POOLED: math.nan},
        "passes": {ONCE: passes, POOLED: passes},
        "equal": {ONCE: upload + tick * passes, POOLED: tick * passes},
    }[one.score]


class Beside(NamedTuple):
    """How the least of all methods stands to a reference: ``cases``, in how many that costs less, the median ratio."""

    cases: int
    less: int
    ratio: float


def beside(found: Sequence[Case], entries: dict[str, Entry], score: str, name: str) -> Beside | None:
    """Of a score; None where the reference has none."""
    ratios = np.array([reference(entries[one.workload], one)[name] / one.least for one in found if one.score == score])
    if not len(ratios) or np.isnan(ratios).all():
        return None
    return Beside(len(ratios), int(np.sum(ratios < 1)), middle(ratios))
