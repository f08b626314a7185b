"""Feature of clients as nodes of the graph of the table [graph]."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from mpifed.core.promises import Reasons, Supports
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.feature import EnginePlugin, HostDivision
from mpifed.features.graph.node_clocks import NodeClocks
from mpifed.features.message_conflicts import MESSAGES
from mpifed.features.simulated_time.feature import make_devices
from mpifed.federation.callback import Callback
from mpifed.federation.host import Host
from mpifed.federation.local_transform import LocalClients, LocalTransform
from mpifed.federation.participation.selection import Selector
from mpifed.federation.peers.graph_federation import GraphFederation
from mpifed.federation.peers.neighbourhood import HostLinks, Neighbourhood
from mpifed.federation.schedule import Schedule
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import Participation
from mpifed.graphs.weights import Weights


class NeighbourCounts(LocalTransform):
    """Local transform that tells clients how many neighbours they have in the graph of the ``weights``."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights

    def neighbours(self, f: LocalClients) -> Array:
        # all nodes are in one round; where edges are drawn anew, it has its own
        degrees: Array = self.weights.at(int(np.max(f.key[0]))).degrees[f.ids][:, None]
        return degrees


class OnGraph(EnginePlugin, Callback):
    """Clients that exchange vectors with their neighbours."""

    # Neighbours see single vectors; a guarantee for sums does not protect these.
    supports = Supports.EVERYTHING & ~(Supports.SUMS | Supports.SURVIVAL)
    unsupported: ClassVar[Reasons] = {Supports.SURVIVAL: "ranks exchange vectors with each other, also with a dead one"}
    conflicts = MESSAGES["graph"]

    federation = GraphFederation
    neighbourhood: Neighbourhood
    weights: Weights

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        c = self.config
        assert c.graph is not None
        self.weights = Weights(c.graph, c.seed, data.m)
        return setup

    def schedule(self, setup: RunSpec, data: Dataset, selector: Selector) -> Schedule | None:
        if self.config.system is None:
            return None
        return NodeClocks(make_devices(self.config, setup, data), setup.algorithm.participation is Participation.ALL)

    def extend_server(self, fed: Federation) -> None:
        assert isinstance(fed, GraphFederation)
        fed.weights = self.weights

    def attributes(self, replayed: int) -> dict[str, Any]:
        spectrum = self.weights.spectrum
        return {
            "graph_edges": self.weights.first.edges,
            "graph_parts": spectrum.components,
            "spectral_gap": spectrum.gap,
            "least_eigenvalue": spectrum.min_eigenvalue,
        }

    def notes(self) -> Iterator[str]:
        parts = self.weights.spectrum.components
        which = "the graph that is drawn first" if self.weights.graph.is_redrawn else "the graph"
        if parts > 1:
            yield f"{which} is not connected: it has {parts} parts, and only nodes of the same part can agree"

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[NeighbourCounts]:
        return [NeighbourCounts(self.weights)]

    def extend_host(self, host: Host, division: HostDivision) -> None:
        self.neighbourhood = Neighbourhood(self.weights, host.lo, host.hi, division.cuts, host.dtype)
        host.request_handlers |= self.neighbourhood.request_handlers(host)

    def link_hosts(self, link: Callable[[Neighbourhood], HostLinks]) -> None:
        self.neighbourhood.links = link(self.neighbourhood)
