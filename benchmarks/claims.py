"""Check what a paper says about an order or a trend on our runs: differences seed by seed, trends, and ties."""

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

import numpy as np

from benchmarks.bench import Bench, Claim
from benchmarks.grid import Cell
from benchmarks.verdict import LEVEL, OTHER, Sample, student
from mpifed.report.names import setting_title

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


class Case(NamedTuple):
    """Means that a claim compares, for example "Example V.1, k₀ = 5" with FedGiA 3 and FedAvg 112.

    ``other``: the data are not the paper's.
    """

    name: str
    means: dict[str, float]
    other: bool = False


class Finding(NamedTuple):
    """The outcome of a claim: the cases that agree, those that do not, ties; ``open``: why others are not decided."""

    claim: Claim
    agreeing: Sequence[Case] = ()
    against: Sequence[Case] = ()
    ties: Sequence[Case] = ()
    open: Sequence[str] = ()

    @property
    def cases(self) -> int:
        """The number of cases that are decided."""
        return len(self.agreeing) + len(self.against) + len(self.ties)

    @property
    def kind(self) -> str:
        """FAILS if one case on the paper's data fails, else TIE if one is a tie, else HOLDS if there is one.

        Without such a case OTHER, and UNDECIDED if no case is decided.
        """
        kinds = {FAILS: self.against, TIE: self.ties, HOLDS: self.agreeing}
        found = [kind for kind, cases in kinds.items() if not all(case.other for case in cases)]
        return next(iter(found), OTHER if self.cases else UNDECIDED)


def examine(bench: Bench, claim: Claim, samples: dict[tuple[Cell, str], Sample]) -> Finding:
    """Check a claim in every block and case."""
    cases: dict[str, list[Case]] = {HOLDS: [], FAILS: [], TIE: []}
    open = list[str]()
    for block in bench.block:
        if claim.blocks and block.name not in claim.blocks:
            continue
        for name, found in compared(bench, claim, block.name, samples):
            if any(math.isnan(one.mean) for one in found.values()):
                continue
            kind = status(claim, list(found.values()))
            if kind == UNDECIDED:
                open.append(reason(list(found.values())))
                continue
            title = ", ".join(filter(None, (block.title, name)))
            means = {key: one.mean for key, one in found.items()}
            cases[kind].append(Case(title, means, bool(block.surrogate)))
    return Finding(claim, cases[HOLDS], cases[FAILS], cases[TIE], open)


def compared(
    bench: Bench, claim: Claim, block: str, samples: dict[tuple[Cell, str], Sample]
) -> list[tuple[str, dict[str, Sample]]]:
    """The cases of a claim in a block with samples by name: a column, a row for a trend, a cell for a bound."""
    values = [value for value in bench.values if not claim.values or value in claim.values]

    def sample(row: str, value: object) -> Sample:
        return samples.get((Cell(block, row, value), claim.measure), Sample())

    cases: list[tuple[str, dict[str, Sample]]] = []
    if rows := claim.order or claim.equal:
        cases = [(named(bench, value), {row: sample(row, value) for row in rows}) for value in values]
    for row in claim.falls + claim.rises + claim.flat:
        cases.append((row, {named(bench, value): sample(row, value) for value in values}))
    for row in claim.below:
        cases += [(named(bench, value), {row: sample(row, value)}) for value in values]
    return cases


def named(bench: Bench, value: object) -> str:
    """A column by name, for example "k₀ = 5"; "" for a table without columns."""
    return "" if bench.columns is None else f"{setting_title(bench.columns.short)} = {value}"


def status(claim: Claim, found: list[Sample]) -> str:
    """Whether the claim holds for these samples: HOLDS, TIE, FAILS or UNDECIDED."""
    if claim.below:
        if max(found[0].values) > claim.bound:
            return FAILS
        return UNDECIDED if found[0].early.any() else HOLDS
    if claim.order:
        return together([below(a, b) for a, b in pairwise(found)])
    if claim.falls or claim.rises:
        return falling(found if claim.falls else found[::-1])
    return together([alike(a, b, claim.within) for a, b in combinations(found, 2)])


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
