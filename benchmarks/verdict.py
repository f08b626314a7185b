"""Compare our number with the paper's: whether their difference is explained by the spread of the seeds."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.bench import Number

LEVEL = 0.95  # of the intervals
FEW = 3  # with fewer seeds the verdict is open
AGREES, SPREAD, OFF, TIME, NONE, OPEN = "agrees", "within spread", "off", "time", "not available", "open"
MARKS = {AGREES: "=", SPREAD: "~", OFF: "✗", TIME: "", NONE: "–", OPEN: "?", "": ""}


class Sample(NamedTuple):
    """A measure of the runs of a cell.

    ``limited`` runs hit the round limit. ``reason``: why no run has the measure. ``least``: a lower bound for the runs
    that hit the limit or never met the condition.
    """

    values: tuple[float, ...] = ()
    limited: int = 0
    reason: str = ""
    least: float = math.inf

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
    def ended(self) -> bool:
        """Whether every run hit a limit, so that only a lower bound is known."""
        return bool(self.values) and self.unreached + self.limited >= len(self.values)

    @property
    def mean(self) -> float:
        """The mean; inf if a run never met the condition, nan without runs."""
        if not self.values:
            return math.nan
        return math.inf if self.unreached else float(np.mean(self.values))

    @property
    def sd(self) -> float:
        """The standard deviation of the finite values; 0 for a single one."""
        return float(self.known.std(ddof=1)) if len(self.known) > 1 else 0.0

    @property
    def counts(self) -> bool:
        """Whether all finite values are whole numbers."""
        return bool((self.known == np.round(self.known)).all())


class Verdict(NamedTuple):
    """A verdict: AGREES, SPREAD, OFF, TIME, NONE or OPEN, and its text."""

    kind: str
    text: str


def judge(ours: Sample, paper: Number, trials: int, seconds: bool) -> Verdict:
    """Compare the mean over our n seeds with the paper's mean over ``trials`` seeds, or with its bound "> number".

    Let t be the quantile of Student's distribution, s our standard deviation and h half a unit of the last digit
    printed. The numbers agree if they differ by at most t·s·√(1/n + 1/trials) + h. The paper's number is within the
    spread up to t·s·√(1 + 1/n) + h, the prediction interval of a single seed. Beyond that it is off.

    For counts, s² is at least p(1 − p) with p = 1/(n + 2): by the rule of succession, a count that is the same for all
    n seeds differs by one with probability p.

    The verdict is open with fewer than three seeds, if the spread includes half of the number or more, and if our runs
    ended before they came as far as the paper's.
    """
    if ours.reason or not ours.values or all(map(math.isnan, ours.values)):
        return Verdict(NONE, ours.reason or "no number")
    n, bounded = len(ours.values), isinstance(paper, str)
    number = float(str(paper).removeprefix(">"))
    if ours.least < number:
        return Verdict(OPEN, f"above {ours.least:g} here")
    if bounded:
        below = max(0, sum(value <= number for value in ours.values) - ours.limited)
        text = f"reached with {below} of {n} seeds" if below else "not reached here either"
        return Verdict(OPEN if n < FEW else OFF if below else AGREES, text)
    if ours.unreached:
        return Verdict(OPEN if n < FEW else OFF, f"not reached with {ours.unreached} of {n} seeds")
    if seconds:
        return Verdict(TIME, f"{ours.mean / number:.2g} × theirs")
    return judge_mean(ours, number, trials)


def judge_mean(ours: Sample, number: float, trials: int) -> Verdict:
    """Apply the intervals of ``judge``."""
    n, difference, half = len(ours.values), abs(ours.mean - number), printed(number)
    away = percent(ours.mean / number - 1) if number else f"{ours.mean:+.3g}"
    if n < FEW:
        return Verdict(OPEN, away)
    s = max(ours.sd, math.sqrt(n + 1) / (n + 2)) if ours.counts else ours.sd
    t = float(stats.t.ppf((1 + LEVEL) / 2, n - 1))
    if difference > t * s * math.sqrt(1 + 1 / n) + half:
        return Verdict(OFF, away)
    if number and difference > abs(number) / 2:
        return Verdict(OPEN, f"{away}, wide spread")
    return Verdict(AGREES if difference <= t * s * math.sqrt(1 / n + 1 / max(trials, 1)) + half else SPREAD, away)


def percent(share: float) -> str:
    """For example "+4 %", with a decimal below 1 %."""
    return f"{100 * share:+.0f} %" if abs(share) >= 0.01 else f"{100 * share:+.1f} %"


def printed(number: float) -> float:
    """Half a unit of the last digit of a printed number."""
    text = f"{number:.12g}"
    mantissa, _, power = text.partition("e")
    return 0.5 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))
