"""Ours beside the paper's: whether a number lies within the spread of draws, and whether a claim holds."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.bench import Bench, Cell, Claim, Number

LEVEL = 0.95  # of the intervals
FEW = 3  # draws below which nothing is said
AGREES, SPREAD, OFF, TIME, NONE, OPEN = "agrees", "within spread", "off", "time", "not reachable", "open"
MARKS = {AGREES: "=", SPREAD: "~", OFF: "✗", TIME: "", NONE: "–", OPEN: "?", "": ""}


class Sample(NamedTuple):
    """A measure of the runs of a cell; ``limited``: how many of them the most rounds ended, ``reason`` why there is none.

    ``least``: what those that never came there are known to be above.
    """

    values: tuple[float, ...] = ()
    limited: int = 0
    reason: str = ""
    least: float = math.inf

    @property
    def known(self) -> np.ndarray:
        values = np.array(self.values)
        return values[np.isfinite(values)]

    @property
    def unreached(self) -> int:
        return sum(map(math.isinf, self.values))

    @property
    def ended(self) -> bool:
        """Whether all of them never came to what they wait for: all that is known is a limit."""
        return bool(self.values) and self.unreached + self.limited >= len(self.values)

    @property
    def mean(self) -> float:
        return float("nan") if not self.values else math.inf if self.unreached else float(np.mean(self.values))

    @property
    def sd(self) -> float:
        return float(self.known.std(ddof=1)) if len(self.known) > 1 else 0.0

    @property
    def counts(self) -> bool:
        """Whether these are whole numbers."""
        return bool((self.known == np.round(self.known)).all())


class Verdict(NamedTuple):
    """One of the words above, and the sentence."""

    kind: str
    text: str


def judge(ours: Sample, paper: Number, trials: int, seconds: bool) -> Verdict:
    """The mean of our draws beside the mean of ``trials`` draws of the paper, or a number that it bounds with "> ".

    With t the quantile of Student's law of our n draws, s their standard deviation and h half a unit of the last printed
    digit, the paper's number agrees where it differs from our mean by at most t·s·√(1/n + 1/trials) + h; it is within the
    spread up to t·s·√(1 + 1/n) + h, the prediction interval of one draw; else it is off. Counts that are the same in all n
    draws have another value by one in a draw of n + 2, by the rule of succession, so s² is at least p(1 − p), p = 1/(n + 2).
    Three things leave it open: fewer than three draws, a spread so wide that half of the number or more is within it, and
    runs that ended before they came as far as the paper's.
    """
    if ours.reason or not ours.values or all(map(math.isnan, ours.values)):
        return Verdict(NONE, ours.reason or "no number")
    n, bounded = len(ours.values), isinstance(paper, str)
    number = float(str(paper).removeprefix(">"))
    if ours.least < number:
        return Verdict(OPEN, f"above {ours.least:g} here")
    if bounded:
        below = max(0, sum(value <= number for value in ours.values) - ours.limited)
        text = f"reached in {below} of {n} draws" if below else "not reached here either"
        return Verdict(OPEN if n < FEW else OFF if below else AGREES, text)
    if ours.unreached:
        return Verdict(OPEN if n < FEW else OFF, f"not reached in {ours.unreached} of {n} draws")
    if seconds:
        return Verdict(TIME, f"{ours.mean / number:.2g} × theirs")
    difference, half = abs(ours.mean - number), printed(number)
    away = percent(ours.mean / number - 1) if number else f"{ours.mean:+.3g}"
    if n < FEW:
        return Verdict(OPEN, away)
    t = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * (
        max(ours.sd, math.sqrt(n + 1) / (n + 2)) if ours.counts else ours.sd
    )
    if difference > t * math.sqrt(1 + 1 / n) + half:
        return Verdict(OFF, away)
    if number and difference > abs(number) / 2:
        return Verdict(OPEN, f"{away}, a wide spread")
    return Verdict(AGREES if difference <= t * math.sqrt(1 / n + 1 / max(trials, 1)) + half else SPREAD, away)


def percent(share: float) -> str:
    """+4 %, and +0.1 % where it is less than one."""
    return f"{100 * share:+.0f} %" if abs(share) >= 0.01 else f"{100 * share:+.1f} %"


def printed(number: float) -> float:
    """Half a unit of the last digit of a printed number."""
    text = f"{number:.12g}"
    mantissa, _, power = text.partition("e")
    return 0.5 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))


class Finding(NamedTuple):
    """Whether a claim holds: in how many of how many places, where it does not, and in how many limits do not let us see."""

    claim: Claim
    held: int
    places: int
    against: list[str]
    open: int

    @property
    def text(self) -> str:
        if not self.places:
            return "not decided: all ended at a limit" if self.open else "not reachable here"
        left = f", {self.open} not decided" if self.open else ""
        if self.held == self.places:
            return "holds" + left
        return (f"holds in {self.held} of {self.places}" if self.held else "does not hold") + left


def examine(bench: Bench, claim: Claim, samples: dict[tuple[Cell, str], Sample]) -> Finding:
    """A claim on the means of ours; a place is a column, or a row for what is said along the columns."""
    blocks = [block for block in bench.block if not claim.blocks or block.name in claim.blocks]
    values = [value for value in bench.values if not claim.values or value in claim.values]
    held, against, places, open = 0, list[str](), 0, 0
    for block in blocks:

        def sample(row: str, value: object, name: str = block.name) -> Sample:
            return samples.get((Cell(name, row, value), claim.measure), Sample())

        cases: list[tuple[str, list[Sample]]] = []
        if rows := claim.order or claim.equal:
            cases = [(said(bench, value), [sample(row, value) for row in rows]) for value in values]
        for row in claim.falls + claim.rises + claim.flat:
            cases.append((row, [sample(row, value) for value in values]))
        for row in claim.below:
            cases += [(f"{row} {said(bench, value)}".strip(), [sample(row, value)]) for value in values]
        for where, found in cases:
            if any(math.isnan(one.mean) for one in found):
                continue
            if undecided(claim, found):
                open += 1
                continue
            places += 1
            if holds(claim, found):
                held += 1
            else:
                against.append(
                    ", ".join(filter(None, (block.name, where))) + ": " + " ".join(f"{s.mean:.4g}" for s in found)
                )
    return Finding(claim, held, places, against, open)


def undecided(claim: Claim, found: list[Sample]) -> bool:
    """Whether two that the claim compares both ended at the same limit."""
    pairs = pairwise(found) if claim.order else [(found[0], found[-1])] if claim.falls or claim.rises else []
    return any(a.ended and b.ended and a.mean == b.mean for a, b in pairs)


def said(bench: Bench, value: object) -> str:
    return "" if bench.columns is None else f"{bench.columns.short} = {value}"


def holds(claim: Claim, found: list[Sample]) -> bool:
    """Whether these samples are as the claim has them; an order may be wrong by the standard error of the difference."""
    means = [one.mean for one in found]
    if claim.below:
        return max(found[0].values) <= claim.bound
    if claim.order:
        return all(less(a, b) for a, b in pairwise(found))
    if claim.falls or claim.rises:
        first, last = (found[0], found[-1]) if claim.falls else (found[-1], found[0])
        if math.isinf(last.mean) or math.isinf(first.mean):
            return math.isinf(first.mean) and math.isfinite(last.mean)
        ranks = float(stats.spearmanr(range(len(means)), means).statistic) if len(set(means)) > 1 else 0.0
        return last.mean < first.mean and (ranks if claim.rises else -ranks) >= 0.5
    least, most = min(map(abs, means)), max(map(abs, means))
    return math.isfinite(most) and most <= least * (1 + claim.within)


def less(a: Sample, b: Sample) -> bool:
    if math.isinf(a.mean) or math.isinf(b.mean):
        return math.isinf(b.mean)
    error = math.sqrt(a.sd**2 / len(a.values) + b.sd**2 / len(b.values))
    return a.mean <= b.mean + error
