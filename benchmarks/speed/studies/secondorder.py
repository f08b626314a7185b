"""python -m benchmarks.speed.studies.secondorder: seconds of FedNL to ‖∇f‖ <= 9e-10 : those of plain numpy.

The published tables' setting: logistic regression, 142 clients × 350 (w8a), 229 (a9a) or 77 (phishing) samples,
λ = 1e-3, an intercept, k = 8n. In plain numpy, Newton's method has the pooled samples as one dense array, Hessians by
one product of matrices, and the same line search. Both run in this process with one thread, in turn; CPU seconds,
without loading and compiling, with evaluation of ‖∇f‖ in every round, the best of the repetitions.

With --launcher, runs on a server and hosts as well: wall seconds of their rounds, which mean something on a machine
that has nothing else to do. The data are looked for in MPIFED_DATA.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.common import launched
from benchmarks.speed.rounds import timed
from mpifed.experiment import config

SIZES = {"w8a": 350, "a9a": 229, "phishing": 77}
LAMBDA, TOLERANCE = 1e-3, 9e-10
TOPK = {"name": "topk", "k": "8n"}
METHODS: dict[str, dict[str, Any]] = {
    "newton": {"name": "newton"},
    "identity, LS, A": {"name": "fednl", "compressor": "identity", "line_search": True, "option": "A"},
    "identity, LS, B": {"name": "fednl", "compressor": "identity", "line_search": True},
    "topk, LS, A": {"name": "fednl", "compressor": TOPK, "line_search": True, "option": "A"},
    "topk, B": {"name": "fednl", "compressor": TOPK},
}


class Run(NamedTuple):
    """A run of mpifed: its result, and the CPU seconds of its rounds."""

    result: Any
    seconds: float


def study(name: str, method: str, samples: int | None = None) -> dict[str, Any]:
    """The experiment of a method on a data set; ``samples`` of each client in place of the published number."""
    return {
        "rounds": 100,
        "data": {
            "name": name,
            "clients": 142,
            "ones": True,
            "partition": {"name": "sizes", "sizes": samples or SIZES[name]},
        },
        "problem": {"name": "logistic", "mu": LAMBDA, "regulariser": "whole"},
        "selection": {"name": "all"},
        "stop": {"gradient": TOLERANCE**2},
        "algorithm": METHODS[method],
    }


def ours(table: dict[str, Any]) -> Run:
    """Run mpifed in this process."""
    return Run(*timed(config.experiment(table)))


class Pooled:
    """f(x) = mean of ln(1 + e^⟨a,x⟩) − b⟨a,x⟩ over all samples + (λ/2)‖x‖²."""

    def __init__(self, table: dict[str, Any]) -> None:
        data = config.experiment(table).data.load(0, "float64")
        X, self.b = data.rows(0, data.m)
        self.A = np.ascontiguousarray(X.toarray() if data.sparse else X)

    def value(self, x: np.ndarray) -> float:
        z = self.A @ x
        return float(np.mean(np.logaddexp(0, z) - self.b * z) + LAMBDA / 2 * (x @ x))

    def newton(self) -> tuple[np.ndarray, int]:
        """Damped Newton steps until ‖∇f‖ <= 9e-10: the model and the number of steps."""
        (d, n), x = self.A.shape, np.zeros(self.A.shape[1])
        for step in range(100):
            p = 1 / (1 + np.exp(-(self.A @ x)))
            g = self.A.T @ (p - self.b) / d + LAMBDA * x
            if np.linalg.norm(g) <= TOLERANCE:
                return x, step
            B = self.A * np.sqrt(p * (1 - p) / d)[:, None]
            direction = -np.linalg.solve(B.T @ B + LAMBDA * np.eye(n), g)
            s, f = 1.0, self.value(x)
            while s > 1e-10 and self.value(x + s * direction) > f + 0.49 * s * (g @ direction) + 1e-15:
                s /= 2
            x = x + s * direction
        raise RuntimeError("Newton's method does not end")


def line(name: str, method: str, args: argparse.Namespace, pooled: Pooled) -> str:
    """A line of the table."""
    found, plain = [], []
    table = study(name, method, args.samples)
    for _ in range(args.repeat):
        found.append(ours(table))
        begun = time.process_time()
        x, _ = pooled.newton()
        plain.append(time.process_time() - begun)
    result = found[0].result
    assert result.x is not None
    best = min(run.seconds for run in found)
    newton = min(plain)
    count = result.rounds["round"][-1]
    off = np.abs(result.x - x).max()
    cells = f"{name:<10}{method:<17}{count:>6.0f}{result.rounds['bits_up'][-1] / 1e6:>10.1f}{best:>9.3f}"
    cells += f"{1e3 * best / count:>10.1f}{newton:>9.3f}{best / newton:>8.2f}{off:>10.1e}"
    return cells + (f"{wall(table, args):>9.3f}" if args.launcher else "")


def wall(table: dict[str, Any], args: argparse.Namespace) -> float:
    """Wall seconds of the rounds on ``args.ranks`` ranks, the best of the repetitions, without evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "study.toml")
        file.write_text(config.experiment(table).toml())
        runs = [
            launched(args.launcher, args.ranks, [str(file)], Path(folder, f"{k}.h5"), 600) for k in range(args.repeat)
        ]
        return min(float(run.result.rounds["elapsed_seconds"][-1]) for run in runs)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=",".join(SIZES), help="comma-separated (default: %(default)s)")
    parser.add_argument("--methods", default=";".join(METHODS), help="separated by ; (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=3, help="repetitions (default: 3)")
    parser.add_argument("--samples", type=int, help="samples of each client (default: as published)")
    parser.add_argument("--launcher", default="", help="for example 'mpirun -n {ranks}'")
    parser.add_argument("--ranks", type=int, default=3, help="a server and its hosts (default: 3)")
    args = parser.parse_args()
    head = f"{'data':<10}{'method':<17}{'rounds':>6}{'Mbit up':>10}{'CPU s':>9}{'ms/round':>10}{'numpy s':>9}"
    print(f"{head}{'ratio':>8}{'deviation':>10}" + (f"{'wall s':>9}" if args.launcher else ""), flush=True)
    for name in args.data.split(","):
        pooled = Pooled(study(name, "newton", args.samples))
        pooled.newton()
        for method in args.methods.split(";"):
            print(line(name, method, args, pooled), flush=True)


if __name__ == "__main__":
    main()
