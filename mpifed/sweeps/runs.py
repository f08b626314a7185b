"""The runs of a sweep: what there is of a point already, a result file for each, and the progress of all of them."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import msgspec

from mpifed.core import signals
from mpifed.core.errors import RunError, UserError, failure
from mpifed.core.files import being_written
from mpifed.data.cache import Cache
from mpifed.experiment import checkpoint
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Experiment
from mpifed.experiment.job import Job
from mpifed.experiment.progress import Progress, duration
from mpifed.experiment.resume import resume
from mpifed.experiment.run import start
from mpifed.mpi.world import World
from mpifed.results.result import read
from mpifed.results.validate import attributes
from mpifed.results.validate import configuration as recorded
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


class Ended(NamedTuple):
    """How a point ended: FINISHED, STOPPED, FAILED or BUSY, a text about it, for FAILED the reason, and its seconds."""

    point: Point
    what: str
    text: str
    seconds: float


class Overall(Progress):
    """The progress of a sweep: points done, and the time left, estimated from the costs and seconds of those done.

    ``lanes`` points run at a time; ``name`` is the one of which ``show`` tells the round.
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

    def over(self, cost: float, seconds: float | None) -> None:
        """Count a point of this cost as done; it took so many seconds (None: there was nothing to run)."""
        self.done += 1
        self.left -= cost
        if seconds is not None:
            self.seconds += seconds
            self.cost += cost
            if self.due():
                self.put(self.head())

    def head(self) -> str:
        if not self.cost:
            return f"{self.done} of {self.total}"
        left = max(self.left, 0.0) * self.seconds / self.cost / self.lanes
        return f"{self.done} of {self.total}, about {duration(left)} left"

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        if self.due():
            self.put(f"{self.head()}; {self.name}: round {round} of at most {rounds}")

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)
            super().note(text)


class Runs:
    """Runs points on the ranks of ``world``, with files in ``folder``; data sets are kept from one to the next."""

    def __init__(self, folder: Path, world: World, force: bool, progress: Overall) -> None:
        self.folder = folder
        self.world = world
        self.force = force
        self.progress = progress
        self.cache = Cache()
        self.stopped = False

    def one(self, point: Point) -> Ended:
        """Run a point, on every rank. Of what comes back, rank 0's ``text`` counts; ``what`` may also be STOP: run no
        more.

        An error fails the point alone if the ranks can continue together; otherwise it is raised.
        """
        begun = time.perf_counter()
        try:
            what, text = self._attempt(point, begun)
        except (UserError, RunError) as mistake:
            # all ranks have agreed on it, or heard of it from rank 0, and stand at the same place
            what, text = FAILED, str(mistake)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also what is no Exception, such as asyncio's CancelledError
            # one rank alone came here: the others are in the middle of a round, and no message brings them out of it
            if self.world.size > 1:
                raise
            what, text = FAILED, failure(0, error)
        return Ended(point, what, text.partition("\n")[0], time.perf_counter() - begun)

    def _attempt(self, point: Point, begun: float) -> tuple[str, str]:
        """How the point ended, and at rank 0 its rounds, seconds and why."""
        path = str(self.folder / point.file)
        what = ""
        saved = before = None
        # asked again here and not only before the sweep: another one in the same folder may have run it meanwhile
        with self.world.agreeing():
            if self.world.first:
                self.progress.name = point.name
                what = STOP if self.stopped or signals.stop_signal else state(point.config, path, self.force)
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


def everywhere(points: Sequence[Point], world: World) -> list[Point]:
    """Rank 0's points, on every rank. UserError where a rank lacks a file that their configurations name."""
    tables = world.share([packed(point) for point in points])
    with world.agreeing():
        if not world.first:
            points = [unpacked(*table) for table in tables]
    return list(points)


def packed(point: Point) -> tuple[str, Any, float]:
    """A point for another process; classes from files cannot be pickled, so its configuration is a table."""
    return point.name, msgspec.to_builtins(point.config), point.cost


def unpacked(name: str, table: Any, cost: float) -> Point:
    """The point that ``packed`` made a tuple of. UserError where this process lacks a file that it names."""
    return Point(name, (), configuration.experiment(table), cost)


def state(config: Experiment, path: str, force: bool) -> str:
    """What to do for a point whose file is ``path``: RUN, RESUME, AGAIN, SKIP or BUSY.

    UserError where the file is not a result, or belongs to another configuration; with ``force``, AGAIN.
    """
    if not os.path.lexists(path):
        return RUN
    try:
        # an empty file is a name that a run has claimed, or that a run left which was killed before it wrote
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
    """The first key in which the configuration of a result differs, but for patience and [checkpoint]; empty: none."""
    # compared as experiments, not as texts: defaults that a file does not have, and other orders, make no difference
    before = configuration.experiment(recorded(attrs.get("config", ""), path))
    found = next(configuration.differences(before, config, ("patience", "checkpoint")), None)
    return "" if found is None else "{} is {} there and {} here".format(*found)
