"""The tables of a benchmark, our numbers beside the paper's, for a terminal and as Markdown."""

import math
from collections.abc import Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np

from benchmarks import expressions
from benchmarks.bench import ON_OTHER_DATA, Block, Number, Printed
from benchmarks.grid import Cell
from benchmarks.outcome import Outcome
from benchmarks.verdict import FEW, MARKS, NONE, OFF, OPEN, Sample, Verdict, interval
from mpifed.report.names import setting_title

LEGEND = (
    "mean ± standard deviation over the seeds [the paper's number] {the number of the authors' trace or of an "
    "independent implementation}; "
    "= agrees: within the 95 % interval for a mean of as many runs as the paper's; ° in sample: so it does, but a "
    "setting was chosen after looking at the number; ≟ cannot tell the methods apart: another row's number agrees "
    "as well, or the interval reaches farther than a quarter of the spread between rows; ✗ off; "
    "? open: too few seeds or rounds, or an interval that reaches farther than a quarter of the number; "
    f"{ON_OTHER_DATA} on other data than the paper's, not judged; – not available. "
    "Seconds come from different machines, so only their ratio is reported"
)


class Table(NamedTuple):
    """A head and rows of cells; ``notes`` say what is not available, and why cells are off."""

    head: list[str]
    rows: list[list[str]]
    notes: list[str]


def tables(outcome: Outcome, block: Block) -> list[Table]:
    """One table for each measure; without ``columns``, one table with a column for each measure."""
    cells = {cell for cell, _ in outcome.samples}
    rows = [row["name"] for row in block.rows if Cell(block.name, row["name"], outcome.bench.values[0]) in cells]
    if not rows or not outcome.bench.measures:
        return []
    columns = outcome.bench.columns
    if columns is None:
        head = ["", *(expressions.title(measure) for measure in outcome.bench.measures)]
        lines = [(row, [(Cell(block.name, row, None), measure) for measure in outcome.bench.measures]) for row in rows]
        return [table(outcome, block, head, lines)]
    made = [
        table(
            outcome,
            block,
            [expressions.title(measure), *(f"{setting_title(columns.short)} = {value}" for value in columns.values)],
            [(row, [(Cell(block.name, row, value), measure) for value in columns.values]) for row in rows],
        )
        for measure in outcome.bench.measures
    ]
    return without_repeated_notes(made)


def without_repeated_notes(made: list[Table]) -> list[Table]:
    """The tables, each note only in the first one that has it."""
    found, shown = list[Table](), set[str]()
    for one in made:
        found.append(one._replace(notes=[note for note in one.notes if note not in shown]))
        shown |= set(one.notes)
    return found


def lacking(outcome: Outcome, block: Block) -> str:
    """The reason why a block has no results; "" if it has one."""
    cells = {cell for cell, _ in outcome.samples if cell.block == block.name}
    if not cells or any(row.block == block.name for row in outcome.rows.runs):
        return ""
    return next((sample.reason for (cell, _), sample in outcome.samples.items() if cell in cells), "not run")


def compared(outcome: Outcome, block: Block) -> Iterator[Table]:
    """The tables of a block whose numbers are compared with others', one for each measure: row and column of a cell,
    the other number, the mean or median of our runs, where as many runs as theirs lie with probability 0.95, verdict.
    """
    columns = outcome.bench.columns
    varied = [setting_title(columns.short)] if columns else []
    cells = [Cell(block.name, row["name"], value) for row, value in product(block.rows, outcome.bench.values)]
    for measure in outcome.bench.measures:
        lines = [
            [cell.row, *([f"{cell.value}"] if columns else []), *compared_cell(outcome, block, cell, measure)]
            for cell in cells
            if outcome.verdict(cell, measure)[2].kind
        ]
        if lines:
            head = ["method", *varied, "paper", f"here: {expressions.title(measure)}", "95 %", "verdict"]
            yield Table(head, lines, [])


def compared_cell(outcome: Outcome, block: Block, cell: Cell, measure: str) -> list[str]:
    """The other number, ours, the interval and the verdict of a cell."""
    paper, reference, verdict = outcome.verdict(cell, measure)
    sample = outcome.samples[cell, measure]
    trials = block.reference_trials if paper is None else outcome.bench.trials_of(block)[0]
    return [
        theirs(paper, ("", "")) or theirs(reference, "{}"),
        middle(sample).partition(",")[0] if block.center == "median" else ours(sample),
        "" if measure in expressions.SECONDS else between(sample, trials, block.center),
        verdict_text(verdict),
    ]


def verdict_text(verdict: Verdict) -> str:
    """The mark and the text of a verdict."""
    return " ".join(filter(None, (MARKS[verdict.kind], verdict.text if verdict.kind != NONE else "")))


def between(sample: Sample, trials: float, center: str) -> str:
    """The interval of ``verdict.interval``, for example "4.9 to 5.7"; "" where the runs give none."""
    if len(sample.values) < FEW or not np.isfinite(sample.values).all():
        return ""
    ends = interval(sample, trials, center)
    return " to ".join(map(figure, ends)) if np.isfinite(ends).all() else ""


def table(outcome: Outcome, block: Block, head: list[str], rows: list[tuple[str, list[tuple[Cell, str]]]]) -> Table:
    """Make one table, with notes on its cells."""
    lines, notes = [], dict[str, None]()
    if block.surrogate:
        head = [head[0], *(f"{name} {ON_OTHER_DATA}" for name in head[1:])]
    for row, cells in rows:
        line = [row]
        for cell, measure in cells:
            paper, reference, verdict = outcome.verdict(cell, measure)
            sample = outcome.samples[cell, measure]
            parts = (
                middle(sample) if block.center == "median" else ours(sample),
                theirs(paper, "[]"),
                theirs(reference, "{}"),
                verdict_text(verdict),
            )
            line.append(" ".join(filter(None, parts)))
            if sample.reason:
                notes[f"{row}: {sample.reason}"] = None
            if verdict.kind in (OFF, OPEN, NONE) and (why := block.reason(row, measure)):
                notes[f"{row}: {why}"] = None
            if fit := block.fit(row, measure):
                notes[f"{row}: fitted: {fit}"] = None
        lines.append(line)
    middles = ["the numbers are medians, with the range of the middle half"] * (block.center == "median")
    other = [f"{ON_OTHER_DATA} on other data than the paper's: {block.surrogate}"] if block.surrogate else []
    return Table(head, lines, [*other, *middles, *merged(list(notes))])


def merged(notes: Sequence[str]) -> list[str]:
    """Merge the notes that say the same about several rows."""
    by: dict[str, list[str]] = {}
    for note in notes:
        row, _, text = note.partition(": ")
        by.setdefault(text, []).append(row)
    return [f"{', '.join(rows)}: {text}" for text, rows in by.items()]


def ours(sample: Sample) -> str:
    """Our number, for example "5.3 ± 0.4", "1000.0 (limit)", "never" or "–" if there is none."""
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


def middle(sample: Sample) -> str:
    """Our median and quartiles, for example "34.0, half in 23.0 to 38.0"."""
    if not len(sample.known):
        return ours(sample)
    values = np.array(sample.values)
    values = values[~np.isnan(values)]  # a run that failed has no number
    numbers = [float(np.median(values)), *np.quantile(values, (0.25, 0.75), method="nearest")]
    finite = "{:.1f}".format if sample.counts else figure
    shown = ["never" if math.isinf(one) else finite(one) for one in numbers]
    return f"{shown[0]}, half in {shown[1]} to {shown[2]}"


def theirs(number: Number | None, brackets: Sequence[str]) -> str:
    """The paper's number in brackets."""
    if number is None:
        return ""
    if isinstance(number, Printed):
        number = number.text
    text = number if isinstance(number, str) else f"{number:g}"
    return f"{brackets[0]}{text}{brackets[1]}"


def figure(value: float, beside: float | None = None) -> str:
    """A number with four digits, or three and an exponent; a deviation has the decimals of the number ``beside`` it."""
    size = abs(value if beside is None else beside)
    if size and not 1e-3 <= size < 1e6:
        power = int(f"{size:.2e}".partition("e")[2])  # of the number as it is written: 9.999e-4 is 1.00e-3
        return f"{value / 10.0**power:.2f}e{power}"
    decimals = sum(size < most for most in (10, 100, 1000))
    return f"{value:.{decimals}f}"


def terminal(table: Table) -> str:
    """A table as aligned text, with its notes below."""
    lines = [table.head, *table.rows]
    widths = [max(len(line[k]) for line in lines) for k in range(len(table.head))]
    aligned = [
        "  " + "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    ]
    return "\n".join([*aligned, *(f"  {note}" for note in table.notes)])


def markdown(table: Table) -> str:
    """A table as Markdown, with its notes below."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    rule = "|" + "---|" * len(table.head)
    return "\n".join([line(table.head), rule, *map(line, table.rows), *(f"\n*{note}*" for note in table.notes)])
