"""Feature of asynchronous runs: the table [asynchronous]."""

from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.asynchrony.arrivals import Arrivals
from mpifed.features.asynchrony.computed_ahead import ComputedAhead
from mpifed.features.feature import EnginePlugin, HostDivision
from mpifed.features.message_conflicts import MESSAGES
from mpifed.features.simulated_time.feature import make_devices
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import Selector
from mpifed.federation.request import ARRIVE, REST
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import RunSpec


class Asynchrony(EnginePlugin):
    """Clients that arrive one after the other."""

    # As [system]: who arrives first follows from seed and numbers of samples. A sum lacks the others.
    supports = Supports.EVERYTHING & ~Supports.SUMS
    conflicts = MESSAGES["asynchrony"]

    def schedule(self, setup: RunSpec, data: Dataset, selector: Selector) -> Schedule:
        assert self.config.asynchronous is not None
        return Arrivals(self.config.asynchronous, make_devices(self.config, setup, data))

    def extend_host(self, host: Host, division: HostDivision) -> None:
        ahead = ComputedAhead(host)
        host.request_handlers |= {REST[0]: ahead.rest, ARRIVE[0]: ahead.arrive}
        host.add_transform(ahead)
