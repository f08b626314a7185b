"""A case made ready: its clients, who trains when, the study that mpifed is given, and the comparison of the two."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

import mpifed

from .problems import LeastSquares, Logistic, NonconvexLogistic, Softmax, Svm

ROOT = Path(__file__).parents[2]
RTOL = 1e-9
SIZES = (3, 23, 7, 4, 15, 5, 11, 9)
FEATURES, CLASSES = 5, 3
PROBLEMS = {
    "least-squares": LeastSquares,
    "logistic": Logistic,
    "nonconvex-logistic": NonconvexLogistic,
    "softmax": Softmax,
    "svm": Svm,
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


def expected(case, **changed):
    """What the oracle of the case says."""
    module = importlib.import_module(f".{case.method.replace('-', '_')}", __package__)
    clients = clients_of(case.problem)
    if case.graph is not None:
        first = draw(case.counts, 1) if selects(case) else len(case.counts)
        return module.run(clients, first, case.graph, **{**case.options, **changed})
    draws = [draw(case.counts, 1)] + ([draw(case.counts, 2)] if case.method == "accfeddcd" else [])
    return module.run(clients, *draws, **{**case.options, **changed})


def clients_of(problem):
    """The f_i of a problem, a table with its name and options."""
    data, kind = samples(problem["name"]), PROBLEMS[problem["name"]]
    ends = np.cumsum(data.sizes)
    options = {key: value for key, value in problem.items() if key != "name"}
    if problem["name"] in ("softmax", "svm"):
        options["classes"] = CLASSES
    return [kind(data.X[end - d : end], data.y[end - d : end], **options) for d, end in zip(SIZES, ends, strict=True)]


def computed(case, folder):
    """What mpifed says of the same study."""
    np.savez(folder / "fed.npz", **samples(case.problem["name"])._asdict())
    np.savez(folder / "sel.npz", sel=padded(draw(case.counts, 1)), sel2=padded(draw(case.counts, 2)))
    study = {
        "rounds": len(case.counts),
        "data": {"name": "file", "path": str(folder / "fed.npz")},
        "problem": case.problem,
        "algorithm": {"name": case.method, **case.options, **(case.fixed or {})},
        "selection": {"name": "replay", "path": str(folder / "sel.npz"), "key": "sel"},
        "record": {"personal": case.method in ("flame", "flame-dp", "pfedme", "ditto", "apfl")},
    }
    if case.graph is not None:
        study |= {"graph": case.graph, **({} if selects(case) else {"selection": "all"})}
    return mpifed.run(study)


def selects(case):
    """Whether a method on a graph has rounds in which only some nodes train."""
    return case.method in ("fedgia-graph", "fedepm-graph")


def methods():
    """The names of all methods, as the command lists them."""
    command = [sys.executable, "-m", "mpifed", "list", "algorithms"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    names = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("  ")]
    assert "fedgia" in names, done.stdout
    return names


def padded(draws):
    """(rounds, most), with -1 after a round's clients."""
    rows = np.full((len(draws), max(map(len, draws))), -1)
    for row, chosen in zip(rows, draws, strict=True):
        row[: len(chosen)] = chosen
    return rows


def deviations(expected, objective, grad_norm_sq, x, **more):
    """Largest relative deviation of each quantity.

    ‖∇f‖² is relative to itself plus 1e-6 of its first value: a gradient near 0 is a difference of large numbers and
    has fewer digits. A vector is relative to its largest entry.
    """
    floor = 1e-6 * expected["grad_norm_sq"][0]
    found = {
        "objective": ratio(objective, expected["objective"], 0.0),
        "grad_norm_sq": ratio(grad_norm_sq, expected["grad_norm_sq"], floor),
        "x": np.max(np.abs(x - expected["x"][-1])) / np.max(np.abs(expected["x"][-1])),
    }
    for key, value in more.items():
        right = expected[key]
        whole = key == "personal"
        found[key] = np.max(np.abs(value - right)) / np.max(np.abs(right)) if whole else ratio(value, right, 0.0)
    return found


def ratio(value, right, floor):
    """max |value − right| / (|right| + floor), 0/0 being 0."""
    gap = np.abs(value - right)
    return np.max(
        np.divide(gap, np.abs(right) + floor, out=np.where(gap > 0, np.inf, 0.0), where=np.abs(right) + floor > 0)
    )
