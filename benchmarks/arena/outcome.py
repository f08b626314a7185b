"""All that the page is about."""

from typing import NamedTuple

from benchmarks.arena import study
from benchmarks.arena.plan import Plan
from benchmarks.arena.scores import Final, names


class Outcome(NamedTuple):
    """All that the page is about: the final costs of a plan's two parts, and of both together."""

    called: str
    plan: Plan
    tuning: Final
    held: Final

    @property
    def names(self) -> list[str]:
        return names(self.plan, study.TUNING) + names(self.plan, study.HELD)

    @property
    def both(self) -> Final:
        return self.tuning | self.held
