"""Many runs in one launch: which are left, by which processes they run, how they end, and the lines to print."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from mpifed.core.errors import UserError, reason
from mpifed.experiment.progress import format_duration
from mpifed.mpi.world import World
from mpifed.sweeps import workers
from mpifed.sweeps.cost import BASIS
from mpifed.sweeps.grid import Point
from mpifed.sweeps.runs import (
    BUSY,
    FAILED,
    FINISHED,
    SKIP,
    STOP,
    PointEnd,
    PointRunner,
    SweepProgress,
    next_action,
    share_points,
)

CONTINUE = "run the same command again to continue"
NAMES = 5  # most failed points named in the summary


class ReportLine(NamedTuple):
    """A line to print about one point or all of them; ``fine``: not a failure."""

    text: str
    fine: bool = True


class SweepTally:
    """Counts how the points of a sweep end; a repeated failure is reported once, and then counted."""

    def __init__(self, points: Sequence[Point], progress: SweepProgress) -> None:
        self.total = len(points)
        self.progress = progress
        self.finished = self.busy = 0
        self.failed: dict[str, list[str]] = {}  # reason -> names of points

    def skip(self, point: Point) -> None:
        self.finished += 1
        self.progress.count_end(point.cost, None)

    @property
    def complete(self) -> bool:
        return self.finished + sum(map(len, self.failed.values())) == self.total

    def report_finished(self) -> Iterator[ReportLine]:
        """Yield a line if points were finished before."""
        if self.finished:
            yield ReportLine(f"{self.finished} of {self.total} points are finished already")

    def count_end(self, ended: PointEnd) -> Iterator[ReportLine]:
        """Count a point that ended; yield the line about it."""
        point, what, text, seconds = ended
        self.progress.count_end(point.cost, seconds)
        self.finished += what == FINISHED
        self.busy += what == BUSY
        if what != FAILED:
            self.progress.close()
            yield ReportLine(f"{point.file}  {text}")
            return
        names = self.failed.setdefault(text, [])
        names.append(point.name)
        if len(names) == 1:
            self.progress.close()
            yield ReportLine(f"{point.file}  failed: {text}", False)

    def summary(self) -> Iterator[ReportLine]:
        """Yield a line for each repeated failure, and one on how many points finished and how to continue."""
        self.progress.close()
        for why, names in self.failed.items():
            if len(names) > 1:
                yield ReportLine(f"{len(names)} points failed: {why}; first: {names[0]}", False)
        failed = [name for names in self.failed.values() for name in names]
        text = f"{self.finished} of {self.total} finished"
        text += f", {self.busy} being written by other runs" if self.busy else ""
        if failed:
            more = f" and {len(failed) - NAMES} more" if len(failed) > NAMES else ""
            text += f", {len(failed)} failed: {'; '.join(failed[:NAMES])}{more}"
        again = f"; {CONTINUE}" if self.finished < self.total else ""
        yield ReportLine(text + again, not failed)


class SweepLayout(NamedTuple):
    """The way in which points share the machine; files and bits do not depend on it.

    ``jobs`` processes run one point each (None: as many as there are cores; 1: this process runs them in turn). Under
    MPI all ranks run one point after another or, with ``each``, groups of so many hosts and a server run one each.
    """

    jobs: int | None = 1
    each: int | None = None


def list_plan(points: Sequence[Point], folder: Path, force: bool) -> Iterator[ReportLine]:
    """Yield the plan of a sweep: file, action, cost and overrides of a point; then UserError if data are missing."""
    states = [next_action(point.config, str(folder / point.file), force) for point in points]
    pairs = list(zip(points, states, strict=True))
    rows = [(point.file, what, format_duration(point.cost), " ".join(point.words)) for point, what in pairs]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield ReportLine("  ".join(map(str.ljust, row, widths)).rstrip())
    todo = [point for point, what in pairs if what != SKIP]
    cost = sum(point.cost for point in todo)
    yield ReportLine(
        f"{len(points)} points; running them takes about {format_duration(cost)} on one core, a rough estimate from "
        f"{BASIS}"
    )
    check_data(todo)


def check_data(points: Sequence[Point]) -> None:
    """Raise UserError if data of a point are missing, with the number of such points."""
    reasons: dict[bytes, str] = {}
    incomplete: list[tuple[Point, str]] = []
    for point in points:
        # points mostly share their data, and searching a parallel file system is slow
        key = msgspec.json.encode(point.config.data)
        if key not in reasons:
            try:
                point.config.data.check()
                reasons[key] = ""
            except UserError as mistake:
                reasons[key] = str(mistake)
        if reasons[key]:
            incomplete.append((point, reasons[key]))
    if incomplete:
        first, why = incomplete[0]
        count = f"{len(incomplete)} of {len(points)} points lack their data, first {first.name}: "
        raise UserError((count if len(points) > 1 else "") + why)


def sweep(
    points: Sequence[Point], folder: Path, world: World, force: bool, progress: SweepProgress, layout: SweepLayout
) -> Iterator[ReportLine]:
    """Run the points that are not finished, on every rank; rank 0 alone has ``points``, and yields lines about them.

    A point that fails does not stop the others. A signal stops the sweep after the present round. Raise UserError, on
    every rank and before anything runs, if an existing file must not be overwritten or data are missing.
    """
    tally = SweepTally(points, progress)
    runs = PointRunner(folder, world, force, progress)
    todo = unfinished_points(
        points, runs, tally, lambda point: next_action(point.config, str(folder / point.file), force) == SKIP
    )
    yield from tally.report_finished()
    for ended in run_points(todo, runs, layout):
        yield from tally.count_end(ended)
    yield from tally.summary()


def unfinished_points(
    points: Sequence[Point], runs: PointRunner, tally: SweepTally, done: Callable[[Point], bool]
) -> list[Point]:
    """Return, on every rank, the points of rank 0 that are not done; create their folder and check their data."""
    todo: list[Point] = []
    with runs.world.agreeing():
        if points:
            make_folder(runs.folder)
        for point in points:
            if done(point):
                tally.skip(point)
            else:
                todo.append(point)
        check_data(todo)
    return todo


def run_points(todo: Sequence[Point], runs: PointRunner, layout: SweepLayout) -> Iterator[PointEnd]:
    """Run the points of rank 0, on every rank; rank 0 yields how each of them ended."""
    if layout.each is not None:
        # imported here, because groups import mpi4py, which a sweep in processes does not need
        from mpifed.sweeps.rank_groups import run_in_groups

        yield from run_in_groups(todo, runs, layout.each)
    elif runs.world.size == 1 and (jobs := workers.process_count(todo, layout.jobs)) > 1:
        yield from workers.run_in_processes(todo, runs, jobs)
    else:
        for point in share_points(todo, runs.world):
            ended = runs.run_point(point)
            if ended.status == STOP:
                return
            if runs.world.first:
                yield ended


def make_folder(folder: Path) -> None:
    """Create a folder for results, if it is not there; raise UserError if that is impossible."""
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError as error:
        raise UserError(f"-o {folder} is wrong: this folder cannot be created: {reason(error)}") from None
