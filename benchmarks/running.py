"""Run what is missing of benchmarks: in several processes, on the ranks of mpirun, or as an array job."""

import multiprocessing
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from itertools import chain
from pathlib import Path
from statistics import fmean
from typing import Any, TextIO

import msgspec

from benchmarks.grid import Run
from benchmarks.optimum import Optima
from mpifed import UserError
from mpifed.experiment.progress import format_duration
from mpifed.mpi.launcher import read_launcher
from mpifed.mpi.world import World
from mpifed.results.result import read_result_file
from mpifed.results.validate import read_attributes
from mpifed.sweeps import slurm
from mpifed.sweeps.cost import cost
from mpifed.sweeps.grid import Point
from mpifed.sweeps.runner import SweepLayout, run_points
from mpifed.sweeps.runs import FAILED, PointRunner, SweepProgress, first_difference


def points(runs: Iterable[Run], folder: Path) -> tuple[list[Point], dict[str, str]]:
    """The runs as points of a sweep, and name -> reason of those whose data are missing."""
    found: list[Point] = []
    lacking: dict[str, str] = {}
    missing: dict[bytes, str] = {}
    optima = Optima(folder)
    for run in runs:
        key = msgspec.json.encode(run.config.data)
        try:
            if key in missing:
                raise UserError(missing[key])
            config = optima.given(run.config) if run.optimum else run.config
            found.append(Point(run.name, (), config, cost(config)))
        except UserError as reason:
            missing[key] = lacking[run.name] = str(reason)
    return found, lacking


def do(todo: Sequence[Point], folder: Path, world: World, processes: int) -> dict[str, str]:
    """Run what is missing, seed by seed, the most expensive first; returns name -> reason of failed runs.

    In so many processes of this machine, or on all ranks of ``world``.
    """
    failed = dict[str, str]()
    left = sorted(
        (point for point in todo if not done(point, folder)), key=lambda point: (point.config.seed, -point.cost)
    )
    lanes = 1 if world.size > 1 else processes
    progress = Remaining(sys.stderr if left else None, [point.name for point in left], len(todo), lanes)
    with closing(progress):
        for ended in run_points(left, PointRunner(folder, world, True, progress), SweepLayout(lanes)):
            progress.finished(ended.point.name, ended.seconds)
            if ended.status == FAILED:
                failed[ended.point.name] = ended.text
    return failed


@contextmanager
def pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """A pool of processes that an interrupt ends as well."""
    with ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn")) as workers:
        try:
            yield workers
        except KeyboardInterrupt:
            for child in multiprocessing.active_children():
                child.terminate()
            workers.shutdown(wait=False, cancel_futures=True)
            raise


def side_by_side(call: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], processes: int) -> Iterator[Any]:
    """Call ``call`` for every task in several processes, or in this one under mpirun. Yields the results in order."""
    if read_launcher()[0] is not None or min(processes, len(tasks)) < 2:
        yield from (call(*task) for task in tasks)
        return
    with pool(min(processes, len(tasks))) as workers:
        yield from workers.map(call, *zip(*tasks, strict=True))


def done(point: Point, folder: Path) -> bool:
    """Whether the result file holds a run with this configuration that has ended: finished, or failed by diverging."""
    path = folder / point.file
    if not path.exists():
        return False
    try:
        attrs = read_result_file(path, read_attributes)
        return attrs.get("status") in ("finished", "failed") and not first_difference(point.config, attrs, str(path))
    except UserError:
        return False


class Remaining(SweepProgress):
    """Progress with the time left, estimated from other seeds of the same cell, or from the mean of all runs."""

    def __init__(self, stream: TextIO | None, names: Sequence[str], total: int, processes: int) -> None:
        super().__init__(stream, [0.0] * total)
        self.done, self.processes = total - len(names), processes
        self.open = Counter(map(cell, names))
        self.took: dict[str, list[float]] = {}

    def finished(self, name: str, seconds: float) -> None:
        """Count a finished run, which took so many seconds in one process."""
        self.open[cell(name)] -= 1
        self.took.setdefault(cell(name), []).append(seconds)
        self.count_end(0.0, 0.0)

    def head(self) -> str:
        """For example "12 of 60, about 3 min left"."""
        if not self.took:
            return f"{self.done} of {self.total}"
        usual = fmean(chain(*self.took.values()))
        left = sum(count * fmean(self.took.get(name, [usual])) for name, count in self.open.items())
        return f"{self.done} of {self.total}, about {format_duration(left / self.processes)} left"


def cell(name: str) -> str:
    """The name of a run without its seed."""
    return name.rpartition("-seed-")[0]


def array(todo: Sequence[Point], folder: Path, words: Sequence[str], tasks: int | None) -> Path:
    """Write the array job whose tasks call ``python -m benchmarks words --part i/n``. Returns its path."""
    return slurm.write_script(todo, folder, words, "grid", slurm.ArraySize(tasks), program="benchmarks")
