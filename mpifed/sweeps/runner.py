"""Many runs in one launch: what is to be done, by which processes, how it ends, and the lines to print about it."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from mpifed.core.errors import UserError, reason
from mpifed.experiment.progress import duration
from mpifed.mpi.world import World
from mpifed.sweeps import workers
from mpifed.sweeps.cost import BASIS
from mpifed.sweeps.grid import Point
from mpifed.sweeps.runs import BUSY, FAILED, FINISHED, SKIP, STOP, Ended, Overall, Runs, everywhere, state

CONTINUE = "run the same command again to continue"
NAMES = 5  # most names of failed points in the summary


class Line(NamedTuple):
    """A line to print about one point or all of them; ``fine``: not a failure."""

    text: str
    fine: bool = True


class Tally:
    """Counts how the points of a sweep end. The same failure is told when it first happens, and then its number."""

    def __init__(self, points: Sequence[Point], progress: Overall) -> None:
        self.total = len(points)
        self.progress = progress
        self.finished = self.busy = 0
        self.failed: dict[str, list[str]] = {}  # reason -> names of points

    def skip(self, point: Point) -> None:
        self.finished += 1
        self.progress.over(point.cost, None)

    @property
    def complete(self) -> bool:
        return self.finished + sum(map(len, self.failed.values())) == self.total

    def already(self) -> Iterator[Line]:
        if self.finished:
            yield Line(f"{self.finished} of {self.total} points are finished already")

    def over(self, ended: Ended) -> Iterator[Line]:
        """Count a point that ended."""
        point, what, text, seconds = ended
        self.progress.over(point.cost, seconds)
        self.finished += what == FINISHED
        self.busy += what == BUSY
        if what != FAILED:
            self.progress.close()
            yield Line(f"{point.file}  {text}")
            return
        names = self.failed.setdefault(text, [])
        names.append(point.name)
        if len(names) == 1:
            self.progress.close()
            yield Line(f"{point.file}  failed: {text}", False)

    def summary(self) -> Iterator[Line]:
        """12 points failed: …; first: …, for every reason of several; 58 of 60 finished, 2 failed: …; how to go on."""
        self.progress.close()
        for why, names in self.failed.items():
            if len(names) > 1:
                yield Line(f"{len(names)} points failed: {why}; first: {names[0]}", False)
        failed = [name for names in self.failed.values() for name in names]
        text = f"{self.finished} of {self.total} finished"
        text += f", {self.busy} being written by other runs" if self.busy else ""
        if failed:
            more = f" and {len(failed) - NAMES} more" if len(failed) > NAMES else ""
            text += f", {len(failed)} failed: {'; '.join(failed[:NAMES])}{more}"
        again = f"; {CONTINUE}" if self.finished < self.total else ""
        yield Line(text + again, not failed)


class Layout(NamedTuple):
    """How points share the machine; the files and bits do not depend on it.

    ``jobs`` processes run one point each (None: as many as there are cores; 1: this process runs them in turn). Under
    MPI all ranks run one point after another or, with ``each``, groups of so many hosts and a server run one each.
    """

    jobs: int | None = 1
    each: int | None = None


def listing(points: Sequence[Point], folder: Path, force: bool) -> Iterator[Line]:
    """What a sweep would do: file, action, estimated cost and overrides of each point.

    UserError after them where data are missing.
    """
    states = [state(point.config, str(folder / point.file), force) for point in points]
    pairs = list(zip(points, states, strict=True))
    rows = [(point.file, what, duration(point.cost), " ".join(point.words)) for point, what in pairs]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield Line("  ".join(map(str.ljust, row, widths)).rstrip())
    todo = [point for point, what in pairs if what != SKIP]
    cost = sum(point.cost for point in todo)
    yield Line(
        f"{len(points)} points; running them takes about {duration(cost)} on one core, a rough estimate from {BASIS}"
    )
    look_for_data(todo)


def look_for_data(points: Sequence[Point]) -> None:
    """UserError where data of a point are missing, with the number of such points."""
    reasons: dict[bytes, str] = {}
    lacking: list[tuple[Point, str]] = []
    for point in points:
        # points mostly share their data, and to look for files on a parallel file system takes time
        key = msgspec.json.encode(point.config.data)
        if key not in reasons:
            try:
                point.config.data.check()
                reasons[key] = ""
            except UserError as mistake:
                reasons[key] = str(mistake)
        if reasons[key]:
            lacking.append((point, reasons[key]))
    if lacking:
        first, why = lacking[0]
        count = f"{len(lacking)} of {len(points)} points lack their data, first {first.name}: "
        raise UserError((count if len(points) > 1 else "") + why)


def sweep(
    points: Sequence[Point], folder: Path, world: World, force: bool, progress: Overall, layout: Layout
) -> Iterator[Line]:
    """Run the points that are not finished, on every rank; rank 0 alone has ``points``, and yields lines about them.

    A point that fails does not stop the others. A signal stops the sweep after the present round. UserError, on every
    rank and before anything runs, where an existing file must not be overwritten or data are missing.
    """
    tally = Tally(points, progress)
    runs = Runs(folder, world, force, progress)
    todo = missing(points, runs, tally, lambda point: state(point.config, str(folder / point.file), force) == SKIP)
    yield from tally.already()
    for ended in carried_out(todo, runs, layout):
        yield from tally.over(ended)
    yield from tally.summary()


def missing(points: Sequence[Point], runs: Runs, tally: Tally, done: Callable[[Point], bool]) -> list[Point]:
    """The points of rank 0 that are not done, on every rank; their folder is there, and so are their data."""
    todo: list[Point] = []
    with runs.world.agreeing():
        if points:
            make_folder(runs.folder)
        for point in points:
            if done(point):
                tally.skip(point)
            else:
                todo.append(point)
        look_for_data(todo)
    return todo


def carried_out(todo: Sequence[Point], runs: Runs, layout: Layout) -> Iterator[Ended]:
    """Run the points of rank 0, on every rank; rank 0 yields how each of them ended."""
    if layout.each is not None:
        # only here: groups import mpi4py, which a sweep in processes does without
        from mpifed.sweeps.rank_groups import in_groups

        yield from in_groups(todo, runs, layout.each)
    elif runs.world.size == 1 and (jobs := workers.processes(todo, layout.jobs)) > 1:
        yield from workers.side_by_side(todo, runs, jobs)
    else:
        for point in everywhere(todo, runs.world):
            ended = runs.one(point)
            if ended.what == STOP:
                return
            if runs.world.first:
                yield ended


def make_folder(folder: Path) -> None:
    """A folder for results, if it is not there. UserError where it cannot be created."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UserError(f"-o {folder} is wrong: this folder cannot be created: {reason(error)}") from None
