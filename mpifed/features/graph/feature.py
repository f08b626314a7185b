"""Clients as nodes of a graph: what goes with the table [graph]."""

from mpifed.algorithms.bases.graph_method import GraphMethod
from mpifed.features.feature import Feature
from mpifed.features.findings import chosen
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.traits import Takes


def moving(c: Experiment) -> Found:
    """The option by which a graph changes, where the method needs the same weights in all rounds."""
    if c.graph is None or not c.graph.changing or not getattr(c.algorithm, "fixed_weights", ""):
        return None
    return {"key": "redraw = true" if c.graph.drawn_anew else f"loss = {c.graph.loss}"}


RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: not isinstance(c.algorithm, GraphMethod),
        'graph = "{edges}" is wrong: {name} has a server; the methods on graphs are {graph_methods}; '
        "one of your own is derived from mpifed.GraphMethod",
    ),
    Rule(lambda c: c.compress, "compress cannot be used with graph: nodes send their vectors as they are"),
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
        "system.partial = {system.partial} is wrong with a table [graph]: without a deadline no node takes fewer local "
        "steps",
    ),
]


class OnGraph(Feature):
    """Clients that exchange vectors with their neighbours."""

    rules = RULES
