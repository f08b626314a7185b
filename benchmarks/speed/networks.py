"""python -m benchmarks.speed.networks: CPU time of a round of networks on one core, ours : a plain torch loop.

FedAvg, one epoch of mini-batches of 10 in float32, 50 samples a client, all clients in every round: MLP 784–200–10 with
50 clients, as the problems ``torch`` and ``mlp``; LeNet on 28 × 28 with 20; ResNet-8 with group norm on 3 × 32 × 32
with 10. The loop is ``benchmarks.speed.models.Loop``; ``vmap`` there trains groups of clients in one pass, and shows
what batching by torch alone gains. All run in the same process in turn. Before they are timed, ours and the loop take
two rounds with the same draws in double precision and must end at the same model but for rounding: ``deviation`` is the
distance of the models divided by that from the start.

Ours includes recording, byte counts and timers. The first round is a warm-up and is left out, and so is evaluating.
Reported are CPU milliseconds a round, best and (median) of the repetitions, and ratios of the best to the loop.
KEY=VALUE such as problem.batched=false changes ours.

With ``--busy`` the same is measured with a copy on each core at once, after the measurement alone: ``busy`` is the
ratio of the copy that has the worst, and ``quoted`` the worse of alone and busy, which is the number to tell others.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.speed.measuring import among, clock, everyone, parser, quoted
from benchmarks.speed.models import (
    BATCH,
    CASES,
    CLASSES,
    LR,
    Batches,
    Case,
    Loop,
    Parts,
    parameters,
    torch,
    vmap_rounds,
)
from benchmarks.speed.printing import Table, best_and_median, tiny
from mpifed import stream
from mpifed.experiment import config
from mpifed.experiment import rounds as round_loop
from mpifed.experiment import run as launch
from mpifed.experiment.config import Job
from mpifed.results.result import RunRecord

GROUP = 25  # clients of a pass of vmap, of 5, 10, 25 and 50 the best for MLP on an AMD EPYC with 512 KB of L2
CLOSEST = 1e-9  # deviation of models in double precision
ROOT = str(Path(__file__).parents[2])  # where problem.module is looked for


class Task(NamedTuple):
    """A network and its clients, the problem that ours computes, and settings of ours."""

    case: Case
    rounds: int
    problem: str = "torch"
    settings: tuple[str, ...] = ()
    device: str = "cpu"

    def table(self) -> dict[str, Any]:
        """The experiment file, evaluated at its start and at its end."""
        case = self.case
        channels, side, _ = case.shape
        network: dict[str, Any] = {"name": "mlp", "hidden": [case.hidden]}
        if self.problem == "torch":
            network = {"name": "torch", "module": f"{case.make.__module__}:{case.make.__name__}"}
            network |= {"shape": list(case.shape), "device": self.device}
        images = {"name": "images", "clients": case.all, "samples": case.samples, "size": side, "channels": channels}
        return {
            "rounds": self.rounds,
            "dtype": "float32",
            "data": {**images, "classes": CLASSES, "per_client": CLASSES, "test": 0.0},
            "problem": network,
            "evaluate": {"every": max(self.rounds, 1)},
            "stop": {"gradient": 0.0},
            "algorithm": {"name": "fedavg", "epochs": 1, "batch_size": BATCH, "step": {"name": "constant", "a": LR}},
            "selection": "all" if case.clients == case.all else {"name": "uniform", "count": case.clients},
        }

    def study(self, *more: str) -> config.Experiment:
        """The experiment, with more settings."""
        return config.experiment(config.override(self.table(), [*self.settings, *more]))


def start(setup: config.Experiment) -> Any:
    """The first model of a run: (n,)."""
    data = setup.data.load(setup.seed, setup.dtype)
    return torch.from_numpy(setup.problem.initial(data, setup.seed).astype(setup.dtype))


def samples(setup: config.Experiment, task: Task) -> Parts:
    """The samples and classes of each client as tensors."""
    data = setup.data.load(setup.seed, setup.dtype)
    X, y = data.rows(0, data.m)
    A = torch.from_numpy(X.astype(setup.dtype)).view(-1, *task.case.shape).to(task.device)
    b = torch.from_numpy(y.astype(np.int64)).to(task.device)
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
    """Seconds of a round after the first, and the result."""

    round: float
    result: RunRecord

    @property
    def x(self) -> np.ndarray:
        assert self.result.x is not None
        return self.result.x


def ours(setup: config.Experiment, clock: Callable[[], float]) -> Ours:
    """Run mpifed in this process, for two rounds or more; all times by this clock.

    A round lasts until the next one begins, so that it has everything that a run does, and evaluating is not in it.
    """
    played, evaluated = round_loop.play_round, round_loop.evaluate_round
    rounds: list[float] = []
    evaluations: list[float] = []

    def marked(*args: Any) -> Any:
        rounds.append(clock())
        return played(*args)

    def clocked(*args: Any) -> Any:
        evaluations.append(clock())
        return evaluated(*args)

    with (
        tempfile.TemporaryDirectory() as folder,
        patch.object(round_loop, "play_round", marked),
        patch.object(round_loop, "evaluate_round", clocked),
    ):
        recorder = launch.start(Job(setup, os.path.join(folder, "out.h5")))
        assert recorder is not None
        result = recorder.result()
    return Ours((evaluations[-1] - rounds[2]) / (len(rounds) - 2), result)


def deviation(task: Task) -> float:
    """How far the loop's model is from ours after two rounds with the same draws, divided by how far it has moved.

    In double precision, for rounding alone moves ResNet-8 in float32 by 0.015 of its way. SystemExit where it is more.
    """
    setup = task._replace(rounds=2).study("dtype=float64")
    x, parts = start(setup).to(task.device), samples(setup, task)
    loop = Loop(task.case.make().double(), x, parts, same_batches(setup, parts))
    for round in (1, 2):
        loop.round(same_clients(setup, task.case, round))
    loop.module.load_state_dict(loop.server)
    found = parameters(loop.module).cpu().numpy()
    away = np.linalg.norm(found - ours(setup, time.process_time).x) / np.linalg.norm(found - x.cpu().numpy())
    if not away < CLOSEST:
        sys.exit(f"{task.case.name}: ours and the loop end at different models, {away:.1e} apart")
    return float(away)


class Turn(NamedTuple):
    """One repetition: CPU seconds of a round of ours, the loop and vmap, and the deviation."""

    ours: float
    loop: float
    vmap: float
    deviation: float


def prepare(task: Task) -> Callable[[], Turn]:
    """A repetition, to be run, after the models have been compared."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)
    setup = task.study()
    x, parts = start(setup), samples(setup, task)
    away = deviation(task)
    loop = Loop(task.case.make(), x, parts)
    vmapped = vmap_rounds(task.case.make(), loop.server, parts, GROUP)

    def seconds(job: Callable[[], object]) -> float:
        job()  # warms up
        return clock(job, task.rounds - 1)

    def run() -> Turn:
        mine = ours(setup, time.process_time)
        plain = seconds(lambda: loop.round(range(task.case.clients)))
        return Turn(mine.round, plain, seconds(vmapped), away)

    return run


def cells(copies: Sequence[Sequence[Turn]]) -> list[Any]:
    """Milliseconds, deviation, and ratios of the best to the best."""
    both = [best_and_median([turn[k] for turn in copies[0]]) for k in (0, 1)]
    least = [Turn(*np.min(own, axis=0)) for own in copies]
    vmap = least[0].vmap / least[0].loop
    return [*both, tiny(least[0].deviation), vmap, *quoted([own.ours / own.loop for own in least])]


def main() -> None:
    options: dict[str, Any] = {"rounds": 4, "repeat": 5, "cases": "MLP,LeNet,ResNet-8", "tiny": False, "busy": False}
    args = parser(__doc__, **options, to=None, settings=None).parse_args()
    sys.path.insert(0, ROOT)
    columns = {"network": 9, "problem": 7, "ours ms (median)": 15, "loop ms (median)": 15, "deviation": 9}
    crowd = {"busy": 5, "quoted": 6} if args.busy else {}
    file = args.to and args.to / "networks.csv"
    table = Table({**columns, "vmap": 5, "alone": 5, **crowd}, file)
    for name in among(args.cases, CASES):
        case = CASES[name].tiny() if args.tiny else CASES[name]
        for problem in ("torch", "mlp") if case.hidden else ("torch",):
            task = Task(case, args.rounds, problem, tuple(args.settings))
            table.row(case.name, problem, *cells(everyone(partial(prepare, task), args)))


if __name__ == "__main__":
    main()
