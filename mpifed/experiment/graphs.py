"""What goes together with a table [graph], and what a result says of the graph."""

from __future__ import annotations

from typing import Any

from mpifed.algorithms.base import Algorithm
from mpifed.core.errors import UserError
from mpifed.experiment.config import Experiment
from mpifed.graphs.weights import Weights

WHY = {
    "compress": "nodes send their vectors as they are",
    "masks": "masks hide uploads from a server, and nodes send to their neighbours",
}


def methods(graph: bool) -> str:
    """The names of the methods that need a graph, or of those that need a server."""
    return ", ".join(name for name in Algorithm.choices if Algorithm.member(name, "algorithm").graph == graph)


def refuse_graph(config: Experiment, survive: bool) -> None:
    """UserError for what does not go together with a table [graph], or takes one."""
    algorithm, graph = config.algorithm, config.graph
    name = algorithm.label()
    if graph is None:
        if algorithm.graph:
            raise UserError(f'graph is missing: {name} has no server, so it needs a graph, such as graph = "ring"')
        return
    given = f'graph = "{graph.label()}" is wrong'
    if not algorithm.graph:
        raise UserError(f"{given}: {name} has a server; the methods on graphs are {methods(True)}")
    for key, why in WHY.items():
        if getattr(config, key) is not None:
            raise UserError(f"{key} cannot be used with graph: {why}")
    changed = [key for key in config.changed() if key.partition(".")[0] == "selection"]
    if algorithm.selections == 0 and changed and config.selection.label() != "all":
        raise UserError(
            f'selection = "{config.selection.label()}" is wrong: all nodes of {name} work in every round, so it must '
            'be "all" or absent; edges may be lost with graph.loss'
        )
    if algorithm.steady and graph.changing:
        key = "redraw = true" if graph.drawn_anew else f"loss = {graph.loss}"
        raise UserError(f"graph.{key} is wrong: {name} needs a graph that does not change, because {algorithm.steady}")
    if survive:
        raise UserError(
            "--survive cannot be used with graph: ranks exchange vectors with each other, also with a dead one"
        )


def described(weights: Weights | None) -> dict[str, Any]:
    """The root attributes of a result that say what the graph is; none without one."""
    if weights is None:
        return {}
    spectrum = weights.spectrum
    return {
        "graph_edges": weights.first.edges,
        "graph_parts": spectrum.parts,
        "spectral_gap": spectrum.gap,
        "least_eigenvalue": spectrum.least,
    }


def drawn(weights: Weights | None) -> list[str]:
    """A sentence where the graph is not connected."""
    if weights is None or weights.spectrum.parts == 1:
        return []
    parts = weights.spectrum.parts
    which = "the graph that is drawn first" if weights.graph.drawn_anew else "the graph"
    return [f"{which} is not connected: it has {parts} parts, and only nodes of the same part can agree"]
