"""What the runs of a benchmark came to: samples of every measure, and curves, by cell."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from benchmarks import measures
from benchmarks.bench import Bench, Cell, Number, Run, stem
from benchmarks.measures import Extra
from benchmarks.verdict import AGREES, NONE, OFF, OPEN, SPREAD, TIME, Finding, Sample, Verdict, examine, judge
from mpifed.core.errors import UserError
from mpifed.results.result import Result, load


class Outcome(NamedTuple):
    """A benchmark and what came of it; ``files``: cell -> what its result files are called, * for the seed."""

    name: str
    bench: Bench
    seeds: int
    runs: dict[Cell, list[Result]]
    samples: dict[tuple[Cell, str], Sample]
    findings: list[Finding]
    files: dict[Cell, str]
    extra: Extra

    def verdict(self, cell: Cell, measure: str) -> tuple[Number | None, Number | None, Verdict]:
        """The paper's number, the independent implementation's, and the verdict on ours beside the first of them."""
        block = next(block for block in self.bench.block if block.name == cell.block)
        column = self.bench.values.index(cell.value)
        numbers = [table.get(cell.row, {}).get(measure) for table in (block.paper, block.reference)]
        paper, reference = (None if found is None or found[column] == "" else found[column] for found in numbers)
        target = reference if paper is None else paper
        if target is None:
            return None, None, Verdict("", "")
        verdict = judge(self.samples[cell, measure], target, self.bench.seeds, measure in measures.SECONDS)
        return paper, reference, verdict

    def counts(self) -> dict[str, int]:
        """Cells with a number to stand beside, by verdict."""
        found: dict[str, int] = {}
        for cell, measure in self.samples:
            kind = self.verdict(cell, measure)[2].kind
            if kind:
                found[kind] = found.get(kind, 0) + 1
        return found

    def summary(self) -> str:
        """8 cells agree, 3 within the spread, 1 off; 5 of 6 claims hold."""
        counts = self.counts()
        words = {
            AGREES: "agree",
            SPREAD: "within the spread of draws",
            OFF: "off",
            TIME: "of seconds, other machines",
            OPEN: "open",
            NONE: "not reachable here",
        }
        cells = ", ".join(f"{counts[kind]} {word}" for kind, word in words.items() if kind in counts)
        here = [finding for finding in self.findings if finding.places]
        held = sum(finding.held == finding.places for finding in here)
        claims = f"{held} of {len(here)} claims hold" if here else ""
        return "; ".join(filter(None, (f"cells: {cells}" if cells else "", claims))) or "nothing to compare with"


def collect(name: str, bench: Bench, seeds: int, runs: Iterable[Run], folder: Path, lacking: dict[str, str]) -> Outcome:
    """Read the results of a benchmark; ``lacking``: run -> why it is not there."""
    extra = measures.extra(name.split("/")[0])
    found: dict[Cell, list[Result]] = {}
    reasons: dict[Cell, str] = {}
    files: dict[Cell, str] = {}
    for run in runs:
        own = found.setdefault(run.cell, [])
        files[run.cell] = f"{name}/{stem(bench, run.cell)}-seed-*.h5"
        try:
            result = load(folder / f"{run.name}.h5")
        except UserError:
            reasons.setdefault(run.cell, lacking.get(run.name, "not run"))
            continue
        own.append(result)
        if result.status != "finished":
            reasons.setdefault(run.cell, f"{result.status}: {result.stop_reason}")
    samples = {
        (cell, measure): sample(results, measure, extra, reasons.get(cell, ""))
        for cell, results in found.items()
        for measure in wanted(bench)
    }
    results = [result for own in found.values() for result in own]
    for measure in wanted(bench) if results else ():
        if not measures.known(measure, results, extra):
            raise UserError(f"{name}: no run has the measure {measure!r}")
    findings = [examine(bench, claim, samples) for claim in bench.claim]
    return Outcome(name, bench, seeds, found, samples, findings, files, extra)


def wanted(bench: Bench) -> list[str]:
    """The measures of the table, claims and pictures."""
    drawn = [measure for figure in bench.figure if figure.kind != "curves" for measure in figure.y]
    return list(dict.fromkeys([*bench.measures, *(claim.measure for claim in bench.claim), *drawn]))


def sample(results: list[Result], measure: str, extra: Extra, reason: str) -> Sample:
    """A measure of the runs of a cell, with a reason where none of them has it."""
    values = tuple(measures.value(result, measure, extra) for result in results)
    late = [measures.censored(result, measure) for result in results]
    least = min(
        (
            measures.last(result, measure, extra)
            for result, value, limited in zip(results, values, late, strict=True)
            if limited or math.isinf(value)
        ),
        default=math.inf,
    )
    return Sample(values, sum(late), reason if all(map(math.isnan, values)) else "", least)
