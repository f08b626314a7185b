"""The runs of a sweep: the state of a point on disk, a result file for each, and the progress of all of them."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import msgspec

from mpifed.core import signals
from mpifed.core.errors import RunError, UserError, failure_message
from mpifed.core.files import is_being_written
from mpifed.data.cache import Cache
from mpifed.experiment import checkpoint
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Experiment, Job
from mpifed.experiment.progress import Progress, format_duration
from mpifed.experiment.resume import resume
from mpifed.experiment.run import start
from mpifed.mpi.world import World
from mpifed.results.result import read_result_file
from mpifed.results.validate import parse_configuration as recorded
from mpifed.results.validate import read_attributes
from mpifed.sweeps.grid import Point

RUN = "run"
RESUME = "resume"
AGAIN = "start again"
SKIP = "skip"
BUSY = "being written by another run"

FINISHED = "finished"
STOPPED = "stopped"
FAILED = "failed"
STOP = "no more"


class PointEnd(NamedTuple):
    """The end of a point: FINISHED, STOPPED, FAILED or BUSY, a text (for FAILED the reason), and its seconds."""

    point: Point
    status: str
    text: str
    seconds: float


class SweepProgress(Progress):
    """The progress of a sweep: points done, and the time left, estimated from the costs and seconds of those done.

    ``lanes`` points run at a time; ``name`` is the one whose rounds ``show`` prints.
    """

    def __init__(self, stream: TextIO | None, costs: Sequence[float]) -> None:
        super().__init__(stream)
        self.total = len(costs)
        self.done = 0
        self.left = sum(costs)
        self.seconds = self.cost = 0.0  # of the points that ran
        self.lanes = 1
        self.name = ""
        self.notes: list[str] = []

    def count_end(self, cost: float, seconds: float | None) -> None:
        """Count a point of this cost as done; it took ``seconds`` (None: there was nothing to run)."""
        self.done += 1
        self.left -= cost
        if seconds is not None:
            self.seconds += seconds
            self.cost += cost
            if self.due():
                self.put(self.head())

    def head(self) -> str:
        """Return the number of points done and the time left."""
        if not self.cost:
            return f"{self.done} of {self.total}"
        left = max(self.left, 0.0) * self.seconds / self.cost / self.lanes
        return f"{self.done} of {self.total}, about {format_duration(left)} left"

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        if self.due():
            self.put(f"{self.head()}; {self.name}: round {round} of at most {rounds}")

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
            super().note(text)


class PointRunner:
    """Runs points on the ranks of ``world``, with files in ``folder``; data sets stay cached between them."""

    def __init__(self, folder: Path, world: World, force: bool, progress: SweepProgress) -> None:
        self.folder = folder
        self.world = world
        self.force = force
        self.progress = progress
        self.cache = Cache()
        self.stopped = False

    def run_point(self, point: Point) -> PointEnd:
        """Run a point, on every rank. At rank 0 ``text`` says how it ended; ``what`` may be STOP: run no more.

        An error fails the point alone if the ranks can continue together; otherwise it is raised.
        """
        begun = time.perf_counter()
        try:
            what, text = self._attempt(point, begun)
        except (UserError, RunError) as mistake:
            # all ranks have agreed on it, or learned of it from rank 0, and are at the same point of the program
            what, text = FAILED, str(mistake)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # including what is no Exception, such as asyncio's CancelledError
            # only this rank failed: the others are in the middle of a round, and no message can end it
            if self.world.size > 1:
                raise
            what, text = FAILED, failure_message(0, error)
        return PointEnd(point, what, text.partition("\n")[0], time.perf_counter() - begun)

    def _attempt(self, point: Point, begun: float) -> tuple[str, str]:
        """Run a point; return how it ended, and at rank 0 its rounds, seconds and reason."""
        path = str(self.folder / point.file)
        what = ""
        saved = before = None
        # tested again, not only before the sweep, as another sweep in this folder may have run it since
        with self.world.agreeing():
            if self.world.first:
                self.progress.name = point.name
                what = STOP if self.stopped or signals.stop_signal else next_action(point.config, path, self.force)
                if what == RESUME:
                    _, saved, before = resume(path, ())
        what, saved = self.world.share((what, saved))
        if what in (STOP, BUSY):
            return what, what
        if what == SKIP:
            return FINISHED, "finished by another run"
        recorder = start(Job(point.config, path, what != RUN, saved, before), self.world, self.progress, self.cache)
        if recorder is None:
            return FINISHED, ""
        status, why = recorder.ended
        self.stopped = status == STOPPED
        rounds = f"{recorder.count - 1} rounds" + (f" ({saved.round} before)" if saved is not None else "")
        return status, f"{rounds}  {time.perf_counter() - begun:.3g} s  {status} ({why})"


def share_points(points: Sequence[Point], world: World) -> list[Point]:
    """Return rank 0's points on every rank; raise UserError if a rank lacks a file that a configuration names."""
    tables = world.share([pack_point(point) for point in points])
    with world.agreeing():
        if not world.first:
            points = [unpack_point(*table) for table in tables]
    return list(points)


def pack_point(point: Point) -> tuple[str, Any, float]:
    """Return a point as a tuple that can be pickled: its configuration is a table, without classes of the user."""
    return point.name, msgspec.to_builtins(point.config), point.cost


def unpack_point(name: str, table: Any, cost: float) -> Point:
    """Return the point of a tuple of ``pack_point``; raise UserError if this process lacks a file that it names."""
    return Point(name, (), configuration.experiment(table), cost)


def next_action(config: Experiment, path: str, force: bool) -> str:
    """Return what to do for a point whose file is ``path``: RUN, RESUME, AGAIN, SKIP or BUSY.

    Raise UserError if the file is not a result, or of another configuration; with ``force``, return AGAIN.
    """
    if not os.path.lexists(path):
        return RUN
    try:
        # an empty file was created by a run that has not written yet, or was killed before it wrote
        if os.path.isfile(path) and not os.path.getsize(path):
            return BUSY if is_being_written(Path(path)) else AGAIN
        attrs = read_result_file(path, read_attributes)
        if other := first_difference(config, attrs, path):
            raise UserError(
                f"{path} is of another configuration: {other}; say --force to overwrite it or -o for another folder"
            )
        if attrs.get("status") == "finished":
            return SKIP
        if is_being_written(Path(path)):
            return BUSY
        return AGAIN if checkpoint.read_checkpoint(path) is None else RESUME
    except UserError:
        if force:
            return AGAIN
        raise


def first_difference(config: Experiment, attrs: dict[str, Any], path: str) -> str:
    """Return the first key in which a result's configuration differs, without patience and [checkpoint], or ""."""
    # compared as experiments, not as texts: missing defaults and other orders make no difference
    before = configuration.experiment(recorded(attrs.get("config", ""), path))
    first = next(configuration.differences(before, config, ("patience", "checkpoint")), None)
    return "" if first is None else "{} is {} there and {} here".format(*first)
