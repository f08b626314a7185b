"""Runs of mpifed on the networks of ``benchmarks.speed.models``: studies, samples, and how long they take."""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import torch

from benchmarks.speed.models import CLASSES, Case, parameters
from benchmarks.speed.plain_networks import ADAM_LR, BATCH, LAM, LOOPS, LR, MU, RHO, Batches, Parts
from mpifed import stream
from mpifed.experiment import config
from mpifed.experiment import rounds as round_loop
from mpifed.experiment import run as launch
from mpifed.experiment.job import Job
from mpifed.results.result import Result

CLOSEST = 1e-9  # deviation of models in double precision
STEPS = {"epochs": 1, "batch_size": BATCH}
FEDAVG = STEPS | {"name": "fedavg", "step": {"name": "constant", "a": LR}}
ALGORITHMS: dict[str, dict[str, Any]] = {
    "fedavg": FEDAVG,
    "momentum": FEDAVG | {"optimizer": "momentum"},
    "adam": FEDAVG | {"optimizer": "adam", "step": {"name": "constant", "a": ADAM_LR}},
    "fedprox": FEDAVG | {"name": "fedprox", "inner": 1, "mu": MU},
    "scaffold": FEDAVG | {"name": "scaffold"},
    "flame": STEPS | {"name": "flame", "lr": LR, "lam": LAM, "rho": RHO},
}


def table(case: Case, method: str, rounds: int, problem: str = "torch") -> dict[str, Any]:
    """The experiment file of a case; evaluated at its start and at its end."""
    channels, side, _ = case.shape
    network: dict[str, Any] = {"name": "mlp", "hidden": [case.hidden]}
    if problem == "torch":
        module = f"{case.make.__module__}:{case.make.__name__}"
        network = {"name": "torch", "module": module, "shape": list(case.shape)}
    return {
        "rounds": rounds,
        "dtype": "float32",
        "data": {
            "name": "images",
            "clients": case.all,
            "samples": case.samples,
            "size": side,
            "channels": channels,
            "classes": CLASSES,
            "per_client": CLASSES,
            "test": 0.0,
        },
        "problem": network,
        "evaluate": {"every": max(rounds, 1)},
        "stop": {"gradient": 0.0},
        "algorithm": ALGORITHMS[method],
        "selection": "all" if case.clients == case.all else {"name": "uniform", "count": case.clients},
    }


def study(
    case: Case, method: str, rounds: int, problem: str = "torch", overrides: Sequence[str] = ()
) -> config.Experiment:
    """The experiment of a case, with overrides KEY=VALUE."""
    return config.experiment(config.override(table(case, method, rounds, problem), overrides))


def start(setup: config.Experiment) -> Any:
    """The first model of a run: (n,)."""
    data = setup.data.load(setup.seed, setup.dtype)
    return torch.from_numpy(setup.problem.initial(data, setup.seed).astype(setup.dtype))


def samples(setup: config.Experiment, case: Case, device: str = "cpu") -> Parts:
    """The samples and classes of each client as tensors."""
    data = setup.data.load(setup.seed, setup.dtype)
    X, y = data.rows(0, data.m)
    A = torch.from_numpy(X.astype(setup.dtype)).view(-1, *case.shape).to(device)
    b = torch.from_numpy(y.astype(np.int64)).to(device)
    sizes = data.sizes.tolist()
    return list(zip(A.split(sizes), b.split(sizes), strict=True))


def same_batches(setup: config.Experiment, parts: Parts) -> Batches:
    """The mini-batches that our run draws."""

    def batches(i: int, round: int) -> Iterable[tuple[Any, Any]]:
        X, y = parts[i]
        order = torch.from_numpy(stream(setup.seed, "clients", i, round, 0).permutation(len(y))).to(y.device)
        return ((X[rows], y[rows]) for rows in order.split(BATCH))

    return batches


def same_clients(setup: config.Experiment, case: Case, round: int) -> Iterable[int]:
    """The clients that our run selects in a round."""
    selected = setup.selection.selector(setup.seed, case.all, round).select(round, 0)
    return range(case.all) if selected is None else selected.tolist()


class Ours(NamedTuple):
    """Seconds of the first round, of a later one and of one in the second half, of an evaluation, and the result."""

    first: float
    round: float
    late: float
    evaluating: float
    result: Result

    @property
    def x(self) -> np.ndarray:
        assert self.result.x is not None
        return self.result.x


def ours(setup: config.Experiment, clock: Callable[[], float]) -> Ours:
    """Run mpifed in this process, for two rounds or more; all times by this clock.

    A round lasts until the next one begins, so that it has everything that a run does, and evaluating is not in it.
    """
    played, evaluated = round_loop.played, round_loop.evaluated
    rounds: list[float] = []
    evaluations: list[tuple[float, float]] = []

    def marked(*args: Any) -> Any:
        rounds.append(clock())
        return played(*args)

    def clocked(*args: Any) -> Any:
        begun = clock()
        row = evaluated(*args)
        evaluations.append((begun, clock()))
        return row

    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(round_loop, "played", marked),
        patch.object(round_loop, "evaluated", clocked),
    ):
        recorder = launch.start(Job(setup, os.path.join(folder, "out.h5")))
        assert recorder is not None
        result = recorder.result()
    begun, ended = evaluations[-1]
    each = (begun - rounds[2]) / (len(rounds) - 2)
    late = np.median(np.diff([*rounds, begun])[len(rounds) // 2 :])
    return Ours(rounds[2] - rounds[1], each, float(late), ended - begun, result)


def deviation(
    case: Case, method: str, problem: str = "torch", overrides: Sequence[str] = (), device: str = "cpu"
) -> float:
    """How far the loop's model is from ours after two rounds with the same draws, divided by how far it has moved.

    In double precision, for rounding alone moves ResNet-8 in float32 by 0.015 of its way. SystemExit where it is more.
    """
    setup = study(case, method, 2, problem, [*overrides, "dtype=float64"])
    x, parts = start(setup).to(device), samples(setup, case, device)
    loop = LOOPS[method](case.make().double(), x, parts, same_batches(setup, parts))
    for round in (1, 2):
        loop.round(same_clients(setup, case, round))
    loop.module.load_state_dict(loop.server)
    found = parameters(loop.module).cpu().numpy()
    away = np.linalg.norm(found - ours(setup, time.process_time).x) / np.linalg.norm(found - x.cpu().numpy())
    if not away < CLOSEST:
        sys.exit(f"{case.name}, {method}: ours and the loop end at different models, {away:.1e} apart")
    return float(away)
