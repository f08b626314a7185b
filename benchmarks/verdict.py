"""Compare our number with the paper's: whether the spread of the seeds explains their difference."""

import math
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.bench import ON_OTHER_DATA, Number, Printed

LEVEL = 0.95  # of the intervals
FEW = 3  # with fewer seeds the verdict is open
WIDE = 0.25  # an interval that reaches farther than this share of the number leaves the verdict open
TELLING = 0.25  # one that reaches farther than this share of the spread between rows cannot tell the methods apart
FAILED = "failed"  # begins the reason why no run has a number where all of them failed
AGREES = "agrees"
OFF = "off"
OPEN = "open"
FITTED = "in sample"  # would agree, but a setting of the row was chosen after looking at the number
ALIKE = "cannot tell the methods apart"
OTHER = "on other data"
NONE = "not available"
TIME = "seconds"
MARKS = {AGREES: "=", FITTED: "°", ALIKE: "≟", OFF: "✗", OPEN: "?", OTHER: ON_OTHER_DATA, NONE: "–", TIME: "", "": ""}


class Sample(NamedTuple):
    """A measure of the runs of a cell.

    ``limited`` runs hit the round limit. ``reason``: why no run has the measure. ``least``: a lower bound for the runs
    that hit the limit or never met the condition. ``seeds``: of the values, in their order. ``ends``: which runs hit
    the limit; without it, all or none.
    """

    values: tuple[float, ...] = ()
    limited: int = 0
    reason: str = ""
    least: float = math.inf
    seeds: tuple[int, ...] = ()
    ends: tuple[bool, ...] = ()

    @property
    def known(self) -> np.ndarray:
        """The finite values."""
        values = np.array(self.values)
        return values[np.isfinite(values)]

    @property
    def unreached(self) -> int:
        """The number of runs that never met the condition."""
        return sum(map(math.isinf, self.values))

    @property
    def numbered(self) -> tuple[int, ...]:
        """The seeds, 0, 1, 2, … if they are not given."""
        return self.seeds or tuple(range(len(self.values)))

    @property
    def early(self) -> np.ndarray:
        """Which runs hit the limit or never met the condition, so that only a lower bound is known."""
        ends = self.ends or (0 < len(self.values) == self.limited,) * len(self.values)
        return np.array(ends, bool) | np.isinf(self.values)

    @property
    def mean(self) -> float:
        """The mean; inf if a run never met the condition, nan without runs."""
        if not self.values:
            return math.nan
        return math.inf if self.unreached else float(np.mean(self.values))

    @property
    def median(self) -> float:
        """The median; inf if half of the runs never met the condition, nan without runs."""
        return float(np.median(self.values)) if self.values else math.nan

    @property
    def constant(self) -> bool:
        """Whether all values are equal."""
        return len(set(self.values)) == 1

    @property
    def sd(self) -> float:
        """The standard deviation of the finite values; 0 for a single one."""
        return float(self.known.std(ddof=1)) if len(self.known) > 1 else 0.0

    @property
    def counts(self) -> bool:
        """Whether all finite values are whole numbers."""
        return bool((self.known == np.round(self.known)).all())


class Verdict(NamedTuple):
    """A verdict: AGREES, FITTED, ALIKE, OFF, OPEN, OTHER, NONE or TIME, and its text."""

    kind: str
    text: str


def judge(ours: Sample, paper: Number, trials: float, seconds: bool = False, center: str = "mean") -> Verdict:
    """Compare the mean over our n seeds with the paper's mean over ``trials`` runs, or with its bound "> number".

    They agree if the paper's number lies in the 95 % interval that ``interval`` expects it in, widened by h, half a
    unit of the last digit printed; otherwise the cell is off. With ``trials`` = 1 this is the prediction interval of a
    single run. ``center`` = "median" compares medians.

    The verdict is open with fewer than three seeds, if the interval reaches farther than a quarter of the number, and
    if our runs ended before they came as far as the paper's. A count that is the same for all seeds, and in the paper,
    agrees however wide the interval is.
    """
    n, bounded = len(ours.values), isinstance(paper, str)
    number = float(str(paper).removeprefix(">"))
    failed = sum(map(math.isnan, ours.values))
    if failed == n and not ours.reason.startswith(FAILED):
        return Verdict(NONE, ours.reason or "no number")
    if failed:
        return Verdict(OPEN if n < FEW else OFF, f"failed with {failed} of {n} seeds")
    if ours.least < number:
        return Verdict(OPEN, f"above {ours.least:g} here")
    if bounded:
        below = int(np.sum((np.array(ours.values) <= number) & ~ours.early))
        kind, text = (OFF, f"reached with {below} of {n} seeds") if below else (AGREES, "not reached here either")
        return Verdict(OPEN if n < FEW else kind, text)
    if ours.unreached and (center == "mean" or 2 * ours.unreached >= n):
        return Verdict(OPEN if n < FEW else OFF, f"not reached with {ours.unreached} of {n} seeds")
    if seconds:
        return Verdict(TIME, f"{ours.mean / number:.2g} × theirs")
    return judge_center(ours, number, printed(paper), trials, center)


def judge_center(ours: Sample, number: float, half: float, trials: float, center: str) -> Verdict:
    """Apply the interval of ``judge``."""
    own = ours.median if center == "median" else ours.mean
    away = percent(own / number - 1) if number else f"{own:+.3g}"
    if len(ours.values) < FEW:
        return Verdict(OPEN, f"{away}, {len(ours.values)} seed{'s' * (len(ours.values) > 1)}")
    low, high = interval(ours, trials, center)
    if not low - half <= number <= high + half:
        return Verdict(OFF, away)
    reach = max(high - own, own - low) + half
    same = ours.constant and ours.counts and abs(own - number) <= half
    if number and reach > WIDE * abs(number) and not same:
        return Verdict(
            OPEN, f"{away}, interval ± {f'{100 * reach / abs(number):.0f} %' if math.isfinite(reach) else '∞'}"
        )
    return Verdict(AGREES, away)


def telling(
    verdict: Verdict, ours: Sample, paper: Number, others: Sequence[Number], trials: float, center: str
) -> Verdict:
    """ALIKE in place of AGREES where the same runs agree with another row's number as well, or nearly.

    A verdict must be able to fail. So the interval may reach at most a quarter of the spread of all rows' numbers, and
    none of the ``others`` that differs from the row's own may lie in it. Of a bound "> number" one other row must be
    printed without it. Without other rows there is nothing to tell apart.
    """
    if verdict.kind != AGREES or not others:
        return verdict
    if isinstance(paper, str):
        return verdict if any(not isinstance(other, str) for other in others) else Verdict(ALIKE, "no row reaches it")
    low, high = interval(ours, trials, center)
    own = ours.median if center == "median" else ours.mean
    reach = max(high - own, own - low) + printed(paper)
    values = [float(str(number).removeprefix(">")) for number in (paper, *others)]
    spread = max(values) - min(values)
    inside = [
        other
        for other in others
        if not isinstance(other, str)
        and float(other) != float(paper)
        and low - printed(other) <= float(other) <= high + printed(other)
    ]
    if reach > TELLING * spread:
        return Verdict(ALIKE, f"{verdict.text}, ± {reach:.2g} where rows spread over {spread:.2g}")
    return Verdict(ALIKE, f"{verdict.text}, and another row's {inside[0]:g} fits too") if inside else verdict


def interval(ours: Sample, trials: float, center: str = "mean") -> tuple[float, float]:
    """Where the mean or median of ``trials`` further runs lies with probability 0.95, by n of ours.

    Mean: ± t·s·√(1/n + 1/trials), with the quantile t of Student's distribution and our standard deviation s. A count
    that is the same for all seeds has s = 0. By the rule of succession, so many of ``trials`` further runs differ as
    the beta-binomial distribution with parameters 1 and n + 1 says, each by one.

    Median: from our i-th smallest number to the i-th largest. That so many of ``trials`` further runs are smaller than
    our i-th smallest has a beta-binomial distribution with parameters i and n + 1 − i, whatever the distribution.
    """
    n = len(ours.values)
    if center == "median":
        return median_interval(np.sort(ours.values), trials)
    if ours.constant:
        reach = differing(n, trials) if ours.counts else 0.0
    else:
        reach = student(n - 1) * ours.sd * math.sqrt(1 / n + 1 / trials)
    return ours.mean - reach, ours.mean + reach


def differing(n: int, trials: float) -> float:
    """The share of ``trials`` further runs that may differ from n equal ones, exceeded with probability 0.05."""
    if math.isinf(trials):
        return float(stats.beta.ppf(LEVEL, 1, n + 1))
    return float(stats.betabinom.ppf(LEVEL, int(trials), 1, n + 1)) / trials


def median_interval(values: np.ndarray, trials: float) -> tuple[float, float]:
    """The interval of ``interval`` for the median; infinite with too few seeds."""
    n = len(values)
    rank = np.arange(1, n + 1)
    if math.isinf(trials):
        beyond = stats.beta.sf(0.5, rank, n + 1 - rank)
    else:
        beyond = stats.betabinom.sf((int(trials) + 1) // 2 - 1, int(trials), rank, n + 1 - rank)
    i = int(np.sum(beyond <= (1 - LEVEL) / 2))
    return (float(values[i - 1]), float(values[n - i])) if i else (-math.inf, math.inf)


@cache
def student(freedom: int, level: float = LEVEL) -> float:
    """The two-sided quantile of Student's distribution."""
    return float(stats.t.ppf((1 + level) / 2, freedom))


def percent(share: float) -> str:
    """For example "+4 %", with a decimal below 1 %."""
    return f"{100 * share:+.0f} %" if abs(share) >= 0.01 else f"{100 * share:+.1f} %"


def printed(number: Number) -> float:
    """Half a unit of the last digit of a printed number: 3.0 is known to a tenth, 3 to one."""
    text = number.text if isinstance(number, Printed) else f"{float(number):.12g}"
    return 0.5 * 10.0 ** int(Decimal(text).as_tuple().exponent)
