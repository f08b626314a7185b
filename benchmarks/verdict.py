"""Ours beside the paper's: whether a number lies within the spread of draws, and whether a claim holds."""
from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks.bench import Bench, Cell, Claim, Number

LEVEL = 0.95      # of the intervals
FEW = 3           # draws below which nothing is said
AGREES, SPREAD, OFF, TIME, NONE, OPEN = "agrees", "within spread", "off", "time", "not reachable", "open"
MARKS = {AGREES: "=", SPREAD: "~", OFF: "✗", TIME: "", NONE: "–", OPEN: "?", "": ""}


class Sample(NamedTuple):
    """A measure of the runs of a cell; ``limited``: how many of them the most rounds ended, ``reason`` why there is none."""

    values: tuple[float, ...] = ()
    limited: int = 0
    reason: str = ""

    @property
    def known(self) -> np.ndarray:
        values = np.array(self.values)
        return values[np.isfinite(values)]

    @property
    def unreached(self) -> int:
        return sum(map(math.isinf, self.values))

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
    Fewer than three draws leave it open.
    """
    if ours.reason or not ours.values or all(map(math.isnan, ours.values)):
        return Verdict(NONE, ours.reason or "no number")
    if isinstance(paper, str):
        return beyond(ours, paper)
    if ours.unreached:
        return Verdict(OFF, f"not reached in {ours.unreached} of {len(ours.values)} draws")
    if seconds:
        return Verdict(TIME, f"{ours.mean / paper:.2g} × theirs")
    away = f"{100 * (ours.mean / paper - 1):+.0f} %" if paper else f"{ours.mean:+.3g}"
    n, half = len(ours.values), printed(paper)
    if n < FEW:
        return Verdict(OPEN, away)
    t = float(stats.t.ppf((1 + LEVEL) / 2, n - 1)) * (max(ours.sd, math.sqrt(n + 1) / (n + 2)) if ours.counts else ours.sd)
    difference = abs(ours.mean - paper)
    if difference <= t * math.sqrt(1 / n + 1 / max(trials, 1)) + half:
        return Verdict(AGREES, away)
    return Verdict(SPREAD if difference <= t * math.sqrt(1 + 1 / n) + half else OFF, away)


def beyond(ours: Sample, paper: str) -> Verdict:
    """Against "> 100": agrees where none of our runs is below."""
    limit = float(paper.removeprefix(">"))
    below = max(0, sum(value <= limit for value in ours.values) - ours.limited)
    return Verdict(AGREES if not below else OFF, "not reached here either" if not below else
                   f"reached in {below} of {len(ours.values)} draws")


def printed(number: float) -> float:
    """Half a unit of the last digit of a printed number."""
    text = f"{number:.12g}"
    mantissa, _, power = text.partition("e")
    return 0.5 * 10.0 ** (int(power or 0) - len(mantissa.partition(".")[2]))


class Finding(NamedTuple):
    """Whether a claim holds: in how many of how many places, and where it does not."""

    claim: Claim
    held: int
    places: int
    against: list[str]

    @property
    def text(self) -> str:
        if not self.places:
            return "not reachable here"
        if self.held == self.places:
            return "holds"
        return f"holds in {self.held} of {self.places}" if self.held else "does not hold"


def examine(bench: Bench, claim: Claim, samples: dict[tuple[Cell, str], Sample]) -> Finding:
    """A claim on the means of ours; a place is a column, or a row for what is said along the columns."""
    blocks = [block for block in bench.block if not claim.blocks or block.name in claim.blocks]
    values = [value for value in bench.values if not claim.values or value in claim.values]
    held, against, places = 0, list[str](), 0
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
            if any(math.isnan(one.mean) for one in found) or (claim.order and undecided(found)):
                continue
            places += 1
            if holds(claim, found):
                held += 1
            else:
                against.append(", ".join(filter(None, (block.name, where))) + ": " + " ".join(f"{s.mean:.4g}" for s in found))
    return Finding(claim, held, places, against)


def undecided(found: list[Sample]) -> bool:
    """Whether two that follow one another were both never reached."""
    return any(math.isinf(a.mean) and math.isinf(b.mean) for a, b in pairwise(found))


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
