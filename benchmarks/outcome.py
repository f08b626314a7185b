"""The outcome of a benchmark: samples of every measure by cell, and a finding for every claim."""

import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks import expressions
from benchmarks.bench import Bench
from benchmarks.claims import Finding, examine
from benchmarks.differences import FAILS, HOLDS, TIE, UNDECIDED
from benchmarks.expressions import PaperMeasures
from benchmarks.grid import Cell, Run, stem
from benchmarks.parts import Number
from benchmarks.verdict import AGREES, ALIKE, FITTED, NONE, OFF, OPEN, OTHER, TIME, Sample, Verdict, judge, telling
from mpifed import Result, UserError, load


class Outcome(NamedTuple):
    """A benchmark with its results; ``files``: cell -> pattern of its result files, with * for the seed."""

    name: str
    bench: Bench
    seeds: int
    runs: dict[Cell, list[Result]]
    samples: dict[tuple[Cell, str], Sample]
    findings: list[Finding]
    files: dict[Cell, str]
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
        if paper is None or (block.surrogate and reference is not None):
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

    def column(self, table: dict[str, dict[str, list[Number]]], cell: Cell, measure: str) -> dict[str, Number]:
        """Row -> number of a measure in the column of a cell, of the rows that have one."""
        column = self.bench.values.index(cell.value)
        found = {row: measured[measure][column] for row, measured in table.items() if measure in measured}
        return {row: number for row, number in found.items() if number != ""}

    def counts(self) -> dict[str, int]:
        """The number of cells by verdict, of those that have a number to compare with."""
        found: dict[str, int] = {}
        for cell, measure in self.samples:
            kind = self.verdict(cell, measure)[2].kind
            if kind and measure in expressions.SECONDS:
                kind = TIME
            if kind and measure in self.bench.measures:
                found[kind] = found.get(kind, 0) + 1
        return found

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
    reasons: dict[Cell, str] = {}
    files: dict[Cell, str] = {}
    for run in runs:
        results = found.setdefault(run.cell, [])
        files[run.cell] = f"{name}/{stem(bench, run.cell)}-seed-*.h5"
        try:
            result = load(folder / f"{run.name}.h5")
        except UserError:
            reasons.setdefault(run.cell, lacking.get(run.name, "not run"))
            continue
        results.append(result)
        if result.status != "finished":
            reasons.setdefault(run.cell, f"{result.status}: {result.stop_reason}")
    samples = {
        (cell, measure): sample(results, measure, own, reasons.get(cell, ""))
        for cell, results in found.items()
        for measure in wanted(bench)
    }
    results = [result for some in found.values() for result in some]
    whole = len(found) == len(bench.values) * sum(len(block.rows) for block in bench.block)  # no part, as of --only
    for measure in wanted(bench) if results and whole else ():
        if not expressions.available(measure, results, own):
            raise UserError(f"{name}: no run has the measure {measure!r}")
    findings = [examine(bench, claim, samples) for claim in bench.claim]
    return Outcome(name, bench, seeds, found, samples, findings, files, own)


def wanted(bench: Bench) -> list[str]:
    """The measures that the table, the claims and the pictures need."""
    drawn = [measure for figure in bench.figure if figure.kind != "curves" for measure in (*figure.y, figure.along)]
    return list(dict.fromkeys([*bench.measures, *(claim.measure for claim in bench.claim), *filter(None, drawn)]))


def sample(results: list[Result], measure: str, own: PaperMeasures, reason: str) -> Sample:
    """Evaluate a measure on the runs of a cell; ``reason`` is kept if none of them has it."""
    values = tuple(expressions.value(result, measure, own) for result in results)
    limited = [expressions.censored(result, measure) for result in results]
    least = min(
        (
            expressions.last(result, measure, own)
            for result, value, at_limit in zip(results, values, limited, strict=True)
            if at_limit or math.isinf(value)
        ),
        default=math.inf,
    )
    seeds = tuple(int(result.config["seed"]) for result in results)
    return Sample(values, sum(limited), reason if all(map(math.isnan, values)) else "", least, seeds, tuple(limited))
