"""python -m benchmarks.speed.secondorder: seconds of FedNL to ‖∇f‖ <= 9e-10 : those of plain numpy.

The published tables' setting: logistic regression, 142 clients × 350 (w8a), 229 (a9a) or 77 (phishing) samples,
λ = 1e-3, an intercept, k = 8n. In plain numpy, Newton's method has the pooled samples as one dense array, Hessians by
one product of matrices, and the same line search. Both run in this process with one thread, in turn; CPU seconds,
without loading and compiling, with evaluation of ‖∇f‖ in every round, the best of the repetitions.

With --launcher, runs on a server and hosts as well: wall seconds of their rounds, which mean something on a machine
that has nothing else to do. The data are looked for in MPIFED_DATA.
"""

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.speed.measuring import Table, among, clock, launched, parser, tiny
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


def cells(table: dict[str, Any], pooled: Pooled, args: argparse.Namespace) -> list[Any]:
    """The cells of a line: rounds, megabits, CPU seconds of both, best of the repetitions, and how far models are."""
    turns = [(timed(config.experiment(table)), clock(pooled.newton, 1)) for _ in range(args.repeat)]
    result = turns[0][0][0]
    assert result.x is not None
    best, newton = min(seconds for (_, seconds), _ in turns), min(plain for _, plain in turns)
    count = int(result.rounds["round"][-1])
    off = float(np.abs(result.x - pooled.newton()[0]).max())
    found = [count, float(result.rounds["bits_up"][-1]) / 1e6, best, 1e3 * best / count, newton, best / newton]
    return [*found, tiny(off), *([wall(table, args)] if args.launcher else [])]


def wall(table: dict[str, Any], args: argparse.Namespace) -> float:
    """Wall seconds of the rounds on several ranks, the best of the repetitions, without evaluation."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "study.toml")
        file.write_text(config.experiment(table).toml())
        path = Path(folder, "run.h5")
        runs = [launched(args.launcher, args.ranks[0], [str(file)], path).result for _ in range(args.repeat)]
        return min(float(run.rounds["elapsed_seconds"][-1]) for run in runs)


def main() -> None:
    options: dict[str, Any] = {"repeat": 3, "samples": None, "launcher": "", "ranks": "3", "to": None}
    args = parser(__doc__, cases=",".join(SIZES), methods=";".join(METHODS), **options).parse_args()
    names = ("rounds", "Mbit up", "CPU s", "ms/round", "numpy s", "ratio", "deviation")
    columns = {"data": 8, "method": 15, **dict.fromkeys(names, 6), **({"wall s": 6} if args.launcher else {})}
    table = Table(columns, args.to and args.to / "secondorder.csv")
    for name in among(args.cases, SIZES):
        pooled = Pooled(study(name, "newton", args.samples))
        pooled.newton()
        for method in args.methods.split(";"):
            table.row(name, method, *cells(study(name, method, args.samples), pooled, args))


if __name__ == "__main__":
    main()
