"""Compare the means of two cells, seed by seed, and find trends: what is beyond the error, what is a tie."""

import math
from itertools import combinations

import numpy as np

from benchmarks.verdict import LEVEL, Sample, student

HOLDS = "holds"
TIE = "tie"
FAILS = "does not hold"
UNDECIDED = "not decided"
SAME = 1e-3  # means that differ by less than this share are equal: tables print three or four digits
STEADY = 0.05  # probability with which a trend of the means may be due to chance
# why a case is not decided
LIMIT = "runs hit a limit"
SINGLE = "a single seed"
ERROR = "the error is too large"


def difference(a: Sample, b: Sample, tests: int = 1) -> tuple[float, float]:
    """The interval of the mean of a − b with level 0.95, from the differences of runs with the same seed.

    Such runs have the same data, so that their differences vary less than the runs. Where all numbers are positive,
    they are differences of logarithms, so that gaps of 1e-5 and 1e-3 count as a factor. With ``tests`` comparisons, all
    of their intervals together have this level. A run that ended early is only known to lie above its last number:
    then the interval reaches from the smallest difference on, or up to the largest, if most signs are known and the
    same. It is infinite with a single seed.
    """
    d, ends = differences(a, b)
    if len(d) < 2:
        return -math.inf, math.inf
    if ends.any():
        known = d[np.where(ends[0], d > 0, np.where(ends[1], d < 0, True)) & ~ends.all(axis=0)]
        enough = 2 * len(known) > len(d)
        down, up = enough and (known < 0).all(), enough and (known > 0).all()
        return (-math.inf if not up else float(known.min())), (math.inf if not down else float(known.max()))
    error = student(len(d) - 1, 1 - (1 - LEVEL) / tests) * float(d.std(ddof=1)) / math.sqrt(len(d))
    return float(d.mean()) - error, float(d.mean()) + error


def positive(a: Sample, b: Sample) -> bool:
    """Whether all numbers are positive, so that their ratios are compared."""
    return min(*a.values, *b.values) > 0


def differences(a: Sample, b: Sample) -> tuple[np.ndarray, np.ndarray]:
    """a − b, or log a − log b, for the seeds that both have, and whether either run ended early, as (2, seeds)."""
    first, second = (dict(zip(one.numbered, zip(one.values, one.early, strict=True), strict=True)) for one in (a, b))
    both = [seed for seed in first if seed in second]
    pairs = np.array([(first[seed][0], second[seed][0]) for seed in both]).reshape(-1, 2)
    ends = np.array([(first[seed][1], second[seed][1]) for seed in both], bool).reshape(-1, 2)
    pairs = np.log(pairs) if positive(a, b) else pairs
    with np.errstate(invalid="ignore"):
        return pairs[:, 0] - pairs[:, 1], ends.T


def below(a: Sample, b: Sample, tests: int = 1) -> str:
    """Whether the mean of ``a`` is below that of ``b``: HOLDS, FAILS if above, TIE within the error, or UNDECIDED."""
    low, high = difference(a, b, tests)
    if math.isinf(low) and math.isinf(high) and low < high:
        return UNDECIDED
    if low <= 0 <= high or equal(a.mean, b.mean):
        return TIE
    return HOLDS if high < 0 else FAILS


def equal(a: float, b: float) -> bool:
    """Whether two means differ by less than what tables print."""
    return a == b or (math.isfinite(a + b) and abs(a - b) <= SAME * max(abs(a), abs(b)))


def alike(a: Sample, b: Sample, within: float) -> str:
    """Whether the larger mean is at most 1 + ``within`` times the smaller one: HOLDS, FAILS or UNDECIDED."""
    low, high = difference(a, b)
    least = min(abs(a.mean), abs(b.mean))
    margin = math.log1p(within) if positive(a, b) else within * least
    if -margin <= low and high <= margin:
        return HOLDS
    return FAILS if low > margin or high < -margin else UNDECIDED


def together(found: list[str]) -> str:
    """What several comparisons say together: the worst of them."""
    return next((kind for kind in (FAILS, UNDECIDED, TIE) if kind in found), HOLDS)


def falling(found: list[Sample]) -> str:
    """Whether the means fall along the columns.

    FAILS if a mean is above an earlier one beyond the error. HOLDS if the last mean is below the first beyond the error
    and the means are steady: by Kendall's rank correlation, so many falling pairs are due to chance with a probability
    of at most 0.05; with less than four columns no order is that rare, and all means must fall. Otherwise TIE.
    """
    pairs = list(combinations(found, 2))
    if any(below(early, late, len(pairs)) == HOLDS for early, late in pairs):
        return FAILS
    ends = below(found[-1], found[0])
    return TIE if ends == HOLDS and not steady([one.mean for one in found]) else ends


def steady(means: list[float]) -> bool:
    """Whether the means fall in so many pairs that chance explains it with a probability of at most STEADY."""
    score, pairs = 0, list(combinations(means, 2))
    for early, late in pairs:
        if not equal(early, late):
            score += 1 if late < early else -1
    return score == len(pairs) or chance(len(means), score) <= STEADY


def chance(columns: int, score: int) -> float:
    """The probability that falling minus rising pairs of a random order of so many columns are at least ``score``."""
    orders = np.ones(1)  # by the number of rising pairs
    for size in range(2, columns + 1):
        orders = np.convolve(orders, np.ones(size))
    rising = np.arange(len(orders))
    return float(orders[len(orders) - 1 - 2 * rising >= score].sum() / orders.sum())


def reason(found: list[Sample]) -> str:
    """Why a case is not decided."""
    if min(len(one.values) for one in found) < 2:
        return SINGLE
    return LIMIT if any(one.early.any() for one in found) else ERROR
