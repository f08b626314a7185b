"""Many runs in one launch: the points of a sweep one after the other, each with its own result file."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mpifed.core import signals
from mpifed.core.errors import Trouble, UserError, failure, reason
from mpifed.core.files import being_written
from mpifed.core.toml import flat, toml_value
from mpifed.data.cache import Cache
from mpifed.experiment import checkpoint
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Experiment
from mpifed.experiment.job import Job
from mpifed.experiment.progress import Overall, duration
from mpifed.experiment.resume import resume
from mpifed.experiment.run import start
from mpifed.mpi.world import World
from mpifed.results.result import read
from mpifed.results.validate import attributes
from mpifed.results.validate import configuration as recorded
from mpifed.sweeps.grid import Point

RUN, RESUME, AGAIN, SKIP, BUSY = "run", "resume", "start again", "skip", "being written by another run"  # before
FINISHED, STOPPED, FAILED, STOP = "finished", "stopped", "failed", "no more"  # and after


class Line(NamedTuple):
    """A line to print about one point or all of them; ``fine``: not a failure."""

    text: str
    fine: bool = True


def state(config: Experiment, path: str, force: bool) -> str:
    """What to do for a point whose file is ``path``: RUN, RESUME, AGAIN, SKIP or BUSY.

    UserError where the file is not a result, or belongs to another configuration; with ``force``, AGAIN.
    """
    if not os.path.lexists(path):
        return RUN
    try:
        if os.path.isfile(path) and not os.path.getsize(path):
            return BUSY if being_written(Path(path)) else AGAIN
        attrs = read(path, attributes)
        if other := difference(config, attrs, path):
            raise UserError(
                f"{path} is of another configuration: {other}; say --force to overwrite it or -o for another folder"
            )
        if attrs.get("status") == "finished":
            return SKIP
        if being_written(Path(path)):
            return BUSY
        return AGAIN if checkpoint.find(path) is None else RESUME
    except UserError:
        if force:
            return AGAIN
        raise


def difference(config: Experiment, attrs: dict[str, Any], path: str) -> str:
    """The first key, except in [checkpoint], in which the configuration of a result differs; empty if there is none."""
    before = configuration.experiment(recorded(attrs.get("config", ""), path))
    old, new = (flat(msgspec.to_builtins(one)) for one in (before, config))
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key) and not key.startswith("checkpoint."):
            return f"{key} is {toml_value(old.get(key))} there and {toml_value(new.get(key))} here"
    return ""


def listing(points: Sequence[Point], folder: Path, force: bool) -> Iterator[Line]:
    """What a sweep would do: file, action, estimated cost and overrides of each point."""
    rows = [
        (point.file, state(point.config, str(folder / point.file), force), duration(point.cost), " ".join(point.words))
        for point in points
    ]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield Line("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
    todo = sum(point.cost for point, row in zip(points, rows, strict=True) if row[1] != SKIP)
    yield Line(f"{len(points)} points; running them takes at most {duration(todo)} on one core, by a rough estimate")


def sweep(points: Sequence[Point], folder: Path, world: World, force: bool, progress: Overall) -> Iterator[Line]:
    """Run the points that are not finished, on every rank; rank 0 alone has ``points``, and yields lines about them.

    A point that fails does not stop the others. A signal stops the sweep after the present round. UserError, on every
    rank and before anything runs, where an existing file must not be overwritten.
    """
    todo, failed, busy = list[Point](), list[str](), 0
    with world.agreeing():
        if points:
            make_folder(folder)
        for point in points:
            if state(point.config, str(folder / point.file), force) == SKIP:
                progress.over(point.cost, None)
            else:
                todo.append(point)
    finished = len(points) - len(todo)
    if finished:
        yield Line(f"{finished} of {len(points)} points are finished already")
    runs = Runs(folder, world, force, progress)
    for k, config in enumerate(everywhere(todo, world)):
        begun = time.monotonic()
        what, text = runs.one(config, todo[k] if todo else None)
        if what == STOP:
            break
        if todo:
            progress.over(todo[k].cost, time.monotonic() - begun)
            finished += what == FINISHED
            busy += what == BUSY
            if what == FAILED:
                failed.append(todo[k].name)
            progress.close()
            yield Line(f"{todo[k].file}  {text}", what != FAILED)
    yield summary(len(points), finished, busy, failed)


def everywhere(points: Sequence[Point], world: World) -> list[Experiment]:
    """The configurations of rank 0's points, on every rank. UserError where a rank lacks a file that they name."""
    configs = [point.config for point in points]
    tables = world.share([msgspec.to_builtins(config) for config in configs])
    with world.agreeing():
        configs = configs or [configuration.experiment(table) for table in tables]
    return configs


def make_folder(folder: Path) -> None:
    """A folder for results, if it is not there. UserError where it cannot be created."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UserError(f"-o {folder} is wrong: this folder cannot be created: {reason(error)}") from None


def summary(total: int, finished: int, busy: int, failed: Sequence[str]) -> Line:
    """58 of 60 finished, 2 failed: …; and how to continue."""
    text = f"{finished} of {total} finished"
    text += f", {busy} being written by other runs" if busy else ""
    text += f", {len(failed)} failed: {'; '.join(failed)}" if failed else ""
    return Line(text + ("; run the same command again to continue" if finished < total else ""), not failed)


class Runs:
    """Runs the points of a sweep on the ranks of ``world``; data sets are kept from one to the next."""

    def __init__(self, folder: Path, world: World, force: bool, progress: Overall) -> None:
        self.folder, self.world, self.force, self.progress = folder, world, force, progress
        self.cache, self.stopped = Cache(), False

    def one(self, config: Experiment, point: Point | None) -> tuple[str, str]:
        """Run a point, given on rank 0: FINISHED, STOPPED, FAILED, BUSY or STOP (run no more), and a line about it.

        An error fails the point alone if the ranks can continue together; otherwise it is raised.
        """
        path, what, saved, before = "", "", None, None
        begun = time.perf_counter()
        try:
            with self.world.agreeing():
                if point is not None:
                    path, self.progress.name = str(self.folder / point.file), point.name
                    what = STOP if self.stopped or signals.stop_signal else state(config, path, self.force)
                    if what == RESUME:
                        _, saved, before = resume(path, ())
            path, what, saved = self.world.share((path, what, saved))
            if what in (STOP, BUSY):
                return what, what
            if what == SKIP:
                return FINISHED, "finished by another run"
            job = Job(config, path, what != RUN, saved, before)
            recorder = start(job, self.world, self.progress, self.cache)
        except (UserError, Trouble) as mistake:
            return FAILED, "failed: " + str(mistake).partition("\n")[0]
        except Exception as mistake:
            if self.world.size > 1:
                raise
            return FAILED, failure(0, mistake).partition("\n")[0]
        if recorder is None:
            return "", ""
        status, why = recorder.ended
        self.stopped = status == STOPPED
        rounds = f"{recorder.count - 1} rounds" + (f" ({saved.round} before)" if saved is not None else "")
        return status, f"{rounds}  {time.perf_counter() - begun:.3g} s  {status} ({why})"
