"""Base class of mpifed's own plug-ins that change where clients live or how ranks exchange messages."""

from collections.abc import Callable
from typing import ClassVar, NamedTuple

from mpifed.data.dataset import Dataset
from mpifed.features.feature import Plugin
from mpifed.federation.host import Host
from mpifed.federation.peers.neighbourhood import HostLinks, Neighbourhood
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec

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


class EnginePlugin(Plugin):
    """Base class of mpifed's own parts that change where clients live or how ranks exchange messages.

    They know hosts and servers from the inside, which may change with any version.
    """

    federation: ClassVar[type[Federation] | None] = None  # in place of a server, as on graphs

    def host_maker(self, kernels: str) -> MakeHost | None:
        """Return the function that makes hosts for these kernels, or None where the default one does."""
        return None

    def extend_host(self, host: Host, division: HostDivision) -> None:
        """Add to a host what its requests need beyond transforms."""

    def link_hosts(self, link: Callable[[Neighbourhood], HostLinks]) -> None:
        """Connect the neighbourhoods of hosts on several ranks, where clients send messages to each other."""

    def extend_server(self, fed: Federation) -> None:
        """Add to the server what its requests need beyond transforms."""
