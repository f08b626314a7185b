"""The count of a sweep: what is finished, what failed and why, and the lines about it."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mpifed.sweeps.grid import Point
from mpifed.sweeps.runs import BUSY, FAILED, FINISHED, Ended, Overall

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
        for reason, names in self.failed.items():
            if len(names) > 1:
                yield Line(f"{len(names)} points failed: {reason}; first: {names[0]}", False)
        failed = [name for names in self.failed.values() for name in names]
        text = f"{self.finished} of {self.total} finished"
        text += f", {self.busy} being written by other runs" if self.busy else ""
        if failed:
            more = f" and {len(failed) - NAMES} more" if len(failed) > NAMES else ""
            text += f", {len(failed)} failed: {'; '.join(failed[:NAMES])}{more}"
        again = f"; {CONTINUE}" if self.finished < self.total else ""
        yield Line(text + again, not failed)
