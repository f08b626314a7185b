"""python -m benchmarks.speed.local: CPU time of a round of local work, ours : a plain numpy loop over clients.

Methods with inner loops, noise, or mini-batches of a quarter of the samples, on logistic loss in float32, with all
clients in every round. small: 1000 clients × 20 samples × 20 features; middle: 128 × 100 × 100. The loop is
``benchmarks.speed.plain``, with one random generator for all clients; ``deviation`` is that of the models after three
rounds where it draws the same numbers as ours. Reported are CPU milliseconds a round, the best of the repetitions.

With ``--before FOLDER``, another working tree of mpifed, the rounds of its mpifed are measured in turn with ours, each
in a new process; ``gained`` is before : ours.
"""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.common import printed
from benchmarks.speed.plain import MU, Draw, Plain
from benchmarks.speed.rounds import ours
from mpifed import stream
from mpifed.experiment import config

HERE = Path(__file__).parents[2]
SIZES = {"small": (1000, 20, 20), "middle": (128, 100, 100)}
BATCHES: dict[str, dict[str, Any]] = {  # with mini-batches of a quarter of the samples
    "flame": {"epochs": 5},
    "pfedme": {"epochs": 5},
    "scaffold": {"epochs": 2},
    "fedavg": {"k0": 5},
}
WHOLE: dict[str, dict[str, Any]] = {"fedadmm": {"k0": 10}, "fedpd": {"k0": 5}, "fedepm": {"k0": 12, "mu0": 0.05}}
# What a new process runs, which takes mpifed from one folder and this benchmark from another.
CHILD = """\
import sys
sys.path.insert(0, {tree!r})
import mpifed
sys.path[0] = {here!r}
from benchmarks.speed import local
local.child(local.Case({method!r}, {size!r}), {rounds})
"""


class Case(NamedTuple):
    """A method on clients of a size."""

    method: str
    size: str

    def options(self) -> dict[str, Any]:
        """The options of the algorithm that are not its defaults."""
        if self.method in WHOLE:
            return WHOLE[self.method]
        return BATCHES[self.method] | {"batch_size": SIZES[self.size][1] // 4}

    def study(self, rounds: int) -> config.Experiment:
        """The experiment."""
        m, d, n = SIZES[self.size]
        return config.experiment(
            {
                "rounds": rounds,
                "dtype": "float32",
                "data": {"name": "gaussian", "clients": m, "samples": d, "features": n},
                "problem": {"name": "logistic", "mu": MU},
                "selection": {"name": "all"},
                "evaluate": {"every": rounds},
                "stop": {"gradient": 0.0},
                "algorithm": {"name": self.method, **self.options()},
            }
        )

    def plain(self, setup: config.Experiment, draw: Draw) -> Plain:
        """The same as a plain loop."""
        data = setup.data.load(setup.seed, setup.dtype)
        X, y = data.rows(0, data.m)
        parts = list(zip(np.split(X, data.m), np.split(y, data.m), strict=True))
        return Plain(self.method, parts, self.options(), draw)


def child(case: Case, rounds: int) -> None:
    """Print the CPU seconds of a round: the best of some runs."""
    setup = case.study(rounds)
    print(min(ours(setup, rounds)[0] for _ in range(3)))


def elsewhere(tree: Path, case: Case, rounds: int) -> float:
    """CPU seconds of a round of the mpifed of a working tree, in a new process."""
    code = CHILD.format(tree=str(tree.resolve()), here=str(HERE), method=case.method, size=case.size, rounds=rounds)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return float(printed([sys.executable, "-c", code], name=f"the rounds of {tree}", environment=environment))


def loop(case: Case, setup: config.Experiment, rounds: int) -> float:
    """CPU seconds of a round of the plain loop."""
    rng = np.random.default_rng(0)
    run = case.plain(setup, lambda i, round: rng)
    begun = time.process_time()
    for _ in range(rounds):
        run.round()
    return (time.process_time() - begun) / rounds


def deviation(case: Case, rounds: int = 3) -> float:
    """The largest relative deviation of the models where the loop draws from the streams of ours."""
    setup = case.study(rounds)
    run = case.plain(setup, lambda i, round: stream(setup.seed, "clients", i, round, 0))
    for _ in range(rounds):
        run.round()
    x = ours(setup, rounds)[1]
    return float(np.abs(x - run.x).max() / np.abs(x).max())


def line(case: Case, args: argparse.Namespace) -> str:
    """A line of the table."""
    setup = case.study(args.rounds)
    trees = [HERE] + ([args.before] if args.before else [])
    found = np.array(
        [
            [*(elsewhere(tree, case, args.rounds) for tree in trees), loop(case, setup, max(1, args.rounds // 10))]
            for _ in range(args.repeat)
        ]
    )
    best = found.min(axis=0) * 1e3
    cells = f"{case.method:<10}{case.size:<8}{best[0]:9.2f}{best[-1]:10.1f}{best[0] / best[-1]:13.3f}"
    return f"{cells}{deviation(case):12.1e}" + (f"{best[1]:10.2f}{best[1] / best[0]:8.2f}" if args.before else "")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=60, help="rounds of a run; the loop has a tenth (default: 60)")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions (default: 3)")
    parser.add_argument(
        "--methods", default=",".join([*WHOLE, *BATCHES]), help="comma-separated (default: %(default)s)"
    )
    parser.add_argument("--sizes", default=",".join(SIZES), help="comma-separated (default: %(default)s)")
    parser.add_argument("--before", type=Path, metavar="FOLDER", help="another working tree, to compare with")
    args = parser.parse_args()
    head = f"{'method':<10}{'size':<8}{'ours ms':>9}{'loop ms':>10}{'ours : loop':>13}{'deviation':>12}"
    print(head + (f"{'before':>10}{'gained':>8}" if args.before else ""))
    for method in args.methods.split(","):
        for size in args.sizes.split(","):
            print(line(Case(method, size), args), flush=True)


if __name__ == "__main__":
    main()
