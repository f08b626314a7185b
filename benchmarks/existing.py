"""What existing results and committed rows say: nothing is run."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from benchmarks import outcome, report, rows, running, tally
from benchmarks.bench import Bench
from benchmarks.grid import Run, runs
from mpifed import UserError
from mpifed.data.cache import Cache
from mpifed.experiment.optimum import build_local_federation


class Chosen(NamedTuple):
    """A benchmark to run, with its grid and number of seeds."""

    name: str
    bench: Bench
    seeds: int


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
    tallies = list(running.side_by_side(report.counts, tasks, processes))
    return f"{tally.counted(tallies)}\n\n{tally.remaining(tallies)}"


def keep(chosen: Sequence[Chosen], folder: Path) -> Iterator[str]:
    """Write the rows of existing results beside those committed with these settings. Yields a line for each."""
    for one in chosen:
        some = known(one)
        lacking = unavailable(some, folder) | left_for_later([one], [some], folder)
        lacking = {name: report.portable(why) for name, why in lacking.items()}
        found = outcome.collect(*one, some, folder, lacking).rows
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
        yield report.screen(outcome.committed(name)) + "\n"
