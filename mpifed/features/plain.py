"""What goes with what in every run: the method, its problem, and when it stops."""

from mpifed.core.promises import Keeps
from mpifed.features.feature import Feature
from mpifed.features.matching import refusal
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.traits import needs


def mismatch(c: Experiment) -> Found:
    """What the method needs and the problem does not have."""
    lacking = [need for need in needs(c.algorithm) if not c.problem.has(need)]
    return {"mismatch": refusal(c.algorithm, c.problem, lacking)} if lacking else None


def batches(c: Experiment) -> Found:
    """A size of mini-batches, where f_i is no mean over samples."""
    solver = getattr(c.algorithm, "solver", None)
    for key, table in {"algorithm": c.algorithm, "algorithm.solver": solver, "selection": c.selection}.items():
        size = getattr(table, "batch_size", 0)
        if size and not c.problem.sampled:
            return {"key": key, "size": size}
    return None


TABLES: list[Rule[Experiment]] = [
    Rule(
        lambda c: c.stop.simulated_seconds and c.system is None,
        "stop.simulated_seconds = {stop.simulated_seconds} is wrong: time is simulated only with a table [system], "
        "which states the speed of the clients",
    ),
]

RULES: list[Rule[Experiment]] = [
    Rule(mismatch, "{mismatch}"),
    Rule(
        lambda c: c.stop.accuracy and not c.problem.classifies(),
        "stop.accuracy = {stop.accuracy} is wrong: {loss} has no classes, so no accuracy is recorded",
    ),
    Rule(
        batches,
        "{key}.batch_size = {size} is wrong: {loss} has no mini-batches, for f_i is no mean over samples: it must be 0",
    ),
    Rule(
        lambda c: c.graph is None and c.algorithm.on_graph,
        'graph is missing: {name} has no server, so it needs a graph, such as graph = "ring"',
    ),
]


class Plain(Feature):
    """Rules of every run. It installs nothing, so no list of a run has it."""

    # It has rules and computes nothing.
    keeps = Keeps.EVERYTHING

    tables = TABLES
    rules = RULES
