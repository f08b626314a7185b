"""The outcome of a benchmark: samples of every measure by cell, and a finding for every claim."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import expressions, rows
from benchmarks.bench import Bench, Number
from benchmarks.claims import FAILS, HOLDS, TIE, UNDECIDED, Finding, examine
from benchmarks.expressions import PaperMeasures
from benchmarks.grid import Cell, Run
from benchmarks.rows import Row, Rows
from benchmarks.verdict import AGREES, ALIKE, FITTED, NONE, OFF, OPEN, OTHER, TIME, Sample, Verdict, judge, telling
from mpifed import Result, UserError, load

PRINTED = "printed by the papers"
PROGRAMS = "of other programs and of authors' traces"
THEORY = "rates from theory"
ENDED = ("finished", "failed")  # by diverging; a run that was stopped or killed says nothing of its method


class Outcome(NamedTuple):
    """A benchmark with its rows and, for pictures, results."""

    name: str
    bench: Bench
    rows: Rows
    runs: dict[Cell, list[Result]]
    samples: dict[tuple[Cell, str], Sample]
    findings: list[Finding]
    own: PaperMeasures

    def verdict(self, cell: Cell, measure: str) -> tuple[Number | None, Number | None, Verdict]:
        """The paper's number, the independent implementation's, and the verdict against the first one there is.

        On other data than the paper's, only the independent implementation's number is judged.
        """
        block = next(block for block in self.bench.block if block.name == cell.block)
        columns = [self.column(table, cell, measure) for table in (block.paper, block.reference)]
        paper, reference = (column.get(cell.row) for column in columns)
        ours = self.samples[cell, measure]
        target, trials = (paper, float(self.bench.trials_of(block)[0]))
        if self.source(cell, measure) != PRINTED:
            target, trials = reference, block.reference_trials
        if target is None:
            return None, None, Verdict("", "")
        others = [number for row, number in columns[target is not paper].items() if row != cell.row]
        verdict = judge(ours, target, trials, measure in expressions.SECONDS, block.center)
        verdict = telling(verdict, ours, target, others, trials, block.center)
        if verdict.kind == AGREES and block.fit(cell.row, measure):
            verdict = Verdict(FITTED, verdict.text)
        if block.surrogate and reference is None and verdict.kind != NONE:
            verdict = Verdict(OTHER, "")
        return paper, reference, verdict

    def source(self, cell: Cell, measure: str) -> str:
        """Whose number a cell is compared with: PRINTED, PROGRAMS or THEORY; "" without one."""
        block = next(block for block in self.bench.block if block.name == cell.block)
        printed, known = (cell.row in self.column(one, cell, measure) for one in (block.paper, block.reference))
        if known and (block.surrogate or not printed):
            return THEORY if math.isinf(block.reference_trials) else PROGRAMS
        return PRINTED if printed else ""

    def column(self, table: dict[str, dict[str, list[Number]]], cell: Cell, measure: str) -> dict[str, Number]:
        """Row -> number of a measure in the column of a cell, of the rows that have one."""
        column = self.bench.values.index(cell.value)
        found = {row: measured[measure][column] for row, measured in table.items() if measure in measured}
        return {row: number for row, number in found.items() if number != ""}

    def counts(self) -> dict[str, int]:
        """The number of cells by verdict, of those that have a number to compare with."""
        return dict(Counter(kind for _, kind in self.kinds()))

    def kinds(self) -> Iterator[tuple[str, str]]:
        """Whose number each cell of the table is compared with, and its verdict."""
        for cell, measure in self.samples:
            kind = self.verdict(cell, measure)[2].kind if measure in self.bench.measures else ""
            if kind:
                yield self.source(cell, measure), TIME if measure in expressions.SECONDS else kind

    def summary(self) -> str:
        """For example "cells: 8 agree, 1 off, 3 on other data; claims: 5 hold, 1 tie"."""
        counts = self.counts()
        words = {
            AGREES: "agree",
            FITTED: "agree in sample",
            ALIKE: "cannot tell the methods apart",
            OFF: "off",
            OPEN: "open",
            OTHER: "on other data",
            NONE: "not available",
            TIME: "in seconds (different machines)",
        }
        cells = ", ".join(f"{counts[kind]} {word}" for kind, word in words.items() if kind in counts)
        kinds = [finding.kind for finding in self.findings]
        words = {HOLDS: "hold", TIE: "tie", FAILS: "fail", UNDECIDED: "not decided", OTHER: "on other data"}
        claims = ", ".join(f"{kinds.count(kind)} {word}" for kind, word in words.items() if kind in kinds)
        parts = (f"cells: {cells}" if cells else "", f"claims: {claims}" if claims else "")
        return "; ".join(filter(None, parts)) or "nothing to compare with"


def collect(name: str, bench: Bench, seeds: int, runs: Iterable[Run], folder: Path, lacking: dict[str, str]) -> Outcome:
    """Read the results of a benchmark; ``lacking``: run -> why it has no result."""
    own = expressions.paper_measures(name.split("/")[0])
    found: dict[Cell, list[Result]] = {}
    missing: dict[Cell, str] = {}
    for run in runs:
        results = found.setdefault(run.cell, [])
        try:
            result = load(folder / f"{run.name}.h5")
        except UserError:
            missing.setdefault(run.cell, lacking.get(run.name, "not run"))
            continue
        if result.status in ENDED:
            results.append(result)
        else:
            missing.setdefault(run.cell, "interrupted")
    measures = wanted(bench)
    every = [result for some in found.values() for result in some]
    whole = len(found) == len(rows.cells(bench))  # no part, as of --only
    for measure in measures if every and whole else ():
        if not expressions.available(measure, every, own):
            raise UserError(f"{name}: no run has the measure {measure!r}")
    made = [rows.measured(cell, result, measures, own) for cell, results in found.items() for result in results]
    lacks = [(*cell, why) for cell, why in missing.items()]
    table = Rows(seeds, measures, made, lacks, rows.settings(bench), rows.origin(every))
    return judged(name, bench, table, list(found))._replace(runs=found, own=own)


def judged(name: str, bench: Bench, table: Rows, cells: Sequence[Cell]) -> Outcome:
    """The outcome of a benchmark by its rows; it has no results, so no picture of curves can be drawn from it."""
    found: dict[Cell, list[Row]] = {cell: [] for cell in cells}
    for row in table.runs:
        found[row.cell].append(row)
    reasons = table.reasons
    samples = {
        (cell, measure): sample(own, table.measures, measure, reasons.get(cell, ""))
        for cell, own in found.items()
        for measure in wanted(bench)
    }
    findings = [examine(bench, claim, samples) for claim in bench.claim]
    return Outcome(name, bench, table, {}, samples, findings, expressions.PaperMeasures({}, {}))


def committed(name: str) -> Outcome:
    """The outcome of a benchmark by its committed rows."""
    bench, table = rows.committed(name)
    return judged(name, bench, table, rows.cells(bench))


def wanted(bench: Bench) -> list[str]:
    """The measures that the table, the claims and the pictures need."""
    drawn = [measure for figure in bench.figure if figure.kind != "curves" for measure in (*figure.y, figure.along)]
    return list(dict.fromkeys([*bench.measures, *(claim.measure for claim in bench.claim), *filter(None, drawn)]))


def sample(runs: Sequence[Row], measures: Sequence[str], measure: str, reason: str) -> Sample:
    """A measure of the runs of a cell; ``reason`` is kept if none of them has it."""
    if measure not in measures:
        return Sample(reason=reason or f"the rows have no {measure}")
    index = measures.index(measure)
    values = tuple(row.numbers[index] for row in runs)
    limited = tuple(measure in row.bounds and not math.isinf(value) for row, value in zip(runs, values, strict=True))
    least = min((row.bounds[measure] for row in runs if measure in row.bounds), default=math.inf)
    seeds = tuple(row.seed for row in runs)
    return Sample(values, sum(limited), reason if all(map(math.isnan, values)) else "", least, seeds, limited)
