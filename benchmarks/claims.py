"""Check what a paper says about an order or a trend on our runs."""

import math
from collections.abc import Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from benchmarks.bench import Bench
from benchmarks.differences import FAILS, HOLDS, TIE, UNDECIDED, alike, below, falling, reason, together
from benchmarks.grid import Cell
from benchmarks.parts import Claim
from benchmarks.verdict import OTHER, Sample
from mpifed.report.names import setting_title


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
