"""What results and committed rows say: tables and claims as text, pictures, counts, and rows to commit."""

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from textwrap import fill
from typing import NamedTuple

import msgspec

from benchmarks import outcome as outcomes
from benchmarks import pictures, rows, running
from benchmarks.bench import Bench
from benchmarks.grid import Run, runs
from benchmarks.outcome import Outcome, collect
from benchmarks.tables import LEGEND, lacking, tables, terminal
from benchmarks.tally import Tally, counted, remaining, repetitions, said, tally
from mpifed import UserError
from mpifed.data.cache import Cache
from mpifed.experiment.optimum import build_local_federation
from mpifed.report import style


class Chosen(NamedTuple):
    """A benchmark to run, with its grid and number of seeds."""

    name: str
    bench: Bench
    seeds: int


class Section(NamedTuple):
    """The part of the report on one benchmark; ``lack``: why it has no pictures."""

    name: str
    tally: Tally
    summary: str
    text: str
    lack: str


def section(name: str, bench: Bench, seeds: int, folder: Path, failed: dict[str, str]) -> Section:
    """Read the results of a benchmark, draw its pictures and write its part of the report."""
    outcome = collect(name, bench, seeds, runs(bench, seeds, name), folder, failed)
    _, lack = save_pictures(outcome, folder)
    return Section(name, tally(outcome), outcome.summary(), portable(screen(outcome)), lack)


def write(sections: Sequence[Section], folder: Path) -> Path:
    """Write report.md: the counts, what is off or open and why, and each benchmark as ``run`` shows it."""
    tallies = [one.tally for one in sections]
    parts = ["# The tables and figures of five papers, rerun", counted(tallies), remaining(tallies)]
    parts += [f"## {one.name}\n\n```\n{one.text}\n```" for one in sections]
    page = folder / "report.md"
    page.write_text("\n\n".join(parts) + "\n", "utf-8")
    return page


def save_pictures(outcome: Outcome, folder: Path) -> tuple[list[Path], str]:
    """Save the pictures of a benchmark in folder/<benchmark>/. Returns their paths, and why some are missing."""
    made = list[Path]()
    for wish in outcome.bench.figure:
        try:
            figure = pictures.figure(outcome, wish)
        except UserError as lack:  # matplotlib is missing; the tables do not need it
            return made, str(lack)
        if figure is not None:
            path = folder / outcome.name / f"{wish.name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            style.save(figure, path, True)
            made.append(path)
    return made, ""


def screen(outcome: Outcome) -> str:
    """A benchmark as text for a terminal."""
    bench = outcome.bench
    parts = [f"{bench.title}\n{bench.source}\n{behind(outcome)}\n{LEGEND}"]
    for block in bench.block:
        if reason := lacking(outcome, block):
            parts.append(f"{block.title}: not available: {reason}")
        elif found := tables(outcome, block):
            parts.append("\n\n".join([block.title, *map(terminal, found)]))
    if outcome.findings:
        speaker = "theory" if outcome.name.startswith("beyond/") else "the paper"
        lines = (fill(line, 110, initial_indent="  ", subsequent_indent="    ") for line in said(outcome))
        parts.append("\n".join([f"What {speaker} says:", *lines]))
    return "\n\n".join([*parts, bench.different.strip(), outcome.summary()])


def behind(outcome: Outcome) -> str:
    """How many runs our numbers and the paper's are means of."""
    seeds = repetitions(outcome)
    ours = f"{seeds} seed" + "s" * (seeds != "1")
    found = list(dict.fromkeys(outcome.bench.trials_of(block) for block in outcome.bench.block if block.paper))
    theirs = [
        f"{count} run{'s' * (count > 1)}{'' if printed else ' (assumed, not printed)'}" for count, printed in found
    ]
    return f"our numbers: {ours}" + (f"; the paper's: {' or '.join(theirs)}" if theirs else "")


def portable(reason: str) -> str:
    """A reason with the data folder of this machine replaced by $MPIFED_DATA."""
    folder = os.environ.get("MPIFED_DATA")
    return reason.replace(folder, "$MPIFED_DATA") if folder else reason


def left_for_later(chosen: Sequence[Chosen], listed: Sequence[list[Run]], folder: Path) -> dict[str, str]:
    """Name -> reason of the runs without results in blocks that are too long for ``report``."""
    later = dict[str, str]()
    for one, some in zip(chosen, listed, strict=True):
        blocks = {block.name for block in one.bench.block if block.array}
        why = f"too long for the report: python -m benchmarks run {one.name} --slurm"
        later |= {
            run.name: why for run in some if run.cell.block in blocks and not (folder / f"{run.name}.h5").exists()
        }
    return later


def without_rows(listed: Iterable[Run], name: str) -> list[Run]:
    """The runs that have no committed row with these settings."""
    have = {row.key for row in rows.committed(name)[1].runs}
    return [run for run in listed if run.key not in have]


def counts(chosen: Sequence[Chosen], folder: Path, processes: int) -> str:
    """How many cells and claims of existing results came out how, and what is off or open, as Markdown."""
    tasks = [(*one, folder, running.points(known(one), folder)[1]) for one in chosen]
    tallies = list(running.side_by_side(count, tasks, processes))
    return f"{counted(tallies)}\n\n{remaining(tallies)}"


def count(name: str, bench: Bench, seeds: int, folder: Path, failed: dict[str, str]) -> Tally:
    """Read the results of a benchmark and count its cells and claims."""
    return tally(collect(name, bench, seeds, runs(bench, seeds, name), folder, failed))


def keep(chosen: Sequence[Chosen], folder: Path) -> Iterator[str]:
    """Write the rows of existing results beside those committed with these settings. Yields a line for each."""
    for one in chosen:
        some = known(one)
        lacking = unavailable(some, folder) | left_for_later([one], [some], folder)
        lacking = {name: portable(why) for name, why in lacking.items()}
        found = collect(*one, some, folder, lacking).rows
        if found.runs:
            found = rows.joined(found, rows.committed(one.name)[1], [run.key for run in some])
            yield f"{rows.write(one.name, found)}: {len(found.runs)} of {len(some)} runs"
        else:
            yield f"{one.name}: no results in {folder}"


def unavailable(some: Iterable[Run], folder: Path) -> dict[str, str]:
    """Name -> reason of the runs without results whose data are missing."""
    cache, tried = Cache(), dict[bytes, str]()
    absent = [run for run in some if not (folder / f"{run.name}.h5").exists()]
    for run in absent:
        if (key := msgspec.json.encode(run.config.data)) not in tried:
            try:
                build_local_federation(run.config, cache)
                tried[key] = ""
            except UserError as why:
                tried[key] = str(why)
    return {run.name: said for run in absent if (said := tried[msgspec.json.encode(run.config.data)])}


def known(one: Chosen) -> list[Run]:
    """The runs of a benchmark, without the optimum that some need before they can start."""
    return [run._replace(optimum=False) for run in runs(one.bench, one.seeds, one.name)]


def committed(names: Iterable[str]) -> Iterator[str]:
    """The tables and claims of committed rows, as text for a terminal."""
    for name in names:
        yield screen(outcomes.committed(name)) + "\n"
