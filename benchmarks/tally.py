"""How many cells and claims came out how, and what remains off or open with its reason."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks import expressions
from benchmarks.bench import ON_OTHER_DATA, Block, Claim
from benchmarks.claims import FAILS, HOLDS, TIE, UNDECIDED, Case, Finding
from benchmarks.grid import Cell
from benchmarks.outcome import Outcome
from benchmarks.tables import Table, markdown
from benchmarks.verdict import AGREES, ALIKE, FITTED, NONE, OFF, OPEN, OTHER, TIME
from mpifed.report.names import setting_title

PARTLY = "partly"
MARKS = {HOLDS: "✓", TIE: "≈", FAILS: "✗", PARTLY: "~", OTHER: ON_OTHER_DATA, UNDECIDED: "?"}
SHOWN = 3  # most cases whose numbers are written out, of those that agree and of those that do not


def said(found: Outcome) -> list[str]:
    """A sentence for each claim of a benchmark."""
    columns = found.bench.columns
    return [sentence(finding, setting_title(columns.short) if columns else "") for finding in found.findings]


def sentence(finding: Finding, along: str) -> str:
    """For example: ✗ “A is fast”, page 1, does not hold in either case, tested as CR of A < B: Example 1 (A 12, …"""
    claim = finding.claim
    begin = ", ".join(filter(None, (f"{MARKS[mark(finding)]} “{claim.text.rstrip('.')}”", claim.where, held(finding))))
    why = (
        f" Why: {claim.why.rstrip('.')}."
        if claim.why and len(finding.agreeing) < finding.cases + len(finding.open)
        else ""
    )
    if not finding.cases:
        return f"{begin}.{why}"
    lists = [listed(finding.agreeing)] * bool(finding.agreeing)
    lists += [f"but not {listed(finding.against)}" if lists else listed(finding.against)] * bool(finding.against)
    lists += [f"tied: {listed(finding.ties)}" if lists else listed(finding.ties)] * bool(finding.ties)
    return f"{begin}, tested as {test(claim, along)}: {'; '.join(lists)}.{why}"


def held(finding: Finding) -> str:
    """Whether a claim holds: holds in 3 of 4 cases, 1 not decided."""
    if not finding.cases:
        return f"is not decided: {', '.join(dict.fromkeys(finding.open))}" if finding.open else "is not available"
    ties = len(finding.ties)
    left = f", {len(finding.open)} not decided" if finding.open else ""
    tied = f", {ties} tie{'s' * (ties > 1)}" if ties and ties < finding.cases else ""
    every = {1: "the only case", 2: "both cases"}.get(finding.cases, f"all {finding.cases} cases")
    if not finding.against and not ties:
        return f"holds in {every}{left}"
    if ties == finding.cases:
        return f"is a tie in {every}{left}"
    if not finding.agreeing and ties:
        return f"fails in {len(finding.against)} of {finding.cases} cases{tied}{left}"
    if not finding.agreeing:
        cases = {1: "the only case", 2: "either case"}.get(finding.cases, f"any of {finding.cases} cases")
        return f"does not hold in {cases}{left}"
    return f"holds in {len(finding.agreeing)} of {finding.cases} cases{tied}{left}"


def mark(finding: Finding) -> str:
    """The kind of a finding; PARTLY where some cases hold and others do not."""
    return PARTLY if finding.kind == FAILS and finding.agreeing else finding.kind


def test(claim: Claim, along: str) -> str:
    """What a claim asks of the means."""
    measure = expressions.title(claim.measure)
    if claim.order:
        return f"{measure} of {' < '.join(claim.order)}"
    if claim.equal:
        return f"equal {measure} up to {100 * claim.within:g} %"
    if claim.below:
        return f"{measure} of at most {claim.bound:g}"
    if claim.flat:
        return f"{measure} the same up to {100 * claim.within:g} % with {along}"
    return f"{measure} {'falling' if claim.falls else 'rising'} with {along}"


def listed(cases: Sequence[Case]) -> str:
    """The first cases with their numbers."""
    shown = [described(case) for case in cases[:SHOWN]]
    more = len(cases) - len(shown)
    return "; ".join(shown) + (f"; and {more} more" if more else "")


def described(case: Case) -> str:
    """A case with its numbers: Example V.1, k0 = 5 (FedGiA 3, FedAvg 112)."""
    numbers = ", ".join(f"{name}{':' * (' = ' in name)} {number(mean)}".strip() for name, mean in case.means.items())
    return f"{case.name} ({numbers})" if case.name else f"({numbers})"


def number(mean: float) -> str:
    """A mean; never where a run did not meet the condition."""
    return "never" if math.isinf(mean) else f"{mean:.4g}"


def literal(text: str) -> str:
    """Text in which Markdown finds nothing to interpret."""
    return "".join(f"\\{sign}" if sign in "\\*`<[" else sign for sign in text)


CELLS = {
    AGREES: "cells agree",
    FITTED: "in sample",
    ALIKE: "cannot tell apart",
    OFF: "off",
    OPEN: "open",
    OTHER: "on other data",
    NONE: "not available",
}
CLAIMS = {HOLDS: "claims hold", TIE: "tie", FAILS: "fail", UNDECIDED: "not decided", OTHER: "on other data"}
UNEXPLAINED = "**no reason given**"
FEW = "more seeds or rounds would decide"  # the reason of open cells that have no other


class Tally(NamedTuple):
    """The numbers of cells and claims of a benchmark by outcome, and lines on what does not agree or hold."""

    name: str
    seeds: str
    cells: dict[str, int]
    claims: dict[str, int]
    unsettled: list[str]


def tally(outcome: Outcome) -> Tally:
    """Count the cells and claims of a benchmark. A claim with one case that fails, or is a tie, counts as such."""
    claims = dict(Counter(finding.kind for finding in outcome.findings))
    lines = [line for block in outcome.bench.block for line in unsettled_cells(outcome, block)]
    judged = [finding for finding in outcome.findings if finding.cases or finding.open]
    lines += [unsettled_claim(finding) for finding in judged if finding.kind not in (HOLDS, OTHER)]
    return Tally(outcome.name, repetitions(outcome), outcome.counts(), claims, lines)


def repetitions(outcome: Outcome) -> str:
    """The number of seeds, for example "3" or "3 to 50"; without runs, those that were asked for."""
    ran = Counter(row.cell for row in outcome.rows.runs)
    found = set(ran.values()) or {block.seeds or outcome.rows.seeds for block in outcome.bench.block}
    return str(min(found)) if len(found) == 1 else f"{min(found)} to {max(found)}"


def unsettled_cells(outcome: Outcome, block: Block) -> list[str]:
    """A line for each row and measure of a block with cells that are off, open, or agree in sample."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for cell, measure in outcome.samples:
        if cell.block == block.name and measure in outcome.bench.measures:
            verdict = outcome.verdict(cell, measure)[2]
            if verdict.kind in (OFF, OPEN, FITTED):
                column = placed(outcome, cell)
                found.setdefault((cell.row, measure, verdict.kind), []).append(f"{column}{verdict.text}")
    return [
        literal(f"{block.title}, {row}, {expressions.title(measure)}: {kind} ({'; '.join(cells)}): ")
        + explained(block, row, measure, kind)
        for (row, measure, kind), cells in found.items()
    ]


def explained(block: Block, row: str, measure: str, kind: str) -> str:
    """Which setting was fitted, or why the cells of a row are off or open."""
    if kind == FITTED:
        return block.fit(row, measure)
    return block.reason(row, measure) or (UNEXPLAINED if kind == OFF else FEW)


def placed(outcome: Outcome, cell: Cell) -> str:
    """The column of a cell, for example "k₀ = 5: "."""
    columns = outcome.bench.columns
    return "" if columns is None else f"{setting_title(columns.short)} = {cell.value}: "


def unsettled_claim(finding: Finding) -> str:
    """A line on a claim that does not hold everywhere; ties and what is not decided explain themselves."""
    claim, said = finding.claim, held(finding)
    why = claim.why.strip() or (UNEXPLAINED if finding.kind == FAILS else "")
    begin = ", ".join(filter(None, (f"“{claim.text.strip().rstrip('.')}”", claim.where, said)))
    return literal(begin) + (f": {why}" if why else "")


def counted(found: Sequence[Tally]) -> str:
    """The counts of benchmarks and their sums, as a Markdown table."""

    def line(head: Sequence[str], cells: dict[str, int], claims: dict[str, int]) -> list[str]:
        numbers = [*(cells.get(kind, 0) for kind in CELLS), *(claims.get(kind, 0) for kind in CLAIMS)]
        return [*head, *(str(number or "") for number in numbers)]

    lines = [line([one.name, one.seeds], one.cells, one.claims) for one in found]
    cells, claims = Counter[str](), Counter[str]()
    for one in found:
        cells.update(one.cells)
        claims.update(one.claims)
    lines.append(line(["all", ""], cells, claims))
    table = markdown(Table(["benchmark", "seeds", *CELLS.values(), *CLAIMS.values()], lines, []))
    seconds = f"\n\n{cells[TIME]} more cells are seconds of different machines and not judged." if cells[TIME] else ""
    return table + seconds


def remaining(found: Sequence[Tally]) -> str:
    """What remains off or open, by benchmark, as Markdown; first how many lines have no reason."""
    lines = [line for one in found for line in one.unsettled]
    bare = sum(line.endswith(UNEXPLAINED) for line in lines)
    parts = [f"{len(lines)} rows and claims are off, open or ties; {bare} of them have no reason."]
    for one in found:
        if one.unsettled:
            parts += [f"**{one.name}**", "\n".join(f"- {line}" for line in one.unsettled)]
    return "\n\n".join(parts)
