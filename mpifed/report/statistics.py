"""Statistics over paired runs: performance profiles, bootstrap bands, tests of pairs with Holm's correction."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from mpifed.core.streams import stream
from mpifed.core.typing import Array

LEVEL = 0.95  # of bands
DRAWS = 2000  # of a bootstrap


class BootstrapBand(NamedTuple):
    middle: Array
    low: Array
    high: Array


class Pair(NamedTuple):
    """A comparison of two rows ``a`` and ``b``: how often each is lower, and p, corrected by Holm for all pairs."""

    a: int
    b: int
    wins: int
    losses: int
    p: float


def cost_ratios(costs: Array) -> Array:
    """Return costs (instances, methods) over the smallest of their instance; inf for a miss, and where all miss.

    Source: E. D. Dolan, J. J. Moré, "Benchmarking optimization software with performance profiles",
    doi:10.1007/s101070100263 (2002).
    """
    costs = np.asarray(costs, float)
    smallest = costs.min(axis=1, keepdims=True)
    finite = np.isfinite(costs) & np.isfinite(smallest)
    quotients = np.full(costs.shape, np.inf)
    np.divide(costs, smallest, out=quotients, where=finite & (smallest > 0))
    # Also where the smallest cost is 0, by which nothing can be divided.
    quotients[finite & (costs == smallest)] = 1.0
    return quotients


def performance_profile(costs: Array, factors: Array) -> Array:
    """Return ρ(τ), the fraction of instances with a cost of at most τ times the smallest, (methods, factors)."""
    within = cost_ratios(costs)[:, :, None] <= np.asarray(factors)
    return np.mean(within, axis=0)


def bootstrap_band(groups: Sequence[Array], statistic: Callable[[Array], Array], draws: int = DRAWS) -> BootstrapBand:
    """Return the statistic of all instances, with a bootstrap that draws whole groups and, in each, instances.

    A group (instances, methods) is a workload: another seed of it is no new workload.
    """
    rng = stream(0, "bootstrap", len(groups))
    samples = []
    for _ in range(draws):
        drawn = [groups[k] for k in rng.integers(len(groups), size=len(groups))]
        samples.append(statistic(np.concatenate([one[rng.integers(len(one), size=len(one))] for one in drawn])))
    tail = (1 - LEVEL) / 2
    # A quantile that is one of the draws, because numbers and inf cannot be interpolated.
    low, high = np.quantile(samples, [tail, 1 - tail], axis=0, method="inverted_cdf")
    return BootstrapBand(statistic(np.concatenate(list(groups))), low, high)


def holm_correction(p: Sequence[float]) -> list[float]:
    """Return p-values corrected for their number n: the k-th smallest is (n − k + 1)p, but not below earlier ones.

    Source: S. Holm, "A simple sequentially rejective multiple test procedure", doi:10.2307/4615733 (1979).
    """
    order = np.argsort(p, kind="stable").tolist()
    corrected = [1.0] * len(p)
    largest = 0.0
    for k, index in enumerate(order):
        largest = max(largest, (len(p) - k) * p[index])
        corrected[index] = min(1.0, largest)
    return corrected


def pairwise_tests(costs: Array) -> list[Pair]:
    """Return Wilcoxon's signed-rank test of every two columns of costs (instances, methods), of which less is better.

    Ties are left out.
    """
    tests = []
    for a, b in combinations(range(costs.shape[1]), 2):
        differences = costs[:, a] - costs[:, b]
        wins, losses = (int(np.sum(sign * differences > 0)) for sign in (-1, 1))
        tests.append(Pair(a, b, wins, losses, signed_rank_test(differences)))
    return [pair._replace(p=p) for pair, p in zip(tests, holm_correction([pair.p for pair in tests]), strict=True)]


def signed_rank_test(differences: Array) -> float:
    """Return the p-value of Wilcoxon's signed-rank test, exact for up to 50 differences of different sizes."""
    from scipy.stats import wilcoxon  # slow to import

    nonzero = differences[differences != 0]
    return float(wilcoxon(nonzero).pvalue) if len(nonzero) else 1.0
