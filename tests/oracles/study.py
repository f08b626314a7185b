"""A case made ready: its clients, who trains when, the study that mpifed is given, and the comparison of the two."""

from typing import NamedTuple

import numpy as np

import mpifed
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.data.pool import Pool
from mpifed.federation.method import HasPersonalModels
from mpifed.federation.participation.selection import All
from mpifed.problems.problem import Problem
from tests.helpers import traits
from tests.helpers.algorithm_runs import Given, Run

from . import admm, arriving, compressed, dual, exact_penalty, local_steps, on_graphs, personal, second_order
from .graphs import at_the_mean
from .problems import CLASSES, function, trajectory
from .synchronous import rounds

RTOL = 1e-9
SIZES = (3, 23, 7, 4, 15, 5, 11, 9)
FEATURES = 5
FAMILIES = (admm, arriving, compressed, dual, exact_penalty, local_steps, on_graphs, personal, second_order)
ORACLES = {
    name.replace("_", "").lower(): value
    for family in FAMILIES
    for name, value in vars(family).items()
    if getattr(value, "__module__", "") == family.__name__
}


class Samples(NamedTuple):
    """Rows of all clients, one after the other."""

    X: np.ndarray  # (d, n)
    y: np.ndarray  # (d,)
    sizes: np.ndarray  # (m,)


def samples(problem):
    """Data of a problem: clients of uneven size and scale, each with a model of its own."""
    rng = np.random.default_rng(7)
    X, y = [], []
    for d in SIZES:
        A = rng.standard_normal((d, FEATURES)) * rng.uniform(0.3, 1.5) + 0.3 * rng.standard_normal(FEATURES)
        scores = A @ rng.standard_normal((FEATURES, CLASSES)) + rng.standard_normal((d, CLASSES))
        X.append(A)
        y.append(labels(problem, scores))
    return Samples(np.concatenate(X), np.concatenate(y), np.array(SIZES))


def labels(problem, scores):
    if problem == "least-squares":
        return scores[:, 0]
    if problem in ("softmax", "svm"):
        return np.argmax(scores, axis=1)
    return (scores[:, 0] > 0).astype(int)


def draw(counts, seed):
    """Who trains: a list of client numbers a round."""
    rng = np.random.default_rng(seed)
    return [rng.choice(len(SIZES), count, replace=False).tolist() for count in counts]


def expected(case):
    """What the oracle of the case says."""
    clients = clients_of(case.problem)
    draws = [draw(case.counts, 1)]
    if case.method == "accfeddcd":
        draws.append(draw(case.counts, 2))
    if case.graph is not None:
        draws = [draws[0] if selects(case.method) else len(case.counts), case.graph]
    seen = run(case.method, clients, *draws, **case.options)
    return known(clients, seen, case.graph is not None)


def oracle(method):
    """The class of a method, for synchronous.rounds, or its function; FedGiAAsync stands for fedgia-async."""
    return ORACLES.get(method.replace("-", ""))


def run(method, clients, selections, *more, **options):
    """The model of an oracle at the start and after every round, and further columns where there are some."""
    found = oracle(method)
    if isinstance(found, type):
        return rounds(found(clients, **options), selections)
    return found(clients, selections, *more, **options)


def known(clients, seen, nodes=False):
    """What is compared of an oracle's models, or of the models of all ``nodes``, and of further columns."""
    pairs = [one if isinstance(one, tuple) else (one, {}) for one in seen]
    models = [x for x, _ in pairs]
    more = {name: np.array([columns[name] for _, columns in pairs]) for name in pairs[0][1]}
    if nodes:
        models, more = at_the_mean(models)
    return trajectory(clients, models) | more


def clients_of(problem):
    """The f_i of a problem, a table with its name and options."""
    X, y, sizes = samples(problem["name"])
    rows = zip(*(np.split(part, np.cumsum(sizes)[:-1]) for part in (X, y)), strict=True)
    return [function(problem, A, b) for A, b in rows]


def begun(problem, algorithm, **where):
    """A run in this process on the samples of a problem."""
    kind, data = Problem.build(problem, "problem"), samples(problem["name"])
    pool = kind.fit_labels(Pool(data.X, data.y, None, data.sizes))
    return Run(Algorithm.build(algorithm, "algorithm"), kind, data=pool, **where)


def computed(case):
    """What mpifed says in this process: the columns, with the models, of every round."""
    draws = Given(tuple(map(tuple, draw(case.counts, 1))), tuple(map(tuple, draw(case.counts, 2))))
    selection = draws if case.graph is None or selects(case.method) else All()
    run = begun(case.problem, algorithm_of(case), selection=selection, graph=case.graph)
    personal = isinstance(run.algorithm, HasPersonalModels)
    rows = []
    for round in range(len(case.counts) + 1):
        if round:
            run.rounds(1)
        own = {"personal": run.fed.inspect(run.algorithm.personal_models)} if personal else {}
        rows.append(run.row() | {"x": run.server.x} | own)
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def algorithm_of(case):
    return {"name": case.method, **case.options, **(case.fixed or {})}


def recorded(case, folder):
    """What the file of a whole run says of the same study."""
    personal = issubclass(Algorithm.member(case.method, "algorithm"), HasPersonalModels)
    np.savez(folder / "fed.npz", **samples(case.problem["name"])._asdict())
    np.savez(folder / "sel.npz", sel=padded(draw(case.counts, 1)), sel2=padded(draw(case.counts, 2)))
    study = {
        "rounds": len(case.counts),
        "data": {"name": "file", "path": str(folder / "fed.npz")},
        "problem": case.problem,
        "algorithm": algorithm_of(case),
        "selection": {"name": "replay", "path": str(folder / "sel.npz"), "key": "sel"},
        "record": {"models": 1, "personal": personal},
    }
    if case.graph is not None:
        study |= {"graph": case.graph, **({} if selects(case.method) else {"selection": "all"})}
    result = mpifed.run(study)
    return dict(result.rounds) | result.models | ({"personal": result.personal} if personal else {})


def selects(method):
    """Whether a method on a graph has rounds in which only some nodes train."""
    return traits.selections(Algorithm.member(method, "algorithm")) > 0


def padded(draws):
    """(rounds, most), with -1 after a round's clients."""
    rows = np.full((len(draws), max(map(len, draws))), -1)
    for row, chosen in zip(rows, draws, strict=True):
        row[: len(chosen)] = chosen
    return rows


def deviations(right, found):
    """The largest relative deviation of each quantity of an oracle.

    ‖∇f‖² is relative to itself plus 1e-6 of its first value: a gradient near 0 is a difference of large numbers and
    has fewer digits. Vectors are relative to the largest entry of all.
    """
    found_by = {}
    for key, value in right.items():
        if value.ndim > 1:
            found_by[key] = np.max(np.abs(found[key] - value)) / np.max(np.abs(value))
        else:
            found_by[key] = ratio(found[key], value, 1e-6 * value[0] if key == "grad_norm_sq" else 0.0)
    return found_by


def ratio(value, right, floor):
    """max |value − right| / (|right| + floor), 0/0 being 0."""
    gap = np.abs(value - right)
    return np.max(
        np.divide(gap, np.abs(right) + floor, out=np.where(gap > 0, np.inf, 0.0), where=np.abs(right) + floor > 0)
    )
