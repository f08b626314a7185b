"""Table of conflicts of methods, problems and clients: which two parts of a study do not go together, and why.

METHODS are judged for every study, CONFLICTS only where it has the part that stands first in them: the plug-in of that
part names them in ``conflicts``, as a plug-in of a user does. ``message_conflicts`` has the rows about what travels.
The first row that a study breaks ends it. The page "what goes with what" is printed from all of them.
"""

from collections.abc import Sequence
from typing import Any

from mpifed.core.toml import toml_value
from mpifed.features.conditions import (
    ONE,
    Violation,
    has_weights,
    may_be_absent,
    may_shorten,
    mean_bias,
    minibatch_size,
)
from mpifed.features.conflict import Conflict, LoadedSettings, Moment
from mpifed.features.matching import explain_mismatch
from mpifed.features.settings import Evaluate, Experiment
from mpifed.federation.method import FederatedMethod, HasPersonalModels, has_proximal_step
from mpifed.federation.traits import MeanEstimate, required_methods
from mpifed.problems.problem import Problem


def mismatch(c: Experiment) -> Violation:
    """Return what the method needs and the problem lacks, or None."""
    lacking = [need for need in required_methods(c.algorithm) if not c.problem.has(need)]
    return {"mismatch": explain_mismatch(c.algorithm, c.problem, lacking)} if lacking else None


def mini_batches(c: Experiment) -> Violation:
    """Return the size of mini-batches, with its key, where f_i is no mean over samples; else None."""
    if c.problem.sampled:
        return None
    solver = getattr(c.algorithm, "solver", None)
    for key, table in {"algorithm": c.algorithm, "algorithm.solver": solver, "selection": c.selection}.items():
        if size := getattr(table, "batch_size", 0):
            return {"key": key, "size": size}
    return None


def too_few_evaluations(c: Experiment) -> Violation:
    """Return how often a run is evaluated where that is not more often than its patience lasts."""
    times = 1 + -(-c.rounds // c.evaluate.every)
    return {"times": times} if c.stop.patience and times <= c.stop.patience else None


def unfilled_batch(c: LoadedSettings) -> Violation:
    """Return the smallest client, if it never fills a mini-batch of an epoch and smaller ones are left out; or None."""
    part: Any = getattr(c.config.algorithm, "solver", None) or c.config.algorithm
    drops = getattr(part, "last_batch", "") == "drop" and part.epochs and not getattr(part, "steps", None)
    key = "algorithm" if part is c.config.algorithm else "algorithm.solver"
    smallest = {"key": key, "client": c.data.sizes.argmin(), "samples": c.data.sizes.min()}
    return smallest if drops and c.data.sizes.min() < part.batch_size else None


METHODS = [
    Conflict(
        ("stop.simulated_seconds", "no table [system]"),
        "stop.simulated_seconds = {stop.simulated_seconds} is wrong: time is simulated only with a table [system], "
        "which states the speed of the clients",
        lambda c: c.stop.simulated_seconds and c.system is None,
        Moment.READ,
    ),
    Conflict(("a method", "a problem without what it needs"), "{mismatch}", mismatch),
    Conflict(
        ("stop.accuracy", "a problem without classes"),
        "stop.accuracy = {stop.accuracy} is wrong: {loss} has no classes, so no accuracy is recorded",
        lambda c: c.stop.accuracy and not c.problem.classifies(),
    ),
    Conflict(
        ("data.stratify", "a problem without classes"),
        "data.stratify = true divides classes, and {loss} has none: leave it out",
        lambda c: getattr(c.data, "stratify", False) and not c.problem.classifies(),
    ),
    Conflict(
        ("mini-batches", "a problem whose f_i is no mean over samples"),
        "{key}.batch_size = {size} is wrong: {loss} has no mini-batches, for f_i is no mean over samples: it must be 0",
        mini_batches,
    ),
    Conflict(
        ('last_batch = "drop"', "a client of fewer samples than batch_size"),
        '{key}.last_batch = "drop" leaves client {client} no mini-batch: write "merge" or {key}.batch_size = {samples}',
        unfilled_batch,
        Moment.DATA,
    ),
    Conflict(
        ("a method on graphs", "no table [graph]"),
        'graph is missing: {name} has no server, so it needs a graph, such as graph = "ring"',
        lambda c: c.graph is None and c.algorithm.on_graph,
    ),
]


def default_numbers(problem: Problem) -> list[str]:
    """Return the numbers of each client that are evaluated where a study names none."""
    return [*(["accuracy"] if problem.classifies() else []), *problem.measure_names()]


def list_numbers(problem: Problem) -> list[str]:
    """Return all numbers of each client that a study may name."""
    return list(dict.fromkeys([*default_numbers(problem), *problem.client_measures()]))


def select_numbers(problem: Problem, wanted: bool | str | Sequence[str]) -> list[str]:
    """Return the numbers that ``evaluate.clients`` asks for; true: the default ones."""
    if isinstance(wanted, bool):
        return default_numbers(problem) if wanted else []
    return list(dict.fromkeys([wanted] if isinstance(wanted, str) else wanted))


def no_default_number(c: Experiment) -> Violation:
    """Return the key that asks for default numbers of clients where a problem has none, or None."""
    key = "unseen" if c.evaluate.unseen else "clients"
    by_default = c.evaluate.clients is True or (c.evaluate.unseen and not c.evaluate.clients)
    if not by_default or default_numbers(c.problem):
        return None
    return {"key": key, "value": toml_value(getattr(c.evaluate, key))}


def unknown_number(c: Experiment) -> Violation:
    """Return the first number asked for that a problem does not have, or None."""
    numbers = list_numbers(c.problem)
    for name in select_numbers(c.problem, c.evaluate.clients):
        if name not in numbers:
            return {"number": name, "there": f"it has {', '.join(numbers)}" if numbers else "it has none"}
    return None


EVALUATED = [
    Conflict(
        ("evaluate.clients", "a problem without classes and metrics"),
        "evaluate.{key} = {value} is wrong: {loss} has neither classes nor a metric, so nothing is evaluated of each "
        "client",
        no_default_number,
    ),
    Conflict(
        ("evaluate.clients", "a problem without that number"),
        "evaluate.clients names {number!r}, which {loss} does not have of each client: {there}",
        unknown_number,
    ),
]


def unused_key(c: Experiment) -> Violation:
    """Return the first key about clients that never train where there are none, else None."""
    keys = [key for key in ("unseen_steps", "unseen_step") if getattr(c.evaluate, key) != getattr(Evaluate(), key)]
    return {"key": keys[0]} if keys and not c.evaluate.unseen else None


UNSEEN = [
    Conflict(
        ("evaluate.unseen_step", "no evaluate.unseen"),
        "evaluate.{key} has no effect without evaluate.unseen: leave it out",
        unused_key,
    ),
    Conflict(
        ("evaluate.unseen", "a problem without Lipschitz constants"),
        "evaluate.unseen_step is missing: {loss} tells no Lipschitz constants r_i, so the steps of clients that never "
        "train need a size, such as evaluate.unseen_step = 0.1",
        lambda c: c.evaluate.unseen and c.evaluate.unseen_step is None and not c.problem.has("lipschitz"),
    ),
    Conflict(
        ("evaluate.unseen", 'data.standardise = "federated"'),
        'data.standardise = "federated" is wrong with evaluate.unseen: sums would travel from clients that never take '
        'part, so it must be "own"',
        lambda c: c.evaluate.unseen and getattr(c.data, "standardise", None) == "federated",
    ),
]


TRAINED = [
    Conflict(
        ("problem.augment", "a method without mini-batches"),
        "problem.augment is wrong: it changes samples of mini-batches, and {name} takes none here; where a method has "
        "some, write algorithm.batch_size = 10",
        lambda c: c.problem.augments() and not minibatch_size(c),
    ),
    Conflict(
        ("problem.autocast", 'dtype = "float64"'),
        'problem.autocast = "{problem.autocast}" is wrong with dtype = "float64": it makes some layers of single '
        'precision compute in half of it, so write dtype = "float32"',
        lambda c: c.dtype == "float64" and getattr(c.problem, "autocast", None),
    ),
]

CHOSEN = [
    Conflict(
        ("stop.patience", "fewer evaluations"),
        "stop.patience = {stop.patience} cannot end a run that is evaluated {times} times: lower it or evaluate.every",
        too_few_evaluations,
    ),
]


def has_personal_models(method: FederatedMethod) -> bool:
    """Return whether clients of a method have models of their own."""
    return isinstance(method, HasPersonalModels)


PERSONAL = [
    Conflict(
        ("record.personal", "a method without personal models"),
        "record.personal = true is wrong: {name} has no personal models, and nothing stays with clients by personal",
        lambda c: not (c.personal or has_personal_models(c.algorithm)),
    ),
]


def weighs_models(c: Experiment) -> bool:
    """Return whether a server averages models with weights of clients."""
    return has_weights(c) and c.algorithm.upload.averaged and not c.algorithm.on_graph


def uneven_uploads(c: Experiment) -> Violation:
    """Return the table or key that does more with averaged models than adding them up, or None."""
    if not weighs_models(c):
        return None
    keys = {"masks": c.masks, "compress": c.compress, 'selection.name = "importance"': c.selection.weighs_replies}
    return next(({"with": key} for key, value in keys.items() if value), None)


WEIGHTED = [
    Conflict(
        ("objective.weights", "a method on graphs that averages models"),
        "objective.weights = {weights} is wrong: {name} says Upload(averaged=True), which is about a server's mean of "
        "models, and it has no server, so leave averaged out of its upload: weights are then those of the f_i",
        lambda c: c.algorithm.upload.averaged and c.algorithm.on_graph,
    ),
    Conflict(
        ("objective.weights", "masks, compress or importance, where a server averages models"),
        "objective.weights = {weights} is wrong: {name} averages models with these weights, which only plain sums of "
        'uploads can have, so it must be "clients" with {with}',
        uneven_uploads,
    ),
    Conflict(
        ("objective.weights", "algorithm.certify, where a server averages models"),
        "objective.weights = {weights} is wrong: the theorem of {name} is about equal weights, so with "
        'algorithm.certify = true it must be "clients"',
        lambda c: weighs_models(c) and c.algorithm.certify,
    ),
    Conflict(
        ("objective.weights in numbers", "a method that needs majorizer_inverse"),
        "objective.weights = {weights} is wrong: {name} needs majorizer_inverse here, which takes weights by samples "
        'only, so it must be "samples" or "clients"; algorithm.H = "diagonal" takes all',
        lambda c: (
            c.objective.weights not in ("clients", "samples") and "majorizer_inverse" in required_methods(c.algorithm)
        ),
    ),
]


def no_proximal_step(c: Experiment) -> Violation:
    """Return why the server of a method has no proximal step for a penalty, or None."""
    if not c.objective.penalised:
        return None
    why = c.algorithm.no_proximal_step.why
    if c.algorithm.on_graph:
        why = "it has no server, which would take the proximal step"
    elif c.algorithm.upload.averaged:
        why = "its server averages models that clients have trained on their f_i, without the penalty"
    elif has_proximal_step(c.algorithm):
        return None
    elif "hess" in {need.name for need in c.algorithm.requires}:
        why = "its steps are in the metric of Hessians, in which the proximal operator of a penalty has no closed form"
    key = "l1" if c.objective.l1 else "l2"
    return {"key": key, "value": getattr(c.objective, key), "why": why}


PENALISED = [
    Conflict(
        ("objective.l1 or l2", "a method without a proximal step"),
        "objective.{key} = {value} is wrong: {name} cannot take a penalty into account, because {why}; "
        "{proximal_methods} can",
        no_proximal_step,
    ),
    Conflict(
        ("objective.unpenalised", "no objective.l1 and l2"),
        "objective.unpenalised is wrong without objective.l1 and objective.l2: there is no penalty to leave out",
        lambda c: c.objective.unpenalised is not None and not c.objective.penalised,
    ),
]


def same_sets(c: LoadedSettings) -> bool:
    """Return whether clients by turns always form the same sets, of a method that exchanges within these alone."""
    return c.config.algorithm.mean_estimate is MeanEstimate.COUPLED and c.config.selection.repeats_sets(c.m)


def missing_odds(c: Experiment) -> bool:
    """Return whether neither the study nor the problem tells the odds of clients that are not equally likely."""
    return c.selection.weighs_replies and getattr(c.selection, "odds", ()) is None and not c.problem.has("lipschitz")


SELECTED = [
    Conflict(
        ('selection.name = "importance"', "a method that needs equal probabilities"),
        'selection.name = "importance" is wrong: {name} needs equal probabilities, because '
        '{algorithm.mean_estimate.why}, so it must be one such as "uniform"',
        lambda c: c.selection.weighs_replies and not mean_bias(c),
    ),
    Conflict(
        ('selection.name = "importance"', "a problem without Lipschitz constants"),
        "selection.odds is missing: {loss} tells no Lipschitz constants L_i to take odds from",
        missing_odds,
    ),
    Conflict(
        ('selection.name = "greedy"', "a method without dual steps"),
        'selection.name = "greedy" is wrong: clients of {name} have no dual step to score, so it must be "biased" (by '
        'gradients), "power-of-choice" (by losses) or one without scores',
        lambda c: not isinstance(c.algorithm, c.selection.scored_methods),
    ),
    Conflict(
        ('selection.name = "cyclic"', "a method that exchanges within the selected clients"),
        "selection.overlap = 0 is wrong: {name} exchanges within the selected clients alone, and {selector.size} of "
        "{m} by turns are always the same sets, so it must be at least 1",
        same_sets,
        Moment.DATA,
    ),
]


def no_deadline(c: Experiment) -> Violation:
    """Return the missing key without which clients never take fewer local steps, or None."""
    if not may_shorten(c):
        return None
    return next(({"key": key} for key in ("deadline", "speed") if getattr(c.system, key) is None), None)


def timeless_availability(c: Experiment) -> Violation:
    """Return the availability by which clients come and go in simulated time where rounds take none, or None."""
    assert c.system is not None
    availability = c.system.availability
    if availability is None or not availability.by_time or c.system.takes_time():
        return None
    return {"value": toml_value(availability.label())}


TIMED = [
    Conflict(
        ("system.dropout, deadline or availability", "a method that needs a gradient of every client"),
        "system.{absence} = {absent} is wrong: {name} needs a gradient of every client in {when}, also of those that "
        "are not selected, so no client can be absent",
        lambda c: may_be_absent(c) and c.algorithm.participation.everyone,
    ),
    Conflict(
        ("system.availability by time", "no system.speed, bandwidth or latency"),
        "system.availability = {value} is wrong without system.speed, latency or a bandwidth: rounds take no time, so "
        "that the same clients would be there in all of them; give one, such as system.latency = 0.1",
        timeless_availability,
    ),
    Conflict(
        ("system.availability", "a selection that needs all clients to be there"),
        'selection.name = "{selected}" is wrong with system.availability: it does not select among the clients that '
        'are there, so it must be "uniform", "poisson", "all", "biased", "power-of-choice" or "greedy"',
        lambda c: c.config.system.availability and c.config.asynchronous is None and c.selector.among is None,
        Moment.DATA,
    ),
    Conflict(
        ("system.speed", "a method that does not tell its work"),
        "system.passes is missing: {name} cannot tell beforehand how often its clients pass over their samples, so "
        "system.speed needs it",
        lambda c: c.system.speed and c.system.passes is None and c.algorithm.sample_gradients(ONE) is None,
    ),
    Conflict(
        ("system.partial", "no system.deadline or speed"),
        "system.partial = true is wrong without system.{key}: clients take fewer local steps where not all of them fit "
        "into the deadline",
        no_deadline,
    ),
    Conflict(
        ("system.partial", "a method without local steps"),
        "system.partial = true is wrong: clients of {name} cannot take fewer local steps, those of {partial_methods} "
        "can",
        lambda c: may_shorten(c) and c.algorithm.local_steps(ONE) is None,
    ),
]

CONFLICTS = {  # rows by the plug-in that names them
    "by_client": EVALUATED,
    "unseen": UNSEEN,
    "network_training": TRAINED,
    "best_model": CHOSEN,
    "personal_models": PERSONAL,
    "client_weights": WEIGHTED,
    "penalty": PENALISED,
    "selection_laws": SELECTED,
    "simulated_time": TIMED,
}
