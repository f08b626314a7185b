"""Feature of clients as nodes of a graph, and the rules of the table [graph]."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np

from mpifed.core.promises import Reasons, Supports
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.feature import EnginePlugin, HostDivision
from mpifed.features.findings import find_selection_key
from mpifed.features.graph.node_clocks import NodeClocks
from mpifed.features.rule import Rule, Violation
from mpifed.features.settings import Experiment
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


def changing_key(c: Experiment) -> Violation:
    """Return the option by which a graph changes although the method needs fixed weights, or None."""
    if c.graph is None or not c.graph.is_changing or not getattr(c.algorithm, "fixed_weights", ""):
        return None
    return {"key": "redraw = true" if c.graph.is_redrawn else f"loss = {c.graph.loss}"}


RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: not c.algorithm.on_graph,
        'graph = "{edges}" is wrong: {name} has a server; the methods on graphs are {graph_methods}; '
        "one of your own is derived from mpifed.GraphAlgorithm",
    ),
    Rule(
        lambda c: c.compress,
        "compress cannot be used with graph: nodes send their vectors as they are, or by the compressor of a method "
        "that has one, such as choco",
    ),
    Rule(
        lambda c: c.masks,
        "masks cannot be used with graph: masks hide uploads from a server, and nodes send to their neighbours",
    ),
    Rule(
        lambda c: c.algorithm.participation is Participation.ALL and find_selection_key(c),
        'selection = "{selected}" is wrong: all nodes of {name} work in every round, so it must be "all" or absent; '
        "edges may be lost with graph.loss",
    ),
    Rule(
        changing_key,
        "graph.{key} is wrong: {name} needs a graph that does not change, because {algorithm.fixed_weights}",
    ),
    Rule(
        lambda c: c.system and c.system.dropout,
        "system.dropout = {system.dropout} is wrong with a table [graph]: nodes do not drop out, but edges may carry "
        "nothing: graph.loss",
    ),
    Rule(
        lambda c: c.system and c.system.deadline,
        "system.deadline = {system.deadline} is wrong with a table [graph]: no server waits for nodes, each of which "
        "waits for its neighbours",
    ),
    Rule(
        lambda c: c.system and c.system.partial,
        "system.partial = true is wrong with a table [graph]: without a deadline no node takes fewer local steps",
    ),
]


class OnGraph(EnginePlugin, Callback):
    """Clients that exchange vectors with their neighbours."""

    # Neighbours see single vectors; a guarantee for sums does not protect these.
    supports = Supports.EVERYTHING & ~(Supports.SUMS | Supports.SURVIVAL)
    unsupported: ClassVar[Reasons] = {Supports.SURVIVAL: "ranks exchange vectors with each other, also with a dead one"}

    federation = GraphFederation
    rules = RULES
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
