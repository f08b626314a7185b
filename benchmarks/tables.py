"""A benchmark as text: ours beside the paper's, for a terminal and for Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks import measures
from benchmarks.bench import Block, Cell, Number
from benchmarks.outcome import Outcome
from benchmarks.verdict import MARKS, NONE, OFF, Sample

LEGEND = (
    "mean ± standard deviation over draws [the paper's number] {an independent implementation's}; = agrees: the two means "
    "differ by what draws explain; ~ within the spread: it is what a single draw may give; ✗ off; ? open: too few draws or "
    "rounds, or half of the number is within their spread; – not reachable here; seconds are those of different machines, "
    "so only their ratio is told"
)


class Table(NamedTuple):
    """A head and rows of cells; ``notes`` tell what is not reachable, and why cells are off."""

    head: list[str]
    rows: list[list[str]]
    notes: list[str]


def tables(outcome: Outcome, block: Block) -> list[Table]:
    """A table a measure; where there is one column only, one table with a column a measure."""
    rows = [
        row["name"] for row in block.rows if Cell(block.name, row["name"], outcome.bench.values[0]) in outcome.files
    ]
    if not rows or not outcome.bench.measures:
        return []
    columns = outcome.bench.columns
    if columns is None:
        head = ["", *(measures.title(measure) for measure in outcome.bench.measures)]
        places = [(row, [(Cell(block.name, row, None), measure) for measure in outcome.bench.measures]) for row in rows]
        return [table(outcome, block, head, places)]
    made = [
        table(
            outcome,
            block,
            [measures.title(measure), *(f"{columns.short} = {value}" for value in columns.values)],
            [(row, [(Cell(block.name, row, value), measure) for value in columns.values]) for row in rows],
        )
        for measure in outcome.bench.measures
    ]
    told = set[str]()
    for place, one in enumerate(made):
        made[place] = one._replace(notes=[note for note in one.notes if note not in told])
        told |= set(one.notes)
    return made


def lacking(outcome: Outcome, block: Block) -> str:
    """Why no run of a block is there; nothing where one is."""
    cells = [cell for cell in outcome.files if cell.block == block.name]
    if not cells or any(outcome.runs[cell] for cell in cells):
        return ""
    return next((sample.reason for (cell, _), sample in outcome.samples.items() if cell in cells), "not run")


def table(outcome: Outcome, block: Block, head: list[str], rows: list[tuple[str, list[tuple[Cell, str]]]]) -> Table:
    """One table, and what is to be said of its cells."""
    lines, notes = [], dict[str, None]()
    for row, places in rows:
        line, off = [row], False
        for cell, measure in places:
            paper, reference, verdict = outcome.verdict(cell, measure)
            sample = outcome.samples[cell, measure]
            line.append(
                " ".join(
                    filter(
                        None,
                        (
                            ours(sample),
                            theirs(paper, "[]"),
                            theirs(reference, "{}"),
                            MARKS[verdict.kind],
                            verdict.text if verdict.kind != NONE else "",
                        ),
                    )
                )
            )
            off = off or verdict.kind in (OFF, NONE)
            if sample.reason:
                notes[f"{row}: {sample.reason}"] = None
        if off and row in block.why:
            notes[f"{row}: {block.why[row]}"] = None
        lines.append(line)
    return Table(head, lines, merged(list(notes)))


def merged(notes: Sequence[str]) -> list[str]:
    """Notes that say the same of several rows as one."""
    by: dict[str, list[str]] = {}
    for note in notes:
        row, _, text = note.partition(": ")
        by.setdefault(text, []).append(row)
    return [f"{', '.join(rows)}: {text}" for text, rows in by.items()]


def ours(sample: Sample) -> str:
    """5.3 ± 0.4, > 1000 where the limit ended all runs, – where there is nothing."""
    if not len(sample.known):
        return "never" if sample.unreached else "–"
    mean = float(sample.known.mean())
    text = f"{mean:.1f}" if sample.counts and mean < 1e6 else figure(mean)
    if len(sample.known) > 1:
        text += f" ± {sample.sd:.1f}" if sample.counts and mean < 1e6 else f" ± {figure(sample.sd, mean)}"
    if sample.limited:
        text += (
            f" (limit in {sample.limited} of {len(sample.values)})"
            if sample.limited < len(sample.values)
            else " (limit)"
        )
    if sample.unreached:
        text += f" ({sample.unreached} of {len(sample.values)} never)"
    return text


def theirs(number: Number | None, brackets: str) -> str:
    if number is None:
        return ""
    return f"{brackets[0]}{number if isinstance(number, str) else format(number, 'g')}{brackets[1]}"


def figure(value: float, beside: float | None = None) -> str:
    """A number with four digits, and a deviation with as many decimals as the number ``beside`` it."""
    size = abs(value if beside is None else beside)
    if size and not 1e-3 <= size < 1e6:
        power = math.floor(math.log10(size))
        return f"{value / 10.0**power:.2f}" + f"e{power}"
    return f"{value:.{3 if size < 10 else 2 if size < 100 else 1 if size < 1000 else 0}f}"


def claims(outcome: Outcome) -> Table | None:
    """What the paper says, and whether it holds."""
    rows = []
    for finding in outcome.findings:
        against = "; ".join(finding.against[:4]) + ("; …" if finding.against[4:] else "")
        rows.append([finding.claim.text, finding.claim.where, finding.text, against])
    return Table(["claim", "where", "here", "against it"], rows, []) if rows else None


def terminal(table: Table) -> str:
    """Columns side by side."""
    lines = [table.head, *table.rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(table.head))]
    told = [
        "  " + "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([*told, *(f"  {note}" for note in table.notes)])


def markdown(table: Table) -> str:
    """A table of Markdown, with its notes below."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|" + "---|" * len(table.head)
    return "\n".join([line(table.head), rule, *map(line, table.rows), *(f"\n*{note}*" for note in table.notes)])
