"""Statistics over paired runs: performance profiles, bootstrap bands, tests of pairs with Holm's correction."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from mpifed.core.streams import stream
from mpifed.core.typing import Array

LEVEL = 0.95  # of bands
DRAWS = 2000  # of a bootstrap


class Band(NamedTuple):
    middle: Array
    low: Array
    high: Array


class Pair(NamedTuple):
    """A comparison of two rows ``a`` and ``b``: how often each was less, and p, corrected by Holm for all pairs."""

    a: int
    b: int
    wins: int
    losses: int
    p: float


def ratios(costs: Array) -> Array:
    """Costs (instances, methods) over the least of their instance; inf for a miss, and where all miss.

    Source: E. D. Dolan, J. J. Moré, "Benchmarking optimization software with performance profiles",
    doi:10.1007/s101070100263 (2002).
    """
    costs = np.asarray(costs, float)
    least = costs.min(axis=1, keepdims=True)
    known = np.isfinite(costs) & np.isfinite(least)
    found = np.full(costs.shape, np.inf)
    np.divide(costs, least, out=found, where=known & (least > 0))
    # Also of a least cost of 0, by which nothing can be divided.
    found[known & (costs == least)] = 1.0
    return found


def profile(costs: Array, factors: Array) -> Array:
    """ρ(τ): the share of instances whose cost is at most τ times the least, (methods, factors)."""
    within = ratios(costs)[:, :, None] <= np.asarray(factors)
    return np.mean(within, axis=0)


def band(groups: Sequence[Array], statistic: Callable[[Array], Array], draws: int = DRAWS) -> Band:
    """The statistic of all instances, with a bootstrap that draws whole groups and, in each, instances.

    A group (instances, methods) is a workload: what is measured on it again with another seed is no new workload.
    """
    rng = stream(0, "bootstrap", len(groups))
    found = []
    for _ in range(draws):
        picked = [groups[k] for k in rng.integers(len(groups), size=len(groups))]
        found.append(statistic(np.concatenate([one[rng.integers(len(one), size=len(one))] for one in picked])))
    tail = (1 - LEVEL) / 2
    # A quantile that is one of the draws: between a number and inf there is nothing to interpolate.
    low, high = np.quantile(found, [tail, 1 - tail], axis=0, method="inverted_cdf")
    return Band(statistic(np.concatenate(list(groups))), low, high)


def holm(p: Sequence[float]) -> list[float]:
    """p-values corrected for their number: of the k-th smallest of n, (n − k + 1)p, and no less than those before it.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", doi:10.2307/4615733 (1979).
    """
    order = np.argsort(p, kind="stable").tolist()
    found = [1.0] * len(p)
    largest = 0.0
    for k, index in enumerate(order):
        largest = max(largest, (len(p) - k) * p[index])
        found[index] = min(1.0, largest)
    return found


def pairwise(costs: Array, signed: bool = False) -> list[Pair]:
    """A test of every two columns of costs (instances, methods), of which less is better; ties are left out.

    It is the sign test, for which a miss, inf, is more than any cost; with ``signed``, for costs that are all finite,
    Wilcoxon's test of signed ranks.
    """
    found = []
    for a, b in combinations(range(costs.shape[1]), 2):
        wins = int(np.sum(costs[:, a] < costs[:, b]))
        losses = int(np.sum(costs[:, b] < costs[:, a]))
        p = signed_ranks(costs[:, a] - costs[:, b]) if signed else sign_test(wins, losses)
        found.append(Pair(a, b, wins, losses, p))
    return [pair._replace(p=p) for pair, p in zip(found, holm([pair.p for pair in found]), strict=True)]


def sign_test(wins: int, losses: int) -> float:
    """The probability of counts at least as uneven as these where either is as likely."""
    from scipy.stats import binomtest  # it takes time to import

    return float(binomtest(wins, wins + losses).pvalue) if wins + losses else 1.0


def signed_ranks(differences: Array) -> float:
    """The p-value of Wilcoxon's signed-rank test, exact for up to 50 differences, no two of which are equal in size."""
    from scipy.stats import wilcoxon

    left = differences[differences != 0]
    return float(wilcoxon(left).pvalue) if len(left) else 1.0


def winners(found: Band, better: int = 1) -> list[int]:
    """The methods whose bands reach that of the best one: one of them is a winner, several tie."""
    best = int(np.argmax(better * found.middle))
    edge, other = (found.low, found.high) if better > 0 else (found.high, found.low)
    return [k for k in range(len(found.middle)) if k == best or better * other[k] >= better * edge[best]]
