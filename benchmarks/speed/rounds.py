"""python -m benchmarks.speed.rounds: CPU time of a round, ours : a plain numpy loop over clients.

FedAvg with 5 full-gradient steps on logistic loss. A: 128 clients × 70 samples × 1024 features; B: 1000 × 20 × 20;
C: 10,000 × 20 × 20 with 100 selected clients. Ours includes recording, byte counts, timers and an evaluation every 20
rounds, and what a run does once: the result file, the evaluation of the start, the checkpoint of the end, together 15
to 25 ms. The loop does none of that. Both run in the same process in turn. Reported are CPU milliseconds per round,
best and median of the repetitions, and the ratio of the best ones. Overrides such as block_bytes=524288 change ours.

With ``--busy`` the same is measured with a copy on each core at once, after the measurement alone: ``busy`` is the
ratio of the copy that has the worst, and ``quoted`` the worse of alone and busy, which is the number to tell others.

With ``--sizes`` blocks of fixed sizes are measured too, in turn with ours, which tries some in its first rounds and
keeps one: ``best`` is the lowest of their ratios (of ``quoted``, with ``--busy``), and its size.
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

from benchmarks.speed import busy
from mpifed.experiment import config
from mpifed.experiment import run as launch
from mpifed.experiment.job import Job
from mpifed.experiment.rounds import rounds
from mpifed.federation.block_sizes import SIZES
from mpifed.results.result import Result

CASES = {"A": (128, 70, 1024, None), "B": (1000, 20, 20, None), "C": (10_000, 20, 20, 100)}

STEPS = 5
GAMMA = 0.1
MU = 1e-3


def study(case: str, dtype: str, count: int, overrides: Sequence[str] = ()) -> config.Experiment:
    """The experiment of a case, with overrides KEY=VALUE."""
    m, d, n, selected = CASES[case]
    table = {
        "rounds": count,
        "dtype": dtype,
        "data": {"name": "gaussian", "clients": m, "samples": d, "features": n},
        "problem": {"name": "logistic", "mu": MU},
        "evaluate": {"every": 20},
        "algorithm": {"name": "fedavg", "k0": STEPS, "step": {"name": "constant", "a": GAMMA}},
        "selection": {"name": "all"} if selected is None else {"name": "uniform", "count": selected},
    }
    return config.experiment(config.override(table, overrides))


def loop(setup: config.Experiment, count: int) -> Callable[[], tuple[float, np.ndarray]]:
    """A plain loop over clients, to be run: CPU seconds per round, and the model."""
    data = setup.data.load(setup.seed, setup.dtype)
    X, y = data.rows(0, data.m)
    X, y = X.astype(setup.dtype), y.astype(setup.dtype)
    ends = np.cumsum(data.sizes)
    parts = [(X[e - d : e], y[e - d : e]) for e, d in zip(ends, data.sizes, strict=True)]

    def run() -> tuple[float, np.ndarray]:
        selector = setup.selection.selector(setup.seed, data.m, count)
        x = np.zeros(data.n, setup.dtype)
        begun = time.process_time()
        for round in range(1, count + 1):
            selected = selector.select(round, 0)
            total = np.zeros_like(x)
            ids = range(data.m) if selected is None else selected
            for i in ids:
                A, b = parts[i]
                w = x
                for _ in range(STEPS):
                    p = 1 / (1 + np.exp(-(A @ w)))
                    w = w - np.float32(GAMMA) * (((p - b) @ A + np.float32(MU) * w) / np.float32(len(b)))
                total += w
            x = total / np.float32(len(ids))
        return (time.process_time() - begun) / count, x

    return run


def timed(setup: config.Experiment) -> tuple[Result, float]:
    """Run mpifed in this process: the result, and the CPU seconds of its rounds, without loading the data."""
    spent = []

    def clocked(*args: Any) -> Any:
        begun = time.process_time()
        outcome = rounds(*args)
        spent.append(time.process_time() - begun)
        return outcome

    with tempfile.TemporaryDirectory() as folder, patch.object(launch, "rounds", clocked):
        recorder = launch.start(Job(setup, os.path.join(folder, "out.h5")))
        assert recorder is not None
        return recorder.result(), spent[0]


def ours(setup: config.Experiment, count: int) -> tuple[float, np.ndarray]:
    """Run mpifed in one process. Returns CPU seconds per round, without loading the data, and the model."""
    result, seconds = timed(setup)
    assert result.x is not None
    return seconds / count, result.x


class Pair(NamedTuple):
    """One repetition: CPU seconds per round of both, the largest relative deviation of the models, and fixed sizes."""

    ours: float
    loop: float
    deviation: float
    fixed: tuple[float, ...] = ()  # ours, for each of the sizes


def prepare(
    case: str, dtype: str, count: int, overrides: Sequence[str] = (), sizes: Sequence[int] = ()
) -> Callable[[], Pair]:
    """A repetition of a case, to be run."""
    setup = study(case, dtype, count, overrides)
    plain = loop(setup, count)
    fixed = [study(case, dtype, count, [*overrides, f"block_bytes={size}"]) for size in sizes]

    def run() -> Pair:
        (a, x), (b, y) = ours(setup, count), plain()
        return Pair(a, b, float(np.abs(x - y).max() / np.abs(y).max()), tuple([ours(one, count)[0] for one in fixed]))

    return run


def ratio(pairs: Sequence[Pair]) -> float:
    """ours : loop, of the best repetition of each."""
    return min(pair.ours for pair in pairs) / min(pair.loop for pair in pairs)


def ratios(pairs: Sequence[Pair]) -> np.ndarray:
    """The same for blocks of each of the fixed sizes."""
    return np.min([pair.fixed for pair in pairs], axis=0) / min(pair.loop for pair in pairs)


def line(case: str, dtype: str, kernels: str, args: argparse.Namespace) -> str:
    """A line of the table."""
    overrides = [f"kernels={kernels}", *args.overrides]
    job, cores = partial(prepare, case, dtype, args.rounds, overrides, SIZES[: args.sizes]), busy.cores()
    (alone,) = busy.copies(job, args.repeat, cores[:1])
    a, b, off = np.array([pair[:3] for pair in alone]).T * [[1e3], [1e3], [1]]
    cells = f"{a.min():8.2f} ({np.median(a):.2f})", f"{b.min():8.2f} ({np.median(b):.2f})"
    found = f"{case:<6}{dtype:<9}{kernels:<10}{cells[0]:<20}{cells[1]:<20}{off.max():<11.1e}{ratio(alone):>6.3f}"
    everyone = [alone]
    if args.busy:
        everyone += busy.copies(job, args.repeat, cores)
        found += f"{max(map(ratio, everyone[1:])):>9.3f}{max(map(ratio, everyone)):>9.3f}"
    if not args.sizes:
        return found
    fixed = np.max([ratios(pairs) for pairs in everyone], axis=0)
    return f"{found}{fixed.min():>9.3f} at {SIZES[fixed.argmin()] >> 10} KB"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="settings of our run")
    parser.add_argument("--rounds", type=int, default=100, help="rounds of a run (default: 100)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions (default: 5)")
    parser.add_argument("--cases", default="ABC", help="cases to run (default: ABC)")
    parser.add_argument("--dtypes", default="float32,float64", help="comma-separated (default: %(default)s)")
    parser.add_argument("--sizes", action="store_const", const=len(SIZES), default=0, help="fixed sizes of blocks too")
    busy.add_option(parser)
    busy.add_kernels(parser)
    args = parser.parse_args()
    cells = f"{'ours ms (median)':<20}{'loop ms (median)':<20}{'deviation':<11} alone"
    print(f"{'case':<6}{'dtype':<9}{'kernels':<10}{cells}", end="")
    print("     busy   quoted" * args.busy + "     best" * bool(args.sizes), end="")
    print(f"   (ours : loop; busy: {len(busy.cores())} copies)" if args.busy else "  (ours : loop)")
    for case in args.cases:
        for dtype in args.dtypes.split(","):
            for kernels in busy.kernels(args):
                print(line(case, dtype, kernels, args), flush=True)


if __name__ == "__main__":
    main()
