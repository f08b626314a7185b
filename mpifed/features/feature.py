"""What a feature is: a part of a run beyond the plain rounds."""

from collections.abc import Callable, Sequence
from typing import ClassVar, NamedTuple

from mpifed.core.promises import NO_REASONS, NOTHING_KEPT, Keeps, Reasons
from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.features.rule import Counted, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.peers.neighbourhood import Links, Neighbourhood
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup

ByClient = dict[str, Array]  # numbers of each client (m,), by name
Looks = dict[str, Callable[[Array], ByClient]]  # table of the result -> its numbers at the server's model (n,)


class Housing(NamedTuple):
    """Where the clients of a rank live: ``lo`` <= i < ``hi`` of those between ``cuts``, and what makes more hosts."""

    setup: Setup
    lo: int
    hi: int
    cuts: list[int]
    make: Callable[[Setup, Dataset, tuple[int, int], int], Host]

    def part(self, count: int) -> tuple[int, int]:
        """Which of ``count`` other things are this rank's: lo <= k < hi."""
        ranks = len(self.cuts) - 1
        rank = self.cuts.index(self.lo)
        return rank * count // ranks, (rank + 1) * count // ranks


class Feature:
    """A part of a run beyond the plain rounds, made only for studies that have it. What it does not override is left
    as it is.

    Its rules are judged where it is there: ``tables`` when an experiment is read, ``rules`` before data are loaded,
    ``counted`` once the number of clients is known.
    """

    keeps: ClassVar[Keeps] = NOTHING_KEPT  # promises that hold with it
    unkept: ClassVar[Reasons] = NO_REASONS  # why others do not, and what would be right
    federation: ClassVar[type[Federation] | None] = None  # in the place of a server
    tables: ClassVar[Sequence[Rule[Experiment]]] = ()
    rules: ClassVar[Sequence[Rule[Experiment]]] = ()
    counted: ClassVar[Sequence[Rule[Counted]]] = ()

    def __init__(self, config: Experiment) -> None:
        self.config = config

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        """What server and hosts agree on, once data are loaded. UserError for what does not go together."""
        return setup

    def data(self, data: Dataset) -> Dataset:
        """The data of the clients that train."""
        return data

    def server(self, fed: Federation) -> None:
        """Put what happens at the server into ``fed``: endings of rounds, counts of clients."""

    def host(self, host: Host, housing: Housing) -> None:
        """Put what happens where clients live into ``host``: verbs, services, keepers."""

    def linked(self, link: Callable[[Neighbourhood], Links]) -> None:
        """Link what hosts exchange with each other, where they are on several ranks."""

    def looks(self, fed: Federation) -> Looks:
        """What is evaluated of each client at the server's model beside f, by the table of the result."""
        return {}

    def clients(self, tables: dict[str, ByClient]) -> dict[str, ByClient]:
        """The tables /clients, … of the result when the run is over."""
        return tables
