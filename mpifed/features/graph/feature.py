"""Clients as nodes of a graph: what goes with the table [graph]."""

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from mpifed.core.promises import Keeps, Reasons
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Feature, Housing
from mpifed.features.findings import chosen
from mpifed.features.graph.neighbours import NeighbourCounts
from mpifed.features.graph.node_clocks import NodeClocks
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.feature import devices
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import Selector
from mpifed.federation.peers.neighbourhood import Links, Neighbourhood
from mpifed.federation.peers.network import Network
from mpifed.federation.schedule import Schedule
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup
from mpifed.federation.traits import Takes
from mpifed.graphs.weights import Weights


def moving(c: Experiment) -> Found:
    """The option by which a graph changes, where the method needs the same weights in all rounds."""
    if c.graph is None or not c.graph.changing or not getattr(c.algorithm, "fixed_weights", ""):
        return None
    return {"key": "redraw = true" if c.graph.drawn_anew else f"loss = {c.graph.loss}"}


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
        lambda c: c.algorithm.takes is Takes.ALL and chosen(c),
        'selection = "{selected}" is wrong: all nodes of {name} work in every round, so it must be "all" or absent; '
        "edges may be lost with graph.loss",
    ),
    Rule(
        moving,
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


class OnGraph(Feature):
    """Clients that exchange vectors with their neighbours."""

    # Neighbours see single vectors, which sums do not protect.
    keeps = Keeps.EVERYTHING & ~(Keeps.SUMS | Keeps.SURVIVAL)
    unkept: ClassVar[Reasons] = {Keeps.SURVIVAL: "ranks exchange vectors with each other, also with a dead one"}

    federation = Network
    rules = RULES
    neighbourhood: Neighbourhood
    weights: Weights

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        c = self.config
        assert c.graph is not None
        self.weights = Weights(c.graph, c.seed, data.m)
        return setup

    def schedule(self, setup: Setup, data: Dataset, selector: Selector) -> Schedule | None:
        if self.config.system is None:
            return None
        return NodeClocks(devices(self.config, setup, data), setup.algorithm.takes is Takes.ALL)

    def server(self, fed: Federation) -> None:
        assert isinstance(fed, Network)
        fed.weights = self.weights

    def attributes(self, redrawn: int) -> dict[str, Any]:
        spectrum = self.weights.spectrum
        return {
            "graph_edges": self.weights.first.edges,
            "graph_parts": spectrum.parts,
            "spectral_gap": spectrum.gap,
            "least_eigenvalue": spectrum.least,
        }

    def notes(self) -> Iterator[str]:
        parts = self.weights.spectrum.parts
        which = "the graph that is drawn first" if self.weights.graph.drawn_anew else "the graph"
        if parts > 1:
            yield f"{which} is not connected: it has {parts} parts, and only nodes of the same part can agree"

    def host(self, host: Host, housing: Housing) -> None:
        self.neighbourhood = Neighbourhood(self.weights, host.lo, host.hi, housing.cuts, host.dtype)
        host.verbs |= self.neighbourhood.verbs(host)
        host.views.append(NeighbourCounts(self.weights))

    def linked(self, link: Callable[[Neighbourhood], Links]) -> None:
        self.neighbourhood.links = link(self.neighbourhood)
