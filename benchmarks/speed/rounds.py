"""python -m benchmarks.speed.rounds: CPU time of a round, ours : a plain numpy loop over clients.

rounds   FedAvg with 5 full-gradient steps on logistic loss. A: 128 clients × 70 samples × 1024 features; B: 1000 × 20
         × 20; C: 10,000 × 20 × 20 with 100 selected clients
local    methods with inner loops, noise, or mini-batches of a quarter of the samples, in float32, with all clients in
         every round. small: 1000 × 20 × 20; middle: 128 × 100 × 100. The loop draws from one generator for all clients

Ours includes recording, byte counts, timers and an evaluation every 20 rounds (local: at the end), and what a run does
once: the result file, the evaluation of the start, the checkpoint of the end, together 15 to 25 ms. The loop, which is
``benchmarks.speed.plain``, does none of that. Both run in the same process in turn. Reported are CPU milliseconds a
round, the best and (median) of the repetitions, and the ratio of the best ones. ``deviation`` is that of the models; of
``local``, after three rounds in which the loop draws the same numbers as ours. KEY=VALUE such as block_bytes=524288
changes ours.

With ``--busy`` the same is measured with a copy on each core at once, after the measurement alone: ``busy`` is the
ratio of the copy that has the worst, and ``quoted`` the worse of alone and busy, which is the number to tell others.

With ``--sizes`` blocks of fixed sizes are measured too, in turn with ours, which tries some in its first rounds and
keeps one: ``best`` is the lowest of their ratios (of ``quoted``, with ``--busy``), and its size.

With ``--bare`` so is a bare loop over blocks (``benchmarks.speed.bare``) where all clients are in every round: ``bare``
is its ratio to the plain loop, with ``--busy`` that of the copy that has the worst.
"""

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.speed.bare import bare_loop
from benchmarks.speed.measuring import among, everyone, kernels, parser, play, quoted
from benchmarks.speed.plain import GAMMA, MU, STEPS, Draw, Plain, fedavg_loop
from benchmarks.speed.printing import Table, best_and_median, figure, tiny
from mpifed import stream
from mpifed.experiment import config, serving
from mpifed.experiment import run as launch
from mpifed.experiment.config import Job
from mpifed.experiment.rounds import run_rounds
from mpifed.features.block_sizes.block_sizes import SIZES
from mpifed.results.result import RunRecord

CASES = {  # clients, samples, features, and how many clients take part
    "A": (128, 70, 1024, None),
    "B": (1000, 20, 20, None),
    "C": (10_000, 20, 20, 100),
    "small": (1000, 20, 20, None),
    "middle": (128, 100, 100, None),
}
WHOLE: dict[str, dict[str, Any]] = {"fedadmm": {"k0": 10}, "fedpd": {"k0": 5}, "fedepm": {"k0": 12, "mu0": 0.05}}
BATCHES: dict[str, dict[str, Any]] = {  # with mini-batches of a quarter of the samples
    "flame": {"epochs": 5},
    "pfedme": {"epochs": 5},
    "scaffold": {"epochs": 2},
    "fedavg": {"k0": 5},
}
FULL = {"name": "fedavg", "k0": STEPS, "step": {"name": "constant", "a": GAMMA}}
FEWER = 10  # rounds of ``local`` for each of the loop


class Task(NamedTuple):
    """A method on clients of a size, and the settings of ours."""

    case: str
    dtype: str
    rounds: int
    method: dict[str, Any] = FULL
    every: int = 20
    settings: tuple[str, ...] = ()
    kind: str = "numpy"  # of a bare loop beside it
    bare: bool = False

    def study(self, *more: str) -> config.Experiment:
        """The experiment, with more settings."""
        m, d, n, selected = CASES[self.case]
        table = {
            "rounds": self.rounds,
            "dtype": self.dtype,
            "data": {"name": "gaussian", "clients": m, "samples": d, "features": n},
            "problem": {"name": "logistic", "mu": MU},
            "evaluate": {"every": self.every},
            "stop": {"gradient": 0.0},
            "algorithm": self.method,
            "selection": {"name": "all"} if selected is None else {"name": "uniform", "count": selected},
        }
        return config.experiment(config.override(table, [*self.settings, *more]))


def timed(setup: config.Experiment) -> tuple[RunRecord, float]:
    """Run mpifed in this process: the result, and the CPU seconds of its rounds, without loading the data."""
    spent = []

    def clocked(*args: Any) -> Any:
        begun = time.process_time()
        outcome = run_rounds(*args)
        spent.append(time.process_time() - begun)
        return outcome

    with tempfile.TemporaryDirectory() as folder, patch.object(serving, "run_rounds", clocked):
        recorder = launch.start(Job(setup, os.path.join(folder, "out.h5")))
        assert recorder is not None
        return recorder.result(), spent[0]


def ours(setup: config.Experiment) -> tuple[float, np.ndarray]:
    """CPU seconds of a round of mpifed in one process, and the model."""
    result, seconds = timed(setup)
    assert result.x is not None
    return seconds / setup.rounds, result.x


class Pair(NamedTuple):
    """One repetition: CPU seconds of a round of both, the largest deviation of the models, and seconds of others."""

    ours: float
    loop: float
    deviation: float
    fixed: tuple[float, ...] = ()  # ours, for each of the sizes
    bare: float | None = None  # a bare loop over blocks


def away(x: np.ndarray, y: np.ndarray) -> float:
    """The largest deviation of two models, relative to the largest number."""
    return float(np.abs(x - y).max() / np.abs(y).max())


def prepare(task: Task, sizes: Sequence[int] = ()) -> Callable[[], Pair]:
    """A repetition of FedAvg with full gradients, to be run."""
    setup = task.study()
    loop = fedavg_loop(setup)
    fixed = [task.study(f"block_bytes={size}") for size in sizes]
    bare = bare_loop(setup, task.kind == "compiled") if task.bare else None

    def run() -> Pair:
        (a, x), (b, y) = ours(setup), loop()
        c, z = bare() if bare else (None, y)
        return Pair(a, b, max(away(x, y), away(z, y)), tuple([ours(one)[0] for one in fixed]), c)

    return run


def plain(task: Task, setup: config.Experiment, draw: Draw) -> Plain:
    """The plain loop of a method."""
    data = setup.data.load(setup.seed, setup.dtype)
    X, y = data.rows(0, data.m)
    parts = list(zip(np.split(X, data.m), np.split(y, data.m), strict=True))
    return Plain(task.method, parts, draw)


def deviation(task: Task) -> float:
    """The largest relative deviation of the models where the loop draws from the streams of ours."""
    setup = task.study()
    loop = plain(task, setup, lambda i, round: stream(setup.seed, "clients", i, round, 0))
    for _ in range(setup.rounds):
        loop.round()
    return away(loop.x, ours(setup)[1])


def prepare_local(task: Task) -> Callable[[], Pair]:
    """A repetition of a method, to be run."""
    setup, off = task.study(), deviation(task._replace(rounds=3, every=3))
    rng = np.random.default_rng(0)

    def run() -> Pair:
        loop = plain(task, setup, lambda i, round: rng)
        count = max(1, setup.rounds // FEWER)
        begun = time.process_time()
        for _ in range(count):
            loop.round()
        return Pair(ours(setup)[0], (time.process_time() - begun) / count, off)

    return run


def ratio(pairs: Sequence[Any], name: str = "ours") -> float:
    """ours : loop, of the best repetition of each; or what else has this name."""
    return float(min(getattr(pair, name) for pair in pairs) / min(pair.loop for pair in pairs))


def fixed_sizes(copies: Sequence[Sequence[Pair]]) -> str:
    """The lowest ratio of the fixed sizes, each of the copy that has the worst, and that size."""
    ratios = [np.min([pair.fixed for pair in own], axis=0) / min(pair.loop for pair in own) for own in copies]
    worst = np.max(ratios, axis=0)
    return f"{figure(worst.min())} at {SIZES[worst.argmin()] >> 10} KB"


def cells(copies: list[list[Any]]) -> list[Any]:
    """Milliseconds of both, the deviation, and the ratios."""
    both = [best_and_median([pair[k] for pair in copies[0]]) for k in (0, 1)]
    return [*both, tiny(max(pair.deviation for pair in copies[0])), *quoted([ratio(own) for own in copies])]


def columns(args: argparse.Namespace) -> dict[str, int]:
    """The columns of ``cells``."""
    both = {"ours ms (median)": 16, "loop ms (median)": 16, "deviation": 9, "alone": 5}
    return both | ({"busy": 5, "quoted": 6} if args.busy else {})


def whole_rounds(args: argparse.Namespace) -> None:
    """The table of FedAvg."""
    more = ({"best": 14} if args.sizes else {}) | ({"bare": 5} if args.bare else {})
    table = Table({"case": 4, "dtype": 7, "kernels": 8, **columns(args), **more}, args.to and args.to / "rounds.csv")
    for case in among(args.cases or "ABC", CASES):
        for dtype in args.dtypes:
            for kind in kernels(args):
                bare = args.bare and CASES[case][-1] is None
                task = Task(
                    case, dtype, args.rounds, settings=(f"kernels={kind}", *args.settings), kind=kind, bare=bare
                )
                copies = everyone(partial(prepare, task, SIZES if args.sizes else ()), args)
                beside: list[Any] = [fixed_sizes(copies)] if args.sizes else []
                if args.bare:
                    beside.append(max(ratio(own, "bare") for own in copies) if bare else None)
                table.row(case, dtype, kind, *cells(copies), *beside)


def local_methods(args: argparse.Namespace) -> None:
    """The table of methods."""
    table = Table({"method": 8, "size": 6, **columns(args)}, args.to and args.to / "local.csv")
    for name in among(args.cases or [*WHOLE, *BATCHES], WHOLE | BATCHES):
        for size in ("small",) if args.tiny else ("small", "middle"):
            task = Task(size, "float32", args.rounds, method(name, size), args.rounds, tuple(args.settings))
            table.row(name, size, *cells(everyone(partial(prepare_local, task), args)))


def method(name: str, size: str) -> dict[str, Any]:
    """The options of a method that are not its defaults."""
    batch = {"batch_size": CASES[size][1] // 4} if name in BATCHES else {}
    return {"name": name, **(WHOLE | BATCHES)[name], **batch}


def main() -> None:
    options = {"rounds": 100, "repeat": 5, "cases": None, "dtypes": "float32,float64", "kernels": "numpy"}
    options |= {"busy": False, "sizes": False, "bare": False, "tiny": False, "to": None, "settings": None}
    args = parser(__doc__, part="rounds", **options).parse_args()
    play({"rounds": whole_rounds, "local": local_methods}, args)


if __name__ == "__main__":
    main()
