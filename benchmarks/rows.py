"""The numbers of every run of a benchmark: rows, from which tables, verdicts and claims follow without result files."""

from __future__ import annotations

import gzip
import hashlib
import math
import zlib
from collections.abc import Iterable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from benchmarks import bench as benches
from benchmarks import expressions
from benchmarks.bench import Bench, Block
from benchmarks.expressions import PaperMeasures
from benchmarks.grid import Cell
from mpifed import Result, UserError
from mpifed.core.files import replace_file

ABSENT = "no rows: it was not run with these settings"


class Row(msgspec.Struct, array_like=True):
    """A run; ``ended``: why it did not finish; ``numbers``: by measure, inf if its condition was never met.

    ``bounds``: measure -> the last value, where the run hit the limit of rounds or never met the condition.
    """

    block: str
    row: str
    value: Any  # of the columns' key
    seed: int
    ended: str
    numbers: list[float]
    bounds: dict[str, float] = {}

    @property
    def cell(self) -> Cell:
        return Cell(self.block, self.row, self.value)

    @property
    def key(self) -> tuple[Cell, int]:
        """Which run it is: cell and seed."""
        return self.cell, self.seed


class Origin(msgspec.Struct):
    """Where rows come from: versions, machine and days, those of several in one text."""

    mpifed: str = ""
    commit: str = ""
    python: str = ""
    numpy: str = ""
    blas: str = ""
    machine: str = ""
    days: str = ""


class Rows(msgspec.Struct):
    """The runs of a benchmark, with ``seeds`` seeds where a block does not say otherwise.

    ``lacking``: block, row, value of the cells that lack runs, and why. ``settings``: block -> row -> a hash of all
    that its runs depend on in the benchmark's file.
    """

    seeds: int
    measures: list[str]
    runs: list[Row]
    lacking: list[tuple[str, str, Any, str]] = []
    settings: dict[str, dict[str, str]] = {}
    origin: Origin = msgspec.field(default_factory=Origin)

    @property
    def reasons(self) -> dict[Cell, str]:
        """Why cells have no number: how a run failed, or why it is not there."""
        found: dict[Cell, str] = {}
        for run in self.runs:
            if run.ended:
                found.setdefault(run.cell, run.ended)
        for block, row, value, why in self.lacking:
            found.setdefault(Cell(block, row, value), why)
        return found


def measured(cell: Cell, result: Result, measures: Sequence[str], own: PaperMeasures) -> Row:
    """The row of a run."""
    numbers = [expressions.value(result, measure, own) for measure in measures]
    bounds = {
        measure: expressions.last(result, measure, own)
        for measure, number in zip(measures, numbers, strict=True)
        if expressions.censored(result, measure) or math.isinf(number)
    }
    ended = "" if result.status == "finished" else f"{result.status}: {result.stop_reason}"
    return Row(*cell, int(result.config["seed"]), ended, numbers, bounds)


def joined(new: Rows, old: Rows, order: Sequence[tuple[Cell, int]]) -> Rows:
    """Rows and those of ``old``, of the same settings, that ``new`` has not; ``new`` alone if it has other measures.

    ``order``: the keys of all runs of the benchmark, in the order of its file.
    """
    if new.measures != old.measures:
        return new
    by_key = {run.key: run for run in (*old.runs, *new.runs)}
    runs = [by_key[key] for key in order if key in by_key]
    partial = {cell for cell, seed in order if (cell, seed) not in by_key}
    lacking = [lack for lack in new.lacking if Cell(*lack[:3]) in partial]
    origins = (old.origin, new.origin)
    together = {name: listed(getattr(one, name) for one in origins) for name in Origin.__struct_fields__}
    together["days"] = span(one.days for one in origins)
    return msgspec.structs.replace(new, runs=runs, lacking=lacking, origin=Origin(**together))


def cells(bench: Bench) -> list[Cell]:
    """All cells of a benchmark."""
    return [
        Cell(block.name, row["name"], value)
        for block in bench.block
        for row, value in product(block.rows, bench.values)
    ]


def settings(bench: Bench) -> dict[str, dict[str, str]]:
    """Block -> row -> a hash of what its runs depend on in the file of a benchmark, which no number of a paper is."""
    return {block.name: {row["name"]: hashed(bench, block, row) for row in block.rows} for block in bench.block}


def hashed(bench: Bench, block: Block, row: dict[str, Any]) -> str:
    """The hash of a row."""
    parts = (bench.columns and bench.columns.key, bench.study, block.study, block.optimum, row)
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()[:12]


def origin(results: Iterable[Result]) -> Origin:
    """Where results come from."""
    found = [result.attrs for result in results]

    def said(key: str) -> str:
        return listed(str(attrs.get(key) or "") for attrs in found)

    days = span(str(attrs["started"])[:10] for attrs in found)
    return Origin(
        said("mpifed_version"), said("git_commit"), said("python"), said("numpy"), said("blas"), processor(), days
    )


def listed(texts: Iterable[str]) -> str:
    """The parts of texts in order, each once, with commas."""
    return ", ".join(sorted({part for text in texts for part in text.split(", ")} - {""}))


def span(texts: Iterable[str]) -> str:
    """From the first to the last of the days in texts."""
    days = sorted({day for text in texts for day in text.split(" to ")} - {""})
    return " to ".join(dict.fromkeys((days[0], days[-1]))) if days else ""


def processor() -> str:
    """The name of this machine's processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        lines = []
    return next((line.partition(": ")[2] for line in lines if line.startswith("model name")), "unknown")


def path(name: str) -> Path:
    """The file of the committed rows of a benchmark."""
    return benches.HERE / "committed" / f"{name}.jsonl.gz"


def write(name: str, rows: Rows) -> Path:
    """Commit rows: one line with all but the runs, then a line for each run."""
    head = msgspec.structs.replace(rows, runs=[])
    lines = [head, *(msgspec.structs.replace(row, numbers=spelt(row.numbers)) for row in rows.runs)]
    file = path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(file, True) as part:
        # No time in the head of the packed file: the same rows are the same bytes.
        part.write_bytes(gzip.compress(b"\n".join(map(msgspec.json.encode, lines)) + b"\n", 9, mtime=0))
    return file


def spelt(numbers: Sequence[float]) -> list[Any]:
    """Numbers as JSON has them: inf is a text, nan is null."""
    return [str(number) if math.isinf(number) else number for number in numbers]


def read(name: str) -> Rows | None:
    """The committed rows of a benchmark; None where there are none. UserError for a damaged file."""
    file = path(name)
    if not file.exists():
        return None
    try:
        head, *lines = gzip.decompress(file.read_bytes()).splitlines()
        rows = msgspec.json.decode(head, type=Rows)
        rows.runs = [msgspec.convert(unspelt(msgspec.json.decode(line)), Row) for line in lines]
    except (OSError, EOFError, ValueError, zlib.error, msgspec.MsgspecError) as error:
        raise UserError(
            f"{file} is damaged: {error}; bring it back, or delete it and run python -m benchmarks rows {name}"
        ) from None
    return rows


def unspelt(line: list[Any]) -> list[Any]:
    """A line with its numbers as floats."""
    *head, numbers, bounds = line
    floats = [math.nan if number is None else float(number) for number in numbers]
    return [*head, floats, {key: math.inf if bound is None else bound for key, bound in bounds.items()}]


def committed(name: str) -> tuple[Bench, Rows]:
    """A benchmark as ``report`` runs it, and its committed rows of today's settings; why others are not there."""
    bench = benches.read(name).repeated("report")
    old = read(name) or Rows(bench.report, [], [])
    now, every = settings(bench), cells(bench)
    same = {cell for cell in every if old.settings.get(cell.block, {}).get(cell.row) == now[cell.block][cell.row]}
    runs = [run for run in old.runs if run.cell in same]
    lacking = [one for one in old.lacking if Cell(*one[:3]) in same]
    there = {run.cell for run in runs} | {Cell(*one[:3]) for one in lacking}
    lacking += [(*cell, ABSENT) for cell in every if cell not in there]
    return bench, msgspec.structs.replace(old, runs=runs, lacking=lacking)
