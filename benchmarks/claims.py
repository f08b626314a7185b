"""Check what a paper says about an order or a trend on the means of our runs."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

from scipy import stats

from benchmarks.bench import Bench
from benchmarks.grid import Cell
from benchmarks.parts import Claim
from benchmarks.verdict import Sample
from mpifed.report.names import setting


class Case(NamedTuple):
    """Means that a claim compares, for example "Example V.1, k₀ = 5" with FedGiA 3 and FedAvg 112."""

    name: str
    means: dict[str, float]


class Finding(NamedTuple):
    """The outcome of a claim: the cases that agree and those that do not; ``open`` more hit a limit."""

    claim: Claim
    agreeing: list[Case]
    against: list[Case]
    open: int

    @property
    def held(self) -> int:
        """The number of cases that agree."""
        return len(self.agreeing)

    @property
    def cases(self) -> int:
        """The number of cases that are decided."""
        return len(self.agreeing) + len(self.against)

    @property
    def text(self) -> str:
        """For example "holds in 3 of 4, 1 not decided"."""
        if not self.cases:
            return "not decided: all runs hit a limit" if self.open else "not available"
        left = f", {self.open} not decided" if self.open else ""
        if self.held == self.cases:
            return "holds" + left
        return (f"holds in {self.held} of {self.cases}" if self.held else "does not hold") + left


def examine(bench: Bench, claim: Claim, samples: dict[tuple[Cell, str], Sample]) -> Finding:
    """Check a claim in every block and case."""
    agreeing, against, open = list[Case](), list[Case](), 0
    for block in bench.block:
        if claim.blocks and block.name not in claim.blocks:
            continue
        for name, found in compared(bench, claim, block.name, samples):
            if any(math.isnan(one.mean) for one in found.values()):
                continue
            if undecided(claim, list(found.values())):
                open += 1
                continue
            case = Case(", ".join(filter(None, (block.name, name))), {key: one.mean for key, one in found.items()})
            (agreeing if holds(claim, list(found.values())) else against).append(case)
    return Finding(claim, agreeing, against, open)


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


def undecided(claim: Claim, found: list[Sample]) -> bool:
    """Whether two samples that the claim compares both hit the same limit."""
    pairs = pairwise(found) if claim.order else [(found[0], found[-1])] if claim.falls or claim.rises else []
    return any(a.ended and b.ended and a.mean == b.mean for a, b in pairs)


def named(bench: Bench, value: object) -> str:
    """A column by name, for example "k₀ = 5"; "" for a table without columns."""
    return "" if bench.columns is None else f"{setting(bench.columns.short)} = {value}"


def holds(claim: Claim, found: list[Sample]) -> bool:
    """Whether the claim holds for these samples; an order may be violated by one standard error of the difference."""
    means = [one.mean for one in found]
    if claim.below:
        return max(found[0].values) <= claim.bound
    if claim.order:
        return all(at_most(a, b) for a, b in pairwise(found))
    if claim.falls or claim.rises:
        first, last = (found[0], found[-1]) if claim.falls else (found[-1], found[0])
        if math.isinf(last.mean) or math.isinf(first.mean):
            return math.isinf(first.mean) and math.isfinite(last.mean)
        ranks = float(stats.spearmanr(range(len(means)), means).statistic) if len(set(means)) > 1 else 0.0
        return last.mean < first.mean and (ranks if claim.rises else -ranks) >= 0.5
    least, most = min(map(abs, means)), max(map(abs, means))
    return math.isfinite(most) and most <= least * (1 + claim.within)


def at_most(a: Sample, b: Sample) -> bool:
    """Whether the mean of ``a`` exceeds that of ``b`` by at most the standard error of the difference."""
    if math.isinf(a.mean) or math.isinf(b.mean):
        return math.isinf(b.mean)
    error = math.sqrt(a.sd**2 / len(a.values) + b.sd**2 / len(b.values))
    return a.mean <= b.mean + error
