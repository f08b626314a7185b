"""Feature of asynchronous runs, and the rules of the table [asynchronous]."""

from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.asynchrony.arrivals import Arrivals
from mpifed.features.asynchrony.computed_ahead import ComputedAhead
from mpifed.features.feature import EnginePlugin, HostDivision
from mpifed.features.findings import find_lossy, find_selection_key, last_upload_field
from mpifed.features.rule import Rule, Violation
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.feature import make_devices
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import Selector
from mpifed.federation.request import ARRIVE, REST
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import MeanEstimate, Unsupported


def waiting_key(c: Experiment) -> Violation:
    """Return the first key of [system] that is about a server that waits for clients, or None."""
    for key, default in {"dropout": 0.0, "deadline": None, "least": 1, "partial": False}.items():
        value = getattr(c.system, key, default)
        if value != default:
            return {"key": key, "value": str(value).lower() if isinstance(value, bool) else value}
    return None


TABLES: list[Rule[Experiment]] = [
    Rule(
        lambda c: c.asynchronous and c.system is None,
        "asynchronous.arrivals = {asynchronous.arrivals} is wrong without a table [system]: who arrives first follows "
        "from the speed, bandwidth and latency of the clients, which that table states",
    ),
    Rule(
        lambda c: c.asynchronous and isinstance(c.algorithm.asynchronous, Unsupported),
        "asynchronous.arrivals = {asynchronous.arrivals} is wrong: {name} cannot be asynchronous, because "
        "{algorithm.asynchronous.why}; {asynchronous_methods} can, and without [asynchronous] so can {name} run",
    ),
    Rule(
        lambda c: c.asynchronous and c.asynchronous.arrivals < 2 and c.algorithm.mean_estimate is MeanEstimate.COUPLED,
        "asynchronous.arrivals = {asynchronous.arrivals} is wrong: {name} needs at least 2 clients a round",
    ),
    Rule(
        lambda c: c.asynchronous and find_selection_key(c),
        "{key} = {value} is wrong with [asynchronous]: all clients work, and those that arrive first take part, so "
        "leave [selection] out",
    ),
    Rule(
        lambda c: c.asynchronous and c.masks,
        "masks cannot be used with [asynchronous]: clients agree on masks before they compute, and which uploads are "
        "added up is known only when they arrive",
    ),
    Rule(
        lambda c: c.asynchronous and find_lossy(c, "down"),
        'compress.down = "{C}" is wrong with [asynchronous]: compressed downloads go to all clients at the same time, '
        "and there each gets its model when it arrives, so leave it out",
    ),
    Rule(
        lambda c: c.asynchronous and last_upload_field(c) and find_lossy(c, "up"),
        'compress.up = "{C}" is wrong with [asynchronous]: the server of {name} keeps the last uploads of all clients, '
        "and their changes cannot be compressed while others arrive, so leave it out",
    ),
]


RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: c.asynchronous and waiting_key(c),
        "system.{key} = {value} is wrong with [asynchronous]: there every client replies in its own time, and "
        "asynchronous.arrivals says how many the server waits for, so leave it out",
    ),
]


class Asynchrony(EnginePlugin):
    """Clients that arrive one after the other."""

    # As [system]: who arrives first follows from seed and numbers of samples. A sum lacks the others.
    supports = Supports.EVERYTHING & ~Supports.SUMS

    tables = TABLES
    rules = RULES

    def schedule(self, setup: RunSpec, data: Dataset, selector: Selector) -> Schedule:
        assert self.config.asynchronous is not None
        return Arrivals(self.config.asynchronous, make_devices(self.config, setup, data))

    def extend_host(self, host: Host, division: HostDivision) -> None:
        ahead = ComputedAhead(host)
        host.request_handlers |= {REST[0]: ahead.rest, ARRIVE[0]: ahead.arrive}
        host.add_transform(ahead)
