"""The ten methods of the comparison with FLamby, and their runs on a task."""

from typing import Any, NamedTuple

import numpy as np

from benchmarks.sites.flamby import SEEDS, Task
from benchmarks.sites.running import done
from mpifed import Result
from mpifed.core.typing import Array

ROUNDS = {"averaging": 100, "others": 300}
LOOSE, TIGHT = 1e-6, 1e-10  # ‖∇f‖


def methods(task: Task) -> dict[str, dict[str, Any]]:
    """Name -> the table [algorithm] on this task.

    TCGA's features are not normalised, so that steps are shorter, and the loss of Cox has no mini-batches.
    """
    cox = task.metric == "c-index"
    steps = {"k0": 10, "step": {"name": "constant", "a": 0.02 if cox else 0.1}}
    if not cox:
        steps["batch_size"] = 4
    server = {"lr": 0.05, "beta1": 0.9, "beta2": 0.99}
    return {
        "FedAvg": {"name": "fedavg"} | steps,
        "FedProx": {"name": "fedprox", "mu": 0.01, "inner": 1} | steps,
        "Scaffold": {"name": "scaffold"} | steps,
        "FedAdam": {"name": "fedopt", "server": {"name": "adam"} | server} | steps,
        "FedAdagrad": {"name": "fedopt", "server": {"name": "adagrad", "lr": 0.1}} | steps,
        "FedYogi": {"name": "fedopt", "server": {"name": "yogi"} | server} | steps,
        "FedGiA": {"name": "fedgia", "t": 0.15, "k0": 5},
        "FedADMM": {"name": "fedadmm", "k0": 1},
        "ProxSkip": {"name": "proxskip", "p": 0.1},
        "FedNL": {"name": "fednl", "option": "A" if cox else "B", "line_search": True},
    }


class Runs(NamedTuple):
    """Five seeds of a method: the metric of each client and of all (5, m + 1); f − f*, ‖∇f‖, rounds and bytes (5,)."""

    scores: Array
    gap: Array
    gradient: Array
    rounds: Array
    bytes: Array


def optimum(task: Task, clients: list[int] | None = None) -> tuple[Result, Array]:
    """The result of newton and its model, on all clients or some.

    A little regularisation is added where a client alone may have no optimum.
    """
    data = task.data(clients)
    study = {"algorithm": "newton", "rounds": 30, "stop": {"gradient": TIGHT**2}, "data": data}
    problem = task.problem
    if clients is not None and task.metric == "accuracy":
        problem = task.problem | {"mu": 1e-3}
    return done(study | {"objective": {"weights": "samples"}, "problem": problem})


def runs(task: Task, data: Any, algorithm: dict[str, Any], best: float) -> Runs:
    """All seeds of a method, from the model 0; without mini-batches and coins they have the same bits: one is run."""
    chance = "batch_size" in algorithm or algorithm["name"] == "proxskip"
    averaging = "step" in algorithm
    end = TIGHT if algorithm["name"] == "fednl" else LOOSE
    found = []
    for seed in SEEDS if chance else SEEDS[:1]:
        study = {
            "seed": seed,
            "algorithm": algorithm,
            "rounds": ROUNDS["averaging" if averaging else "others"],
            "stop": {"gradient": end**2},
            "objective": {"weights": "samples"},
            "problem": task.problem,
            "data": data,
        }
        if algorithm["name"] != "fednl":
            study["selection"] = "all"
        result, x = done(study)
        rounds = result.rounds
        found.append(
            (
                task.scores(x),
                rounds["objective"][-1] - best,
                np.sqrt(rounds["grad_norm_sq"][-1]),
                result.cr,
                rounds["bytes_up"][-1] + rounds["bytes_down"][-1],
            )
        )
    found *= 1 if chance else len(SEEDS)
    return Runs(*(np.array(values) for values in zip(*found, strict=True)))
