"""python -m benchmarks.speed.networks: time of a round of networks, ours : a plain torch loop over clients.

rounds  FedAvg, one epoch of 5 mini-batches (--batches: their sizes) in float32, all clients in every round: MLP
        784–200–10 with 50 clients, as the problems ``torch`` and ``mlp``; LeNet on 28 × 28 with 20; ResNet-8 with group
        norm on 3 × 32 × 32 with 10; CNN: 50 of 1000 clients. The loop is ``benchmarks.speed.models.Loop``; ``vmap``
        there trains groups of clients in one pass, and shows what batching by torch alone gains. All run in the same
        process in turn. Before they are timed, ours and the loop take two rounds with the same draws in double
        precision and must end at the same model but for rounding: ``deviation`` is the distance of the models divided
        by that from the start. Ours includes recording, byte counts and timers. The first round is a warm-up and is
        left out, and so is evaluating. Reported are CPU milliseconds a round, best and (median) of the repetitions,
        and ratios of the best to the loop; with ``--device cuda`` wall milliseconds on a GPU
passes  where the CPU time of a round goes, on one core. ``round ms`` is a round as it is, the best of the repetitions.
        Then a clock runs in each kernel that PyTorch calls in the rounds of further runs, and in each step of the
        optimiser; again the best counts. Fractions of the round: ``products``, kernels of matrix products and
        convolutions; ``gradient``, joining the gradients of all parameters to one vector; ``kernels``, all others;
        ``step``, the optimiser's, in numpy; ``rest``, what is left: torch.func.vmap, autograd, Python and mpifed
        between kernels. The clock counts as kernels

KEY=VALUE such as problem.batched=false changes ours. With ``--busy`` the same is measured with a copy on each core at
once, after the measurement alone: ``busy`` is the ratio of the copy that has the worst, and ``quoted`` the worse of
alone and busy, which is the number to tell others.
"""

import argparse
import os
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.speed.measuring import Table, among, best_and_median, clock, everyone, parser, play, quoted, tiny
from benchmarks.speed.models import (
    CASES,
    CLASSES,
    LR,
    Batches,
    Case,
    Loop,
    Parts,
    parameters,
    sliced,
    torch,
    vmap_rounds,
)
from mpifed.algorithms.parts.optimizers import Optimizer
from mpifed.experiment import config
from mpifed.experiment import rounds as round_loop
from mpifed.experiment import run as launch
from mpifed.experiment.config import Job
from mpifed.extend import stream
from mpifed.results.result import RunRecord

TorchDispatchMode: Any = torch.utils._python_dispatch.TorchDispatchMode
PRODUCTS = ("bmm", "mm", "addmm", "baddbmm", "convolution", "convolution_backward")
STEP = "the optimiser's step"
STEP_SIZE = {"name": "constant", "a": LR}
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
            "algorithm": {"name": "fedavg", "epochs": 1, "batch_size": case.batch, "step": STEP_SIZE},
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


def same_batches(setup: config.Experiment, parts: Parts, batch: int) -> Batches:
    """The mini-batches that our run draws."""

    def batches(i: int, round: int) -> Iterable[tuple[Any, Any]]:
        X, y = parts[i]
        order = torch.from_numpy(stream(setup.seed, "clients", i, round, 0).permutation(len(y))).to(y.device)
        return ((X[rows], y[rows]) for rows in order.split(batch))

    return batches


def same_clients(setup: config.Experiment, case: Case, round: int) -> Iterable[int]:
    """The clients that our run selects in a round."""
    selected = setup.selection.selector(setup.seed, case.all, round).select(round, 0)
    return range(case.all) if selected is None else selected.tolist()


def clock_of(device: str) -> Callable[[], float]:
    """Return the clock of rounds: CPU seconds, or on a GPU wall seconds once its kernels have ended."""

    def wall() -> float:
        torch.cuda.synchronize()
        return time.perf_counter()

    return wall if device == "cuda" else time.process_time


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
    loop = Loop(task.case.make().double(), x, same_batches(setup, parts, task.case.batch))
    for round in (1, 2):
        loop.round(same_clients(setup, task.case, round))
    loop.module.load_state_dict(loop.server)
    found = parameters(loop.module).cpu().numpy()
    away = np.linalg.norm(found - ours(setup, time.process_time).x) / np.linalg.norm(found - x.cpu().numpy())
    if not away < CLOSEST:
        sys.exit(f"{task.case.name}: ours and the loop end at different models, {away:.1e} apart")
    return float(away)


class Turn(NamedTuple):
    """One repetition: seconds of a round of ours, the loop and vmap, and the deviation."""

    ours: float
    loop: float
    vmap: float
    deviation: float


def prepare(task: Task) -> Callable[[], Turn]:
    """Compare the models, and return a function that measures one repetition."""
    one_thread()
    setup, now = task.study(), clock_of(task.device)
    batch = task.case.batch
    x, parts = start(setup).to(task.device), samples(setup, task)
    away = deviation(task)
    loop = Loop(task.case.make(), x, sliced(parts, batch))
    vmapped = vmap_rounds(task.case.make().to(task.device), loop.server, parts[: task.case.clients], GROUP, batch)

    def seconds(job: Callable[[], object]) -> float:
        job()  # warms up
        return clock(job, task.rounds - 1, now)

    def run() -> Turn:
        mine = ours(setup, now)
        plain = seconds(lambda: loop.round(range(task.case.clients)))
        return Turn(mine.round, plain, seconds(vmapped), away)

    return run


def one_thread() -> None:
    """Give PyTorch one thread."""
    os.environ["OMP_NUM_THREADS"] = "1"
    torch.set_num_threads(1)


def cells(copies: Sequence[Sequence[Turn]]) -> list[Any]:
    """Milliseconds, deviation, and ratios of the best to the best."""
    both = [best_and_median([turn[k] for turn in copies[0]]) for k in (0, 1)]
    least = [Turn(*np.min(own, axis=0)) for own in copies]
    vmap = least[0].vmap / least[0].loop
    return [*both, tiny(least[0].deviation), vmap, *quoted([own.ours / own.loop for own in least])]


def rounds(args: argparse.Namespace) -> None:
    """Print the table of rounds."""
    columns = {"network": 9, "problem": 7, "batch": 5, "ours ms (median)": 15, "loop ms (median)": 15, "deviation": 9}
    crowd = {"busy": 5, "quoted": 6} if args.busy else {}
    table = Table({**columns, "vmap": 5, "alone": 5, **crowd}, args.to and args.to / "networks.csv")
    for case in cases(args):
        for problem in ("torch", "mlp") if case.hidden and args.device == "cpu" else ("torch",):
            task = Task(case, args.rounds, problem, tuple(args.settings), args.device)
            table.row(case.name, problem, case.batch, *cells(everyone(partial(prepare, task), args)))


def cases(args: argparse.Namespace) -> list[Case]:
    """Return the networks that are asked for."""
    found = [CASES[name].with_batch(batch) for name in among(args.cases, CASES) for batch in args.batches]
    return [case.tiny() for case in found] if args.tiny else found


class Clock(TorchDispatchMode):  # type: ignore[misc]
    """CPU seconds in kernels of PyTorch, by their names, while ``on``."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds: defaultdict[str, float] = defaultdict(float)
        self.on = False

    def __torch_dispatch__(self, kernel: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return self.timed(kernel.overloadpacket.__name__, kernel, *args, **(kwargs or {}))

    def timed(self, name: str, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function and add its seconds to those of ``name``."""
        begun = time.process_time()
        result = function(*args, **kwargs)
        if self.on:
            self.seconds[name] += time.process_time() - begun
        return result


def watched(task: Task) -> dict[str, float]:
    """Return the CPU seconds a round of the parts, without the rest."""
    clock = Clock()
    played, step = round_loop.play_round, Optimizer.step
    rounds = iter(range(task.rounds + 1))

    def marked(*args: Any) -> Any:
        clock.on = next(rounds) > 1  # the first round warms up
        result = played(*args)
        clock.on = False
        return result

    def stepped(*args: Any) -> Any:
        return clock.timed(STEP, step, *args)

    with clock, patch.object(round_loop, "play_round", marked), patch.object(Optimizer, "step", stepped):
        ours(task.study(), time.process_time)
    seconds = {name: value / (task.rounds - 1) for name, value in clock.seconds.items()}
    found = {"products": sum(seconds.pop(name, 0.0) for name in PRODUCTS), "gradient": seconds.pop("cat", 0.0)}
    optimizer = seconds.pop(STEP, 0.0)
    return found | {"kernels": sum(seconds.values()), "step": optimizer}


def passes(args: argparse.Namespace) -> None:
    """Print the table of where a round goes."""
    one_thread()
    names = ("products", "gradient", "kernels", "step", "rest")
    table = Table(
        {"network": 9, "batch": 5, "round ms": 8, **dict.fromkeys(names, 7)}, args.to and args.to / "passes.csv"
    )
    for case in cases(args):
        task = Task(case, args.rounds, settings=tuple(args.settings))
        whole = min(ours(task.study(), time.process_time).round for _ in range(args.repeat))
        parts = min((watched(task) for _ in range(args.repeat)), key=lambda parts: sum(parts.values()))
        fractions = [part / whole for part in parts.values()]
        table.row(case.name, case.batch, 1e3 * whole, *fractions, 1 - sum(fractions))


def main() -> None:
    options: dict[str, Any] = {
        "rounds": 4,
        "repeat": 5,
        "cases": "MLP,LeNet,ResNet-8",
        "batches": "10",
        "tiny": False,
        "busy": False,
    }
    args = parser(__doc__, part="rounds", **options, device="cpu", to=None, settings=None).parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        sys.exit("PyTorch finds no GPU here")
    sys.path.insert(0, ROOT)
    play({"rounds": rounds, "passes": passes}, args)


if __name__ == "__main__":
    main()
