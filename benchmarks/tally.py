"""How many cells and claims came out how, and what remains off or open with its reason."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from benchmarks import expressions, sentences
from benchmarks.claims import Finding
from benchmarks.differences import FAILS, HOLDS, TIE, UNDECIDED
from benchmarks.grid import Cell
from benchmarks.outcome import Outcome
from benchmarks.parts import Block
from benchmarks.tables import Table, markdown
from benchmarks.verdict import AGREES, ALIKE, FITTED, NONE, OFF, OPEN, OTHER, TIME
from mpifed.report.names import setting_title

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
        sentences.literal(f"{block.title}, {row}, {expressions.title(measure)}: {kind} ({'; '.join(cells)}): ")
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
    claim, said = finding.claim, sentences.outcome(finding)
    why = claim.why.strip() or (UNEXPLAINED if finding.kind == FAILS else "")
    begin = ", ".join(filter(None, (f"“{claim.text.strip().rstrip('.')}”", claim.where, said)))
    return sentences.literal(begin) + (f": {why}" if why else "")


def counted(found: Sequence[Tally], link: Callable[[str], str] = str) -> str:
    """The counts of benchmarks and their sums, as a Markdown table."""

    def line(head: Sequence[str], cells: dict[str, int], claims: dict[str, int]) -> list[str]:
        numbers = [*(cells.get(kind, 0) for kind in CELLS), *(claims.get(kind, 0) for kind in CLAIMS)]
        return [*head, *(str(number or "") for number in numbers)]

    lines = [line([link(one.name), one.seeds], one.cells, one.claims) for one in found]
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
