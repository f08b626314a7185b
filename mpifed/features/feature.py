"""Base class of features, the parts of a run beyond the plain rounds."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, NamedTuple

from mpifed.core.promises import NO_REASONS, NOTHING_SUPPORTED, Reasons, Supports
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.rule import LoadedSettings, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import Selector
from mpifed.federation.peers.neighbourhood import HostLinks, Neighbourhood
from mpifed.federation.schedule import Schedule
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec

ClientTable = dict[str, Array]  # numbers of each client (m,), by name
Evaluators = dict[str, Callable[[Array], ClientTable]]  # table of the result -> its numbers at the server's model (n,)
MakeHost = Callable[[RunSpec, Dataset, tuple[int, int], int], Host]  # …, clients lo <= i < hi, how many a round calls


class HostDivision(NamedTuple):
    """Division of the clients into hosts: ``cuts`` bound the clients of each rank, ``make`` makes further hosts, and
    ``rounds`` rounds are to run."""

    cuts: list[int]
    make: MakeHost
    rounds: int

    def split_range(self, host: Host, count: int) -> tuple[int, int]:
        """Return the range lo <= k < hi of ``count`` other things that belongs to the rank of ``host``."""
        ranks = len(self.cuts) - 1
        rank = self.cuts.index(host.lo)
        return rank * count // ranks, (rank + 1) * count // ranks


class Plugin:
    """Base class of parts of a run beyond the plain rounds, made only for studies that have them.

    A method that it does not override changes nothing. Its rules are judged three times: ``tables`` when an experiment
    is read, ``rules`` before data are loaded, ``counted`` once the number of clients is known. Then a run calls the
    methods below in their order, on every rank; those about the server on rank 0 alone.

        >>> class Saying(mpifed.Plugin):
        ...     def notes(self):
        ...         return ["this run says so"]
        >>> mpifed.run(features=["saying.py:Saying"], algorithm="gd", rounds=1).attrs["notes"]
        'this run says so'
    """

    supports: ClassVar[Supports] = NOTHING_SUPPORTED  # promises that hold with this feature
    unsupported: ClassVar[Reasons] = NO_REASONS  # why other promises do not hold, and what would be right
    federation: ClassVar[type[Federation] | None] = None  # in place of a server, as on graphs
    tables: ClassVar[Sequence[Rule[Experiment]]] = ()
    rules: ClassVar[Sequence[Rule[Experiment]]] = ()
    counted: ClassVar[Sequence[Rule[LoadedSettings]]] = ()

    def __init__(self, config: Experiment) -> None:
        self.config = config

    def data(self, data: Dataset) -> Dataset:
        """Return the data of the clients that train."""
        return data

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        """Return the setup of server and hosts, once data are loaded; raise UserError where settings conflict."""
        return setup

    def schedule(self, setup: RunSpec, data: Dataset, selector: Selector) -> Schedule | None:
        """Return the schedule of participation and simulated time, or None for that of a plain run."""
        return None

    def hosts(self, kernels: str) -> MakeHost | None:
        """Return the function that makes hosts for these kernels, or None where the default one does."""
        return None

    def host(self, host: Host, housing: HostDivision) -> None:
        """Install the clients' side of the feature in ``host``: stages, verbs, services, keepers, views, wraps."""

    def link_hosts(self, link: Callable[[Neighbourhood], HostLinks]) -> None:
        """Connect the neighbourhoods of hosts on several ranks, where clients send messages to each other."""

    def server(self, fed: Federation) -> None:
        """Install the server's side of the feature in ``fed``: stages of requests, endings of rounds, counts."""

    def attributes(self, redrawn: int) -> dict[str, Any]:
        """Return attributes of the result; ``redrawn`` of its rounds are run again."""
        return {}

    def notes(self) -> Iterable[str]:
        """Return sentences that a user should read before round one, and that the result keeps."""
        return ()

    def evaluators(self, fed: Federation) -> Evaluators:
        """Return functions that evaluate each client at the server's model, by table of the result."""
        return {}

    def before(self, fed: Federation) -> dict[str, Any]:
        """Return what the result gets before the first round: "certificate"."""
        return {}

    def after(self, fed: Federation, x: Array) -> dict[str, Any]:
        """Return what the result gets after the last round, with its model x (n,): "certificate", "personal" models."""
        return {}

    def clients(self, tables: dict[str, ClientTable]) -> dict[str, ClientTable]:
        """Return the tables /clients, … of the result when the run is over."""
        return tables
