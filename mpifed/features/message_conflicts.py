"""Table of conflicts about what travels: asynchronous runs, graphs, attacks and robust means, compression and masks."""

import math
from collections.abc import Callable
from typing import Any

from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.features.conditions import (
    Violation,
    compressors,
    find_lossy,
    find_selection_key,
    has_weights,
    last_upload_field,
    may_be_absent,
)
from mpifed.features.conflict import Conflict, LoadedSettings, Moment, is_set, list_methods
from mpifed.features.settings import Experiment
from mpifed.federation.method import FederatedMethod
from mpifed.federation.participation.selection import ScoreSelection
from mpifed.federation.traits import MeanEstimate, Participation, Unsupported, has_options

MODEL = 1000  # any number of parameters: only the number of uploaded vectors counts
WAITS = "asynchronous.arrivals = {asynchronous.arrivals} is wrong"


def waiting_key(c: Experiment) -> Violation:
    """Return the first key of [system] that is about a server that waits for clients, or None."""
    for key, default in {"dropout": 0.0, "deadline": None, "least": 1, "partial": False}.items():
        value = getattr(c.system, key, default)
        if value != default:
            return {"key": key, "value": toml_value(value)}
    return None


ASYNCHRONOUS = [
    Conflict(
        ("asynchronous", "no table [system]"),
        WAITS + " without a table [system]: who arrives first follows from the speed, bandwidth and latency of the "
        "clients, which that table states",
        lambda c: c.system is None,
        Moment.READ,
    ),
    Conflict(
        ("asynchronous", "a method whose rounds wait"),
        WAITS + ": {name} cannot be asynchronous, because {algorithm.asynchronous.why}; {asynchronous_methods} can, "
        "and without [asynchronous] so can {name} run",
        lambda c: isinstance(c.algorithm.asynchronous, Unsupported),
        Moment.READ,
    ),
    Conflict(
        ("asynchronous.arrivals = 1", "a method that exchanges among the selected clients"),
        WAITS + ": {name} needs at least 2 clients a round",
        lambda c: c.asynchronous.arrivals < 2 and c.algorithm.mean_estimate is MeanEstimate.COUPLED,
        Moment.READ,
    ),
    Conflict(
        ("asynchronous", "selection"),
        "{key} = {value} is wrong with [asynchronous]: all clients work, and those that arrive first take part, so "
        "leave [selection] out",
        find_selection_key,
        Moment.READ,
    ),
    Conflict(
        ("asynchronous", "masks"),
        "masks cannot be used with [asynchronous]: clients agree on masks before they compute, and which uploads are "
        "added up is known only when they arrive",
        at=Moment.READ,
    ),
    Conflict(
        ("asynchronous", "compress.down"),
        'compress.down = "{C}" is wrong with [asynchronous]: compressed downloads go to all clients at the same time, '
        "and there each gets its model when it arrives, so leave it out",
        lambda c: find_lossy(c, "down"),
        Moment.READ,
    ),
    Conflict(
        ("asynchronous", "compress.up, where the server keeps the last uploads"),
        'compress.up = "{C}" is wrong with [asynchronous]: the server of {name} keeps the last uploads of all clients, '
        "and their changes cannot be compressed while others arrive, so leave it out",
        lambda c: last_upload_field(c) and find_lossy(c, "up"),
        Moment.READ,
    ),
    Conflict(
        ("asynchronous", "system.dropout, deadline, least or partial"),
        "system.{key} = {value} is wrong with [asynchronous]: there every client replies in its own time, and "
        "asynchronous.arrivals says how many the server waits for, so leave it out",
        waiting_key,
    ),
]


def changing_key(c: Experiment) -> Violation:
    """Return the option by which a graph changes although the method needs fixed weights, or None."""
    if c.graph is None or not c.graph.is_changing or not getattr(c.algorithm, "fixed_weights", ""):
        return None
    return {"key": "redraw = true" if c.graph.is_redrawn else f"loss = {c.graph.loss}"}


ON_GRAPH = [
    Conflict(
        ("graph", "a method with a server"),
        'graph = "{edges}" is wrong: {name} has a server; the methods on graphs are {graph_methods}; '
        "one of your own is derived from mpifed.extend.GraphAlgorithm",
        lambda c: not c.algorithm.on_graph,
    ),
    Conflict(
        ("graph", "compress"),
        "compress cannot be used with graph: nodes send their vectors as they are, or by the compressor of a method "
        "that has one, such as choco",
    ),
    Conflict(
        ("graph", "masks"),
        "masks cannot be used with graph: masks hide uploads from a server, and nodes send to their neighbours",
    ),
    Conflict(
        ("graph", "selection, where all nodes work in every round"),
        'selection = "{selected}" is wrong: all nodes of {name} work in every round, so it must be "all" or absent; '
        "edges may be lost with graph.loss",
        lambda c: c.algorithm.participation is Participation.ALL and find_selection_key(c),
    ),
    Conflict(
        ("graph.loss or redraw", "a method that needs fixed weights"),
        "graph.{key} is wrong: {name} needs a graph that does not change, because {algorithm.fixed_weights}",
        changing_key,
    ),
    Conflict(
        ("graph", "system.dropout"),
        "system.dropout = {system.dropout} is wrong with a table [graph]: nodes do not drop out, but edges may carry "
        "nothing: graph.loss",
    ),
    Conflict(
        ("graph", "system.availability"),
        "system.availability is wrong with a table [graph]: nodes are always there, but edges may carry nothing: "
        "graph.loss",
    ),
    Conflict(
        ("graph", "system.deadline"),
        "system.deadline = {system.deadline} is wrong with a table [graph]: no server waits for nodes, each of which "
        "waits for its neighbours",
    ),
    Conflict(
        ("graph", "system.partial"),
        "system.partial = true is wrong with a table [graph]: without a deadline no node takes fewer local steps",
    ),
]


def uses_one_mean(method: FederatedMethod) -> bool:
    """Return whether a method with its options says that its rounds use uploads in one mean alone."""
    options = method.upload.one_mean
    return options is not None and has_options(method, options)


def uploads_one_vector(c: Experiment) -> bool:
    """Return whether clients upload one vector a round."""
    return c.algorithm.message_size(MODEL)[1] == MODEL


def needs_single_uploads(c: Experiment) -> bool:
    """Return whether the server of a method needs uploads one by one."""
    single = c.algorithm.upload.single
    return single is not None and has_options(c.algorithm, single)


def attacks_uploads(c: Experiment) -> bool:
    """Return whether clients attack by what they upload."""
    return c.attack is not None and not c.attack.on_labels


SINGLE = {  # what does not go with single uploads, and why
    "masks": "masks hide single uploads, which the server needs here one by one",
    "compress": "what is left of an upload is no change that a client has made",
    "asynchronous": "uploads that arrive are changes of different models",
    "graph": "there is no server that takes a mean",
    "objective.weights": "weights of uploads are those of a plain mean",
    'selection = "importance"': "it weighs uploads, as a plain mean can",
    "algorithm.certify": "theorems of methods are about plain means of honest uploads",
}
ODD: dict[str, Callable[[Experiment], Any]] = {  # of these: when they are there, where not by being set
    "compress": compressors,
    "objective.weights": has_weights,
    'selection = "importance"': lambda c: c.selection.weighs_replies,
}


def both(is_asked: Callable[[Experiment], Any], other: str) -> Callable[[Experiment], Any]:
    """Return the condition that single uploads are asked for, and another part is there."""
    return lambda c: is_asked(c) and (ODD[other](c) if other in ODD else is_set(c, other))


def single_uploads(key: str, is_asked: Callable[[Experiment], Any]) -> list[Conflict]:
    """Return the conflicts of a table that needs uploads of clients one by one."""
    wrong = f'{key} = "{{{key}_name}}" is wrong: '
    rows = [
        Conflict(
            (key, "a method with more than one mean of uploads"),
            wrong + "{name} does not say that its rounds use uploads in one mean alone; {able} do, and a class of your "
            "own says so by upload = mpifed.extend.Upload(one_mean={{}})",
            lambda c: is_asked(c) and not uses_one_mean(c.algorithm) and {"able": list_methods(uses_one_mean)},
        ),
        Conflict(
            (key, "a method whose clients upload several vectors"),
            wrong + "clients of {name} upload more than one vector here",
            lambda c: is_asked(c) and not uploads_one_vector(c),
        ),
    ]
    return rows + [
        Conflict((key, other), f"{wrong}{other} cannot be used with it, because {why}", both(is_asked, other))
        for other, why in SINGLE.items()
    ]


def too_few_uploads(c: LoadedSettings) -> Violation:
    """Return why a round may have too few uploads, also where clients are absent; else None."""
    robust = c.config.robust
    system = c.config.system
    if robust is None:  # an attacker needs the uploads
        return None
    minimum = system.least if system is not None and may_be_absent(c.config) else c.selector.size
    # a round that draws each client by itself may have any number; an empty one takes no mean
    counts = range(1, c.m + 1) if c.selector.varies else range(minimum, c.selector.size + 1)
    reasons = map(robust.lacks, counts)
    return next(({"why": why} for why in reasons if why), None)


ATTACKED = [
    *single_uploads("attack", attacks_uploads),
    Conflict(
        ('attack = "labels"', "a problem about survival"),
        'attack = "labels" is wrong: {loss} takes times with a mark of censoring, which have no opposite',
        lambda c: c.attack.on_labels and c.problem.takes() == "survival",
    ),
]
ROBUST = [
    *single_uploads("robust", lambda c: c.robust),
    Conflict(
        ("robust", "too few uploads a round"), 'robust = "{robust_name}" is wrong: {why}', too_few_uploads, Moment.DATA
    ),
]


def inexact_message(c: Experiment) -> Violation:
    """Return the compressor of messages that the method needs exactly, or None."""
    exact = c.algorithm.upload.exact
    for way in compressors(c):
        compressor = find_lossy(c, way)
        if compressor and way in exact:
            return {**compressor, "why": exact[way]}
    return None


def wrong_compressor(c: Experiment) -> Violation:
    """Return the compressor that cannot work here, with its error, or None."""
    for way, C in compressors(c).items():
        try:
            C.verify()
        except UserError as error:
            return {"way": way, "C": C.label(), "error": error}
    return None


INEXACT = [
    Conflict(
        ("compress.feedback", "no compress.up"),
        'compress.feedback = "{compress.feedback}" is wrong: it is about compress.up, which is absent',
        lambda c: c.compress.feedback != "auto" and c.compress.up is None,
    ),
    Conflict(
        ("compress.up or down", "a method that needs exact messages"),
        'compress.{way} = "{C}" is wrong: {name} needs exact {way}loads, because {why}',
        inexact_message,
    ),
    Conflict(
        ("compress.up or down", "options that contradict each other"),
        'compress.{way} = "{C}" is wrong: {error}',
        wrong_compressor,
    ),
    Conflict(
        ('compress.feedback = "error" or "none"', "a method whose server keeps the last uploads"),
        'compress.feedback = "{compress.feedback}" is wrong: the server of {name} keeps the last upload of every '
        'client, and what travels is the change, so it must be "memory"',
        lambda c: find_lossy(c, "up") and last_upload_field(c) and c.compress.feedback in ("error", "none"),
    ),
]


def too_few_replies(c: LoadedSettings) -> Violation:
    """Return how many clients must reply for masks to cancel if fewer may, else None."""
    masks, system = c.config.masks, c.config.system
    if masks is None or system is None or not system.absence():
        return None
    needed = masks.minimum_replies(c.selector.size)
    return {"needed": needed} if system.least < needed else None


def rounding_error(c: LoadedSettings) -> Violation:
    """Return the setting that adds up uploads without rounding, where only their exact sum is private; else None."""
    # A sum of uploads rounded one by one is no function of their exact sum, for which the noise is sized.
    privacy, masks = c.config.guarantee(), c.config.masks
    if masks is None or masks.sums == "float" or privacy is None or not (privacy.holds and privacy.sums):
        return None
    if privacy.grid is None:
        return {"right": 'masks.sums must be "float"'}
    needed = math.ceil(-math.log2(privacy.grid(c.m)))
    return {"right": f"it must be at least {needed}"} if masks.fraction < needed else None


SCORES_SHOW = (
    "masks cannot be used with selection.name = {selected!r}: candidates send their scores one by one, and masks hide "
    "single uploads"
)
MASKED = [
    Conflict(("masks", "selection by scores"), SCORES_SHOW, lambda c: isinstance(c.selection, ScoreSelection)),
    Conflict(
        ("masks", "a method whose server needs single uploads"),
        "masks cannot be used with {name}: its server needs uploads one by one, and masks hide single uploads",
        needs_single_uploads,
    ),
    Conflict(
        ("masks", "a method that compresses its uploads"),
        "masks cannot be used with {name}: it compresses its uploads",
        lambda c: c.algorithm.upload.content == "compressed",
    ),
    Conflict(
        ("masks", "compress.up"),
        'compress.up = "{up}" cannot be used with masks: masked uploads have all their numbers, so that nothing is '
        "saved",
    ),
    Conflict(
        ("masks", "a selection of yours by scores"),
        SCORES_SHOW,
        lambda c: c.selector.batch_size is not None,
        Moment.DATA,
    ),
    Conflict(
        ("masks", "one client a round"),
        "selection takes {selector.size} client a round, but masks need at least 2: the sum of one upload is that "
        "upload",
        lambda c: c.selector.size < 2,
        Moment.DATA,
    ),
    Conflict(
        ("masks", "system.least below their threshold"),
        "system.least = {system.least} is wrong: with masks.threshold = {masks.threshold:.3g} masks of {selector.size} "
        "selected clients cancel only where {needed} reply, so it must be at least {needed}",
        too_few_replies,
        Moment.DATA,
    ),
    Conflict(
        ("masks.fraction", "a method that guarantees privacy for exact sums"),
        "masks.fraction = {masks.fraction} is wrong: it rounds single uploads, and {name} guarantees privacy here for "
        "sums of uploads as they are, so {right}",
        rounding_error,
        Moment.DATA,
    ),
]

MESSAGES = {  # rows by the plug-in that names them
    "asynchrony": ASYNCHRONOUS,
    "graph": ON_GRAPH,
    "attack": ATTACKED,
    "robust": ROBUST,
    "compression": INEXACT,
    "masks": MASKED,
}
