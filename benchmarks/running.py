"""Run what is missing of benchmarks: in several processes, on the ranks of mpirun, or as an array job."""

import hashlib
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.grid import Run
from mpifed import UserError
from mpifed.algorithms.fedavg import FedAvg
from mpifed.data.cache import Cache
from mpifed.experiment.config import Experiment
from mpifed.experiment.optimum import build_local_federation
from mpifed.features.certificate import minimum as lowest
from mpifed.federation.participation.selection import All
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
    progress = SweepProgress(sys.stderr if left else None, [point.cost for point in left])
    layout = SweepLayout(1 if world.size > 1 else processes)
    with closing(progress):
        for ended in run_points(left, PointRunner(folder, world, True, progress), layout):
            progress.count_end(ended.point.cost, ended.seconds)
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


def array(todo: Sequence[Point], folder: Path, words: Sequence[str], tasks: int | None) -> Path:
    """Write the array job whose tasks call ``python -m benchmarks words --part i/n``. Returns its path."""
    return slurm.write_script(todo, folder, words, "grid", slurm.ArraySize(tasks), program="benchmarks")


class Optima:
    """f* = min (1/m) Σ f_i of experiments by data, problem and seed, computed by L-BFGS and cached in optima.json."""

    def __init__(self, folder: Path) -> None:
        self.file, self.cache = folder / "optima.json", Cache()
        try:
            self.known = msgspec.json.decode(self.file.read_bytes(), type=dict[str, float])
        except (OSError, msgspec.DecodeError):
            self.known = {}

    def given(self, config: Experiment) -> Experiment:
        """The experiment with stop.optimum set to f*."""
        key = name(config)
        if key not in self.known:
            self.known[key] = minimum(config, self.cache)
            self.save()
        return msgspec.structs.replace(config, stop=msgspec.structs.replace(config.stop, optimum=self.known[key]))

    def save(self) -> None:
        """Replace optima.json in one step, because other tasks of an array job write it too."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_name(f"optima.{os.uname().nodename}.{os.getpid()}")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(self.known)))
        os.replace(part, self.file)


def name(config: Experiment) -> str:
    """A hash of all that f* depends on: data, problem, seed and dtype."""
    parts = (config.data, config.problem, config.seed, config.dtype)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:20]


def minimum(config: Experiment, cache: Cache) -> float:
    """f* of an experiment, from its initial model in double precision."""
    return optimum(config, cache).f


def optimum(config: Experiment, cache: Cache) -> lowest.Optimum:
    """x* and f* of an experiment, from its initial model in double precision."""
    algorithm = FedAvg()  # any algorithm; this one prepares nothing
    fed, _ = build_local_federation(
        msgspec.structs.replace(config, algorithm=algorithm, selection=All(), start=None, graph=None), cache
    )
    return lowest.find_minimum(fed, algorithm, fed.initial())
