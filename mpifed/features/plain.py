"""Rules of every run: the method, its problem and its stop rules."""

from mpifed.core.promises import Supports
from mpifed.features.feature import Plugin
from mpifed.features.matching import explain_mismatch
from mpifed.features.rule import Rule, Violation
from mpifed.features.settings import Experiment
from mpifed.federation.traits import required_methods


def mismatch(c: Experiment) -> Violation:
    """Return what the method needs and the problem lacks, or None."""
    lacking = [need for need in required_methods(c.algorithm) if not c.problem.has(need)]
    return {"mismatch": explain_mismatch(c.algorithm, c.problem, lacking)} if lacking else None


def batches(c: Experiment) -> Violation:
    """Return the size of mini-batches, with its key, where f_i is no mean over samples; else None."""
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


class CommonRules(Plugin):
    """Rules of every run; it installs nothing and is in no list of a run's features."""

    # It has rules and computes nothing.
    supports = Supports.EVERYTHING

    tables = TABLES
    rules = RULES
