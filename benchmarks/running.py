"""Doing the runs of benchmarks that are not done: several at a time, on the ranks of mpirun, or as an array job."""
from __future__ import annotations

import multiprocessing
import sys
import time
import tomllib
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import msgspec

from benchmarks.bench import Run
from benchmarks.optimum import Optima
from mpifed import config as configuration
from mpifed import cost, slurm, sweep
from mpifed.component import UserError
from mpifed.grid import Point
from mpifed.progress import Overall
from mpifed.results import read
from mpifed.sound import attributes

worker: sweep.Runs      # of a process of the pool


def points(runs: Iterable[Run], folder: Path) -> tuple[list[Point], dict[str, str]]:
    """The runs as points of a sweep; name -> reason of those that cannot be, because their data are not at hand."""
    found, lacking, optima = list[Point](), dict[str, str](), Optima(folder)
    missing: dict[bytes, str] = {}
    for run in runs:
        key = msgspec.json.encode(run.config.data)
        try:
            if key in missing:
                raise UserError(missing[key])
            config = optima.given(run.config) if run.optimum else run.config
            found.append(Point(run.name, (), config, cost.cost(config)))
        except UserError as reason:
            missing[key] = lacking[run.name] = str(reason)
    return found, lacking


def do(todo: Sequence[Point], folder: Path, world: Any, processes: int) -> dict[str, str]:
    """Run what is missing; name -> reason of what failed or could not be run. On every rank of ``world``, if there is one."""
    for parent in {(folder / point.file).parent for point in todo}:
        parent.mkdir(parents=True, exist_ok=True)
    if world is not None and world.size > 1:
        progress = Overall(sys.stderr if world.rank == 0 else None, [point.cost for point in todo])
        told = [line.text.partition(".h5  failed: ") for line in sweep.sweep(todo, folder, world, True, progress)]
        return {name: reason for name, found, reason in told if found}
    return several(todo, folder, processes)


def several(todo: Sequence[Point], folder: Path, processes: int) -> dict[str, str]:
    """The same in this machine's processes, the dearest first, each run in one of them."""
    progress, failed = Overall(sys.stderr, [point.cost for point in todo]), dict[str, str]()
    left = list[Point]()
    for point in todo:
        if done(point, folder):
            progress.over(point.cost, None)
        else:
            left.append(point)
    if not left:
        return failed
    spawn, begun = multiprocessing.get_context("spawn"), time.monotonic()
    with ProcessPoolExecutor(min(processes, len(left)), mp_context=spawn, initializer=prepare, initargs=(folder,)) as pool:
        jobs = {pool.submit(one, point.name, point.config.toml()): point for point in sorted(left, key=lambda point: -point.cost)}
        try:
            for job in as_completed(jobs):
                point, (what, text) = jobs[job], job.result()
                progress.over(point.cost, 0.0)
                progress.seconds = time.monotonic() - begun
                if what == sweep.FAILED:
                    failed[point.name] = text.removeprefix("failed: ")
        except KeyboardInterrupt:
            for child in multiprocessing.active_children():
                child.terminate()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        finally:
            progress.close()
    return failed


def done(point: Point, folder: Path) -> bool:
    """Whether a run has ended with this configuration, well or because its numbers ran away."""
    path = folder / point.file
    if not path.exists():
        return False
    try:
        attrs = read(path, attributes)
        return attrs.get("status") in ("finished", "failed") and not sweep.difference(point.config, attrs, str(path))
    except UserError:
        return False


def prepare(folder: Path) -> None:
    """Once in every process of the pool."""
    global worker
    worker = sweep.Runs(folder, None, True, Quiet(None, []))


def one(name: str, text: str) -> tuple[str, str]:
    """Run a point in a process of the pool; its configuration comes as text, for classes from files cannot be pickled."""
    config = configuration.experiment(tomllib.loads(text))
    return worker.one(config, Point(name, (), config, 0.0))


class Quiet(Overall):
    """Says nothing."""

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        pass


def array(todo: Sequence[Point], folder: Path, words: Sequence[str], tasks: int | None) -> Path:
    """Write the array job whose tasks call ``python -m benchmarks words --part i/n``; where it is."""
    return slurm.write(todo, folder, words, "grid", tasks, program="benchmarks")

