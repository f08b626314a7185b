"""What goes with what: one list of rules over the traits of methods and the tables of an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from mpifed.algorithms.base import Algorithm
from mpifed.algorithms.graph_method import GraphMethod
from mpifed.compressors.base import Compressor, Identity
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.experiment.matching import missing, refusal
from mpifed.experiment.stop import Stop
from mpifed.federation.method import MovesDuals, Personalised
from mpifed.federation.participation.cyclic import Cyclic
from mpifed.federation.participation.importance import Importance
from mpifed.federation.participation.scored import Greedy
from mpifed.federation.participation.selection import Scored, Selection, Selector
from mpifed.federation.timing.arrivals import Asynchronous
from mpifed.federation.timing.system import System
from mpifed.federation.traits import Mean, Refused, Takes, given
from mpifed.federation.wire.compress import Compress
from mpifed.federation.wire.masks import Masks
from mpifed.graphs.base import Graph
from mpifed.problems.base import Problem

ONE = np.ones(1)  # samples of a client, where only being known counts


class Settings(Protocol):
    """The tables of an experiment that rules speak of."""

    problem: Problem
    algorithm: Algorithm
    selection: Selection
    stop: Stop
    record: Any
    system: System | None
    asynchronous: Asynchronous | None
    masks: Masks | None
    compress: Compress | None
    graph: Graph | None
    dtype: str

    def changed(self) -> list[str]: ...


class Rule(NamedTuple):
    """Settings that do not go together: ``find`` yields a sentence for each pair that is there."""

    name: str
    find: Callable[[Settings], Iterator[str]]


RULES: list[Rule] = []  # judged before data are loaded
TABLES: list[Rule] = []  # judged when an experiment is read: between tables, whatever method and problem are


def rule(rules: list[Rule]) -> Callable[[Callable[[Settings], Iterator[str]]], Callable[[Settings], Iterator[str]]]:
    """Put a function among rules."""

    def add(find: Callable[[Settings], Iterator[str]]) -> Callable[[Settings], Iterator[str]]:
        rules.append(Rule(find.__name__, find))
        return find

    return add


def refuse(config: Settings, rules: Sequence[Rule]) -> None:
    """UserError with the sentence of the first rule that settings break."""
    for one in rules:
        for sentence in one.find(config):
            raise UserError(sentence)


def names(able: Callable[[Algorithm], Any]) -> str:
    """The built-in methods that are able to do something, with their default options."""
    every = {name: Algorithm.member(name, "algorithm")() for name in Algorithm.choices}
    return ", ".join(name for name, method in every.items() if able(method))


def unequal(algorithm: Algorithm) -> Mean | Refused:
    """What a mean over the selected is; UNBIASED too where all clients reply, or the last uploads of all count."""
    always = algorithm.takes in (Takes.ALL, Takes.SELECTED_AND_ALL)
    return Mean.UNBIASED if always or algorithm.upload.last(algorithm) else algorithm.mean


def changes(C: Compressor | None) -> bool:
    """Whether a compressor is there and changes messages."""
    return C is not None and not isinstance(C, Identity)


@rule(TABLES)
def simulated_time_needs_a_system(config: Settings) -> Iterator[str]:
    if config.stop.simulated_seconds and config.system is None:
        yield (
            f"stop.simulated_seconds = {config.stop.simulated_seconds} is wrong: time is simulated only with a "
            "table [system], which states the speed of the clients"
        )


@rule(TABLES)
def asynchronous_rounds(config: Settings) -> Iterator[str]:
    table, algorithm = config.asynchronous, config.algorithm
    if table is None:
        return
    name = algorithm.label()
    wrong = f"asynchronous.arrivals = {table.arrivals} is wrong"
    if config.system is None:
        yield (
            f"{wrong} without a table [system]: who arrives first follows from the speed, bandwidth and latency of the "
            "clients, which that table states"
        )
    if isinstance(algorithm.asynchronous, Refused):
        able = names(lambda method: method.asynchronous)
        yield (
            f"{wrong}: {name} cannot be asynchronous, because {algorithm.asynchronous.why}; {able} can, and without "
            f"[asynchronous] so can {name} run"
        )
    if table.arrivals < 2 and algorithm.mean is Mean.COUPLED:
        yield f"{wrong}: {name} needs at least 2 clients a round"
    key = next((key for key in config.changed() if key.partition(".")[0] == "selection"), None)
    if key is not None and config.selection.label() != "all":
        value = getattr(config.selection, key.partition(".")[2]) if "." in key else config.selection.label()
        yield (
            f"{key} = {toml_value(value)} is wrong with [asynchronous]: all clients work, and those that arrive first "
            "take part, so leave [selection] out"
        )
    if config.masks is not None:
        yield (
            "masks cannot be used with [asynchronous]: clients agree on masks before they compute, and which uploads "
            "are added up is known only when they arrive"
        )


@rule(TABLES)
def asynchronous_compression(config: Settings) -> Iterator[str]:
    table, algorithm = config.compress, config.algorithm
    if config.asynchronous is None or table is None:
        return
    if table.down is not None and changes(table.down):
        yield (
            f'compress.down = "{table.down.label()}" is wrong with [asynchronous]: compressed downloads go to all '
            "clients at the same time, and there each gets its model when it arrives, so leave it out"
        )
    if table.up is not None and changes(table.up) and algorithm.upload.last(algorithm):
        yield (
            f'compress.up = "{table.up.label()}" is wrong with [asynchronous]: the server of {algorithm.label()} keeps '
            "the last uploads of all clients, and their changes cannot be compressed while others arrive, so leave it "
            "out"
        )


@rule(RULES)
def method_and_problem(config: Settings) -> Iterator[str]:
    lacking = missing(config.algorithm, type(config.problem))
    if lacking:
        yield refusal(config.algorithm, config.problem, lacking)


@rule(RULES)
def mini_batches_need_samples(config: Settings) -> Iterator[str]:
    solver = getattr(config.algorithm, "solver", None)
    tables = (("algorithm", config.algorithm), ("algorithm.solver", solver), ("selection", config.selection))
    for key, table in tables:
        batch = getattr(table, "batch_size", 0)
        if batch and not config.problem.sampled:
            yield (
                f"{key}.batch_size = {batch} is wrong: {config.problem.label()} has no samples to draw mini-batches "
                "of, so it must be 0"
            )


@rule(RULES)
def personal_models(config: Settings) -> Iterator[str]:
    if config.record.personal and not isinstance(config.algorithm, Personalised):
        yield f"record.personal = true is wrong: {config.algorithm.label()} has no personal models"


@rule(RULES)
def graphs(config: Settings) -> Iterator[str]:
    algorithm, graph = config.algorithm, config.graph
    name = algorithm.label()
    if graph is None:
        if isinstance(algorithm, GraphMethod):
            yield f'graph is missing: {name} has no server, so it needs a graph, such as graph = "ring"'
        return
    if not isinstance(algorithm, GraphMethod):
        on_graphs = names(lambda method: isinstance(method, GraphMethod))
        yield f'graph = "{graph.label()}" is wrong: {name} has a server; the methods on graphs are {on_graphs}'
        return
    if config.compress is not None:
        yield "compress cannot be used with graph: nodes send their vectors as they are"
    if config.masks is not None:
        yield ("masks cannot be used with graph: masks hide uploads from a server, and nodes send to their neighbours")
    changed = any(key.partition(".")[0] == "selection" for key in config.changed())
    if algorithm.takes is Takes.ALL and changed and config.selection.label() != "all":
        yield (
            f'selection = "{config.selection.label()}" is wrong: all nodes of {name} work in every round, so it must '
            'be "all" or absent; edges may be lost with graph.loss'
        )
    if algorithm.fixed_weights and graph.changing:
        key = "redraw = true" if graph.drawn_anew else f"loss = {graph.loss}"
        yield (f"graph.{key} is wrong: {name} needs a graph that does not change, because {algorithm.fixed_weights}")


@rule(RULES)
def selections(config: Settings) -> Iterator[str]:
    algorithm, selection = config.algorithm, config.selection
    if config.asynchronous is not None:
        return
    why = unequal(algorithm)
    if isinstance(selection, Importance) and isinstance(why, Refused):
        yield (
            f'selection.name = "importance" is wrong: {algorithm.label()} needs equal probabilities, because '
            f'{why.why}, so it must be one such as "uniform"'
        )
    if isinstance(selection, Importance) and selection.odds is None and not config.problem.has("lipschitz"):
        yield f"selection.odds is missing: {config.problem.label()} tells no Lipschitz constants L_i to take odds from"
    if isinstance(selection, Greedy) and not isinstance(algorithm, MovesDuals):
        yield (
            f'selection.name = "greedy" is wrong: clients of {algorithm.label()} have no dual step to score, so it '
            'must be "biased" (by gradients), "power-of-choice" (by losses) or one without scores'
        )


@rule(RULES)
def guarantees(config: Settings) -> Iterator[str]:
    privacy, name = config.algorithm.privacy(), config.algorithm.label()
    if privacy is None or not privacy.holds:
        return
    if isinstance(config.selection, Scored):
        yield scores_leak(config)
    if privacy.double and config.dtype != "float64":
        yield (
            f"dtype = {toml_value(config.dtype)} is wrong: the privacy that {name} guarantees here covers the rounding "
            'errors of double precision, so it must be "float64"'
        )


def scores_leak(config: Settings) -> str:
    return (
        f"selection = {toml_value(config.selection.label())} is wrong: its candidates send exact scores, which break "
        f"the privacy that {config.algorithm.label()} guarantees here, so it must be one without scores, such as "
        "uniform"
    )


@rule(RULES)
def secure_aggregation(config: Settings) -> Iterator[str]:
    algorithm, name = config.algorithm, config.algorithm.label()
    if config.masks is None:
        return
    if isinstance(config.selection, Scored):
        yield scores_show(config)
    single = algorithm.upload.single
    if single is not None and given(algorithm, single):
        yield (f"masks cannot be used with {name}: its server needs uploads one by one, and masks hide single uploads")
    if algorithm.upload.kind == "compressed":
        yield f"masks cannot be used with {name}: it compresses its uploads"


def scores_show(config: Settings) -> str:
    return (
        f"masks cannot be used with selection.name = {config.selection.label()!r}: candidates send their scores one by "
        "one, and masks hide single uploads"
    )


@rule(RULES)
def compression(config: Settings) -> Iterator[str]:
    table, algorithm = config.compress, config.algorithm
    if table is None:
        return
    if table.feedback != "auto" and table.up is None:
        yield f'compress.feedback = "{table.feedback}" is wrong: it is about compress.up, which is absent'
    for way, C in table.ways().items():
        why = algorithm.upload.exact.get(way)
        if why is not None and changes(C):
            yield (
                f'compress.{way} = "{C.label()}" is wrong: {algorithm.label()} needs exact {way}loads, because {why}'
            )
    table.verify()
    if changes(table.up) and algorithm.upload.last(algorithm):
        table.refuse_feedback(algorithm.label())
    if table.up is not None and config.masks is not None:
        yield (
            f'compress.up = "{table.up.label()}" cannot be used with masks: masked uploads have all their numbers, so '
            "that nothing is saved"
        )


@rule(RULES)
def absence(config: Settings) -> Iterator[str]:
    algorithm, system = config.algorithm, config.system
    key = None if system is None else system.absence()
    if key is None or config.graph is not None or config.asynchronous is not None:
        return
    if algorithm.takes.everyone:
        when = "some rounds" if algorithm.takes is Takes.SELECTED_OR_ALL else "every round"
        yield (
            f"system.{key} = {getattr(system, key)} is wrong: {algorithm.label()} needs a gradient of every client in "
            f"{when}, also of those that are not selected, so no client can be absent"
        )


@rule(RULES)
def work_of_clients(config: Settings) -> Iterator[str]:
    algorithm, system = config.algorithm, config.system
    if system is None:
        return
    if system.passes is None and system.speed is not None and algorithm.work(ONE) is None:
        yield (
            f"system.passes is missing: {algorithm.label()} cannot tell beforehand how often its clients pass over "
            "their samples, so system.speed needs it"
        )
    if not system.partial or config.graph is not None or config.asynchronous is not None:
        return
    lacking = next((key for key in ("deadline", "speed") if getattr(system, key) is None), None)
    if lacking is not None:
        yield (
            f"system.partial = true is wrong without system.{lacking}: clients take fewer local steps where not all of "
            "them fit into the deadline"
        )
    if algorithm.local_steps(ONE) is None:
        able = names(lambda method: method.local_steps(ONE) is not None)
        yield (
            f"system.partial = true is wrong: clients of {algorithm.label()} cannot take fewer local steps, those of "
            f"{able} can"
        )


@rule(RULES)
def devices_of_nodes(config: Settings) -> Iterator[str]:
    refused = {
        "dropout": "nodes do not drop out, but edges may carry nothing: graph.loss",
        "deadline": "no server waits for nodes, each of which waits for its neighbours",
        "partial": "without a deadline no node takes fewer local steps",
    }
    if config.system is not None and config.graph is not None:
        for key, why in refused.items():
            value = getattr(config.system, key)
            if value:
                yield f"system.{key} = {value} is wrong with a table [graph]: {why}"


@rule(RULES)
def devices_of_arrivals(config: Settings) -> Iterator[str]:
    usual = {"dropout": 0.0, "deadline": None, "least": 1, "partial": False}
    if config.system is not None and config.asynchronous is not None:
        for key, default in usual.items():
            value = getattr(config.system, key)
            if value != default:
                shown = str(value).lower() if isinstance(value, bool) else value
                yield (
                    f"system.{key} = {shown} is wrong with [asynchronous]: there every client replies in its own time, "
                    "and asynchronous.arrivals says how many the server waits for, so leave it out"
                )


def refuse_counted(config: Settings, selector: Selector, m: int) -> None:
    """UserError for what does not go together with the number m of clients, or with those that a round selects."""
    for sentence in (*counted_masks(config, selector), *counted_guarantees(config, selector, m), *turns(config, m)):
        raise UserError(sentence)


def counted_masks(config: Settings, selector: Selector) -> Iterator[str]:
    masks, system = config.masks, config.system
    if masks is None:
        return
    if selector.batch_size is not None:
        yield scores_show(config)
    if selector.size < 2:
        yield (
            f"selection takes {selector.size} client a round, but masks need at least 2: the sum of one upload is that "
            "upload"
        )
    needed = masks.needed(selector.size)
    if system is not None and system.absence() and system.least < needed:
        yield (
            f"system.least = {system.least} is wrong: with masks.threshold = {masks.threshold:.3g} masks of "
            f"{selector.size} selected clients cancel only where {needed} reply, so it must be at least {needed}"
        )


def counted_guarantees(config: Settings, selector: Selector, m: int) -> Iterator[str]:
    privacy, name = config.algorithm.privacy(), config.algorithm.label()
    if privacy is None or not privacy.holds:
        return
    if selector.batch_size is not None:
        yield scores_leak(config)
    if not privacy.sums:
        return
    noise = f"{name} guarantees privacy here for sums that have the noise of all {m} clients"
    if selector.size < m:
        yield (
            f"selection = {toml_value(config.selection.label())} is wrong with {selector.size} clients a round: "
            f'{noise}, so it must be "all"'
        )
    key = None if config.system is None else config.system.absence()
    if key is not None:
        yield f"system.{key} = {getattr(config.system, key)} is wrong: {noise}, so it must be absent"


def turns(config: Settings, m: int) -> Iterator[str]:
    selection, algorithm = config.selection, config.algorithm
    if not isinstance(selection, Cyclic) or algorithm.mean is not Mean.COUPLED:
        return
    size = selection.size(m)
    if not selection.overlap and size < m and m % size == 0:
        yield (
            f"selection.overlap = 0 is wrong: {algorithm.label()} exchanges within the selected clients alone, and "
            f"{size} of {m} by turns are always the same sets, so it must be at least 1"
        )
