"""python -m benchmarks.speed.rounds: CPU time a round, ours : a plain numpy loop over clients, in the same run.

FedAvg with 5 full-gradient steps on logistic loss. A: 128 clients × 70 samples × 1024 features; B: 1000 × 20 × 20;
C: 10,000 × 20 × 20, of whom 100 are selected. Ours has the record, ledgers, timers and evaluation every 20 rounds on; the
loop has nothing of the kind. CPU milliseconds a round, the best and the median of several repetitions.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from typing import Any

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np

from mpifed.experiment import config
from mpifed.experiment import run as launch
from mpifed.experiment.job import Job
from mpifed.experiment.rounds import rounds

CASES = {"A": (128, 70, 1024, None), "B": (1000, 20, 20, None), "C": (10_000, 20, 20, 100)}
STEPS, GAMMA, MU = 5, 0.1, 1e-3


def study(case: str, dtype: str, count: int) -> config.Experiment:
    """The experiment of a case."""
    m, d, n, chosen = CASES[case]
    return config.experiment(
        {
            "rounds": count,
            "dtype": dtype,
            "data": {"name": "gaussian", "clients": m, "samples": d, "features": n},
            "problem": {"name": "logistic", "mu": MU},
            "evaluate": {"every": 20},
            "algorithm": {"name": "fedavg", "k0": STEPS, "step": {"name": "constant", "a": GAMMA}},
            "selection": {"name": "all"} if chosen is None else {"name": "uniform", "count": chosen},
        }
    )


def loop(setup: config.Experiment, count: int) -> tuple[float, np.ndarray]:
    """CPU seconds a round of a plain loop over clients, and its model."""
    data = setup.data.load(setup.seed, setup.dtype)
    X, y = data.rows(0, data.m)
    X, y = X.astype(setup.dtype), y.astype(setup.dtype)
    ends = np.cumsum(data.sizes)
    parts = [(X[e - d : e], y[e - d : e]) for e, d in zip(ends, data.sizes, strict=True)]
    selector = setup.selection.selector(setup.seed, data.m, count)
    x = np.zeros(data.n, setup.dtype)
    begun = time.process_time()
    for round in range(1, count + 1):
        chosen = selector.select(round, 0)
        total = np.zeros_like(x)
        ids = range(data.m) if chosen is None else chosen
        for i in ids:
            A, b = parts[i]
            w = x
            for _ in range(STEPS):
                p = 1 / (1 + np.exp(-(A @ w)))
                w = w - np.float32(GAMMA) * (((p - b) @ A + np.float32(MU) * w) / np.float32(len(b)))
            total += w
        x = total / np.float32(len(ids))
    return (time.process_time() - begun) / count, x


def ours(setup: config.Experiment, count: int) -> tuple[float, np.ndarray]:
    """CPU seconds a round of mpifed in one process, without loading the data."""
    spent = []

    def clocked(*args: Any) -> Any:
        begun = time.process_time()
        result = rounds(*args)
        spent.append(time.process_time() - begun)
        return result

    launch.rounds = clocked  # type: ignore[assignment]
    with tempfile.TemporaryDirectory() as folder:
        recorder = launch.start(Job(setup, os.path.join(folder, "out.h5")))
        assert recorder is not None
        result = recorder.result()
    launch.rounds = rounds
    assert result.x is not None
    return spent[0] / count, result.x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--cases", default="ABC")
    args = parser.parse_args()
    print("case  dtype    ours ms (median)   loop ms (median)   ours : loop   largest deviation of the models")
    for case in args.cases:
        for dtype in ("float32", "float64"):
            setup = study(case, dtype, args.rounds)
            pairs = [(ours(setup, args.rounds), loop(setup, args.rounds)) for _ in range(args.repeat)]
            a, b = (np.array([pair[k][0] for pair in pairs]) * 1e3 for k in range(2))
            off = np.abs(pairs[0][0][1] - pairs[0][1][1]).max() / np.abs(pairs[0][1][1]).max()
            print(
                f"{case:<5} {dtype}  {a.min():7.2f} ({np.median(a):.2f})    {b.min():7.2f} ({np.median(b):.2f})"
                f"    {a.min() / b.min():8.3f}      {off:.1e}",
                flush=True,
            )


if __name__ == "__main__":
    main()
