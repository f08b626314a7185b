"""What a feature is: a part of a run beyond the plain rounds."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from mpifed.core.promises import NO_REASONS, NOTHING_KEPT, Keeps, Reasons
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.rule import Counted, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import Selector
from mpifed.federation.peers.neighbourhood import Links, Neighbourhood
from mpifed.federation.schedule import Schedule
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup

ByClient = dict[str, Array]  # numbers of each client (m,), by name
Looks = dict[str, Callable[[Array], ByClient]]  # table of the result -> its numbers at the server's model (n,)
MakeHost = Callable[[Setup, Dataset, tuple[int, int], int], Host]  # …, clients lo <= i < hi, how many a round calls


class Housing(NamedTuple):
    """Where the clients of a rank live: the ranks have those between ``cuts``, ``make`` makes more hosts, and the run
    has ``rounds`` to go."""

    cuts: list[int]
    make: MakeHost
    rounds: int

    def part(self, host: Host, count: int) -> tuple[int, int]:
        """Which of ``count`` other things are those of the rank of ``host``: lo <= k < hi."""
        ranks = len(self.cuts) - 1
        rank = self.cuts.index(host.lo)
        return rank * count // ranks, (rank + 1) * count // ranks


class Feature:
    """A part of a run beyond the plain rounds, made only for studies that have it. What it does not override is left
    as it is.

    Its rules are judged where it is there: ``tables`` when an experiment is read, ``rules`` before data are loaded,
    ``counted`` once the number of clients is known. Then it is asked in the order of the methods below: on every rank,
    but where they say that they are about the server.

        >>> class Saying(mpifed.Feature):
        ...     def notes(self):
        ...         return ["this run says so"]
        >>> mpifed.run(features=["saying.py:Saying"], algorithm="gd", rounds=1).attrs["notes"]
        'this run says so'
    """

    keeps: ClassVar[Keeps] = NOTHING_KEPT  # promises that hold with it
    unkept: ClassVar[Reasons] = NO_REASONS  # why others do not, and what would be right
    federation: ClassVar[type[Federation] | None] = None  # in the place of a server
    tables: ClassVar[Sequence[Rule[Experiment]]] = ()
    rules: ClassVar[Sequence[Rule[Experiment]]] = ()
    counted: ClassVar[Sequence[Rule[Counted]]] = ()

    def __init__(self, config: Experiment) -> None:
        self.config = config

    def data(self, data: Dataset) -> Dataset:
        """The data of the clients that train."""
        return data

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        """What server and hosts agree on, once data are loaded. UserError for what does not go together."""
        return setup

    def schedule(self, setup: Setup, data: Dataset, selector: Selector) -> Schedule | None:
        """When clients take part and how time passes, where that is not as in a plain run."""
        return None

    def hosts(self, kernels: str) -> MakeHost | None:
        """What makes hosts that compute with these kernels, where the usual one does not."""
        return None

    def host(self, host: Host, housing: Housing) -> None:
        """Put what happens where clients live into ``host``: stages, verbs, services, keepers, views, wraps."""

    def linked(self, link: Callable[[Neighbourhood], Links]) -> None:
        """Link what hosts exchange with each other, where they are on several ranks."""

    def server(self, fed: Federation) -> None:
        """Put what happens at the server into ``fed``: stages of requests, endings of rounds, counts of clients."""

    def attributes(self, redrawn: int) -> dict[str, Any]:
        """Attributes of the result; ``redrawn`` rounds of it are run again."""
        return {}

    def notes(self) -> Iterable[str]:
        """Sentences that a user should read before round one, and that the result keeps."""
        return ()

    def looks(self, fed: Federation) -> Looks:
        """What is evaluated of each client at the server's model beside f, by the table of the result."""
        return {}

    def before(self, fed: Federation) -> dict[str, Any]:
        """What the result gets before the first round: "certificate"."""
        return {}

    def after(self, fed: Federation, x: Array) -> dict[str, Any]:
        """What the result gets after the last round, which left the model x (n,): "certificate", "personal" models."""
        return {}

    def clients(self, tables: dict[str, ByClient]) -> dict[str, ByClient]:
        """The tables /clients, … of the result when the run is over."""
        return tables
