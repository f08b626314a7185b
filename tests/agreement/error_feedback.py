"""EF21 and its extensions beside the program of I. Sokolov: models and f of 40 rounds, 6 clients, top-2 of 10."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpifed
from tests.agreement.row import Row, apart
from tests.agreement.stored import case, program, replayed, saved

# The loss of that program, whose regulariser does not depend on the number of samples.
PROBLEM = '''
from mpifed import problems


class Whole(problems.NonconvexLogistic):
    """f_i with (mu/2) Σ x_l²/(1 + x_l²)."""

    def weight(self, d):
        return self.mu + 0.0 * d
'''
# Mini-batches and coins as they are stored, in place of those that the method draws.
DRAWS = """
from typing import Any, NamedTuple

import numpy as np

from mpifed import algorithms

STORED = np.load({path!r})
TAU = int(STORED["tau"][0])
ROWS = STORED["rows"].reshape(len(STORED["rows"]), -1, TAU)


class Batch(NamedTuple):
    f: Any
    block: Any

    def grad(self, x):
        return self.f.problem.grad(self.block, x)


def batch(f):
    return Batch(f, f.block.batch(ROWS[f.round - 1][f.ids], np.full((len(f), TAU), 1 / TAU)))


class SGD(algorithms.EF21SGD):
    def batch(self, f):
        return batch(f)


class Page(algorithms.EF21Page):
    def batch(self, f):
        return batch(f)

    def coin(self, fed):
        return bool(STORED["coins"][fed.round - 1])
"""
START = "the program starts from full gradients, as mpifed does with start = full, the paper from compressed ones"
BOTH = [("ef21", "ef21", {}), ("ef21-pp", "ef21, 3 of 6 clients", {})]
CASES: list[tuple[str, str, str, dict[str, Any]]] = [
    *[(folder, case, method, more) for folder, method, more in BOTH for case in ("equal", "uneven")],
    ("ef21-hb", "equal", "ef21-hb", {"name": "ef21-hb", "eta": 0.5}),
    ("ef21-bc", "equal", "ef21-bc", {"name": "ef21-bc", "down": {"name": "topk", "k": 3}}),
    ("ef21-sgd", "equal", "ef21-sgd", {"name": "SGD", "batch_size": 4}),
    ("ef21-page", "equal", "ef21-page", {"name": "Page", "batch_size": 4}),
]
DRAWN = {
    "ef21-pp": ", selections replayed",
    "ef21-sgd": ", stored rows of mini-batches by a derived class",
    "ef21-page": ", stored coins and rows of mini-batches by a derived class",
}


def rows(scratch: Path) -> Iterator[Row]:
    (scratch / "whole.py").write_text(PROBLEM, "utf-8")
    for folder, name, method, more in CASES:
        Z = case(folder, name)
        compared = f"{Z['rounds']} rounds, 6 clients of {name} sizes{DRAWN.get(folder, '')}, start = full"
        row, default = (
            Row(
                method,
                *program(folder),
                compared,
                apart(found.models["x"], Z["x"]),
                apart(found.rounds["objective"], Z["f"]),
            )
            for found in (beside(folder, Z, more | start, scratch) for start in ({}, {"start": "compressed"}))
        )
        yield row.without(START, default)


def beside(folder: str, Z: dict[str, Any], more: dict[str, Any], scratch: Path) -> mpifed.Result:
    """mpifed on a stored case, with its step size and its draws."""
    compressor = {"name": "topk", "k": Z["k"]}
    algorithm = {"name": "ef21", "compressor": compressor, "gamma": Z["gamma"], "start": "full"} | more
    if "tau" in Z:
        file = scratch / f"draws_{folder[5:]}.py"
        file.write_text(DRAWS.format(path=saved(Z, scratch / f"{folder}.npz")), "utf-8")
        algorithm["name"] = f"{file}:{algorithm['name']}"
    problem = {"name": f"{scratch / 'whole.py'}:Whole", "mu": 2 * Z["lam"]}
    everyone = {} if folder in ("ef21-pp", "ef21-bc") else {"selection": "all"}
    return replayed(Z, scratch, algorithm=algorithm, problem=problem, **everyone)
