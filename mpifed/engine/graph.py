"""Feature of clients as nodes of the graph of the table [graph]."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from mpifed.core.checksummed import check_array
from mpifed.core.promises import Reasons, Supports
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.engine.plugin import EnginePlugin, HostDivision
from mpifed.features.message_conflicts import MESSAGES
from mpifed.features.simulated_time.devices import SimulatedDevices
from mpifed.features.simulated_time.feature import make_devices
from mpifed.federation.callback import Callback
from mpifed.federation.host import Host
from mpifed.federation.local_transform import LocalClients, LocalTransform
from mpifed.federation.participation.selection import Selector
from mpifed.federation.peers.graph_federation import GraphFederation
from mpifed.federation.peers.neighbourhood import HostLinks, Neighbourhood
from mpifed.federation.schedule import Schedule, SelectionDraw
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import Participation
from mpifed.graphs.weights import Mixing, Weights

CLOCKS = "node clocks"  # in checkpoints


class NodeClocks(Schedule):
    """Clocks t_i of m nodes, computed and never measured; the simulated time is the largest.

    At the beginning of a round a node computes: t_i ← t_i + w/speed·exp(jitter·N(0, 1)), with the work w of the whole
    round. In an exchange it sends its message of b bytes to its d_i neighbours, one after the other, which takes
    latency_i + d_i b/bandwidth_up_i. It goes on when it and its neighbours have sent, and it has received their
    messages, one after the other:

        t_i ← max_j (t_j + latency_j + d_j b/bandwidth_up_j) + latency_i + d_i b/bandwidth_down_i,  j = i and neighbours

    So a node waits for its neighbours only, and a slow node delays nodes one edge farther in each exchange.
    """

    def __init__(self, devices: SimulatedDevices, all_work: bool) -> None:
        super().__init__(len(devices.sizes))
        self.devices, self.all_work = devices, all_work
        self.t = np.zeros(self.m)

    def begin(self, round: int) -> None:
        """Begin a round; where no nodes are selected, all compute."""
        super().begin(round)
        if round and self.all_work:
            self.compute(None, 1, self.again)

    def export_state(self) -> dict[str, Array]:
        return {CLOCKS: self.t}

    def restore(self, seconds: float, under_way: str, arrays: dict[str, Array]) -> None:
        check_array(CLOCKS, arrays[CLOCKS], self.t.shape, self.t.dtype)
        self.seconds, self.t = seconds, arrays[CLOCKS]

    def row(self) -> dict[str, float]:
        return {"simulated_seconds": float(self.t.max())}

    def select(self, draw: SelectionDraw, units: int) -> Array | None:
        again = self.again
        self.compute(super().select(draw, units), units, again)
        return self.selected

    def compute(self, selected: Array | None, units: int, again: int) -> None:
        """Advance the clocks of selected nodes (None: all) by their work in selection ``again`` of the round."""
        ids = np.arange(self.m) if selected is None else selected
        factor = self.devices.factor(ids, self.round, again)
        self.t[ids] += units * self.devices.work[ids] / self.devices.speed[ids] * factor

    def note_exchange(self, mixing: Mixing, size: int, sending: Array | None) -> None:
        """Advance the clocks by messages of ``size`` bytes on all edges; ``sending`` (m,) bool: from these only."""
        devices, W = self.devices, mixing.W
        sent = received = mixing.degrees
        if sending is not None:
            sent = sent * sending
            # reduceat over the rows of W sums over each node and its neighbours; the node itself is taken out again
            received = np.add.reduceat(sending[W.indices].astype(np.int64), W.indptr[:-1]) - sending
        left = self.t + np.where(sent > 0, devices.latency + sent * size / devices.up, 0.0)
        last = np.maximum.reduceat(np.where(sent > 0, left, 0.0)[W.indices], W.indptr[:-1])
        came = np.where(received > 0, devices.latency + received * size / devices.down, 0.0)
        self.t = np.where(received > 0, np.maximum(left, last), left) + came


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
