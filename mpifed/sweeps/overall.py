"""The progress of many runs: one line for all of them."""

from collections.abc import Sequence
from typing import TextIO

from mpifed.experiment.progress import Progress, duration


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
        self.notes: set[str] = set()

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
        """12 of 60, about 3 min left."""
        if not self.cost:
            return f"{self.done} of {self.total}"
        left = max(self.left, 0.0) * self.seconds / self.cost / self.lanes
        return f"{self.done} of {self.total}, about {duration(left)} left"

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        if self.due():
            self.put(f"{self.head()}; {self.name}: round {round} of at most {rounds}")

    def note(self, text: str) -> None:
        """Write a message on a line of its own, once for all points."""
        if text not in self.notes:
            self.notes.add(text)
            super().note(text)
