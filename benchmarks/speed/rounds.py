"""python -m benchmarks.speed.rounds: CPU time of a round, ours : a plain numpy loop over clients.

FedAvg with 5 full-gradient steps on logistic loss. A: 128 clients × 70 samples × 1024 features; B: 1000 × 20 × 20;
C: 10,000 × 20 × 20 with 100 selected clients. Ours includes recording, byte counts, timers and an evaluation every 20
rounds; the loop does none of that. Reported are CPU milliseconds per round, best and median of the repetitions.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from typing import Any
from unittest.mock import patch

import numpy as np

from mpifed.experiment import config
from mpifed.experiment import run as launch
from mpifed.experiment.job import Job
from mpifed.experiment.rounds import rounds

CASES = {"A": (128, 70, 1024, None), "B": (1000, 20, 20, None), "C": (10_000, 20, 20, 100)}
STEPS, GAMMA, MU = 5, 0.1, 1e-3


def study(case: str, dtype: str, count: int) -> config.Experiment:
    """The experiment of a case."""
    m, d, n, selected = CASES[case]
    return config.experiment(
        {
            "rounds": count,
            "dtype": dtype,
            "data": {"name": "gaussian", "clients": m, "samples": d, "features": n},
            "problem": {"name": "logistic", "mu": MU},
            "evaluate": {"every": 20},
            "algorithm": {"name": "fedavg", "k0": STEPS, "step": {"name": "constant", "a": GAMMA}},
            "selection": {"name": "all"} if selected is None else {"name": "uniform", "count": selected},
        }
    )


def loop(setup: config.Experiment, count: int) -> tuple[float, np.ndarray]:
    """Run a plain loop over clients. Returns CPU seconds per round and the model."""
    data = setup.data.load(setup.seed, setup.dtype)
    X, y = data.rows(0, data.m)
    X, y = X.astype(setup.dtype), y.astype(setup.dtype)
    ends = np.cumsum(data.sizes)
    parts = [(X[e - d : e], y[e - d : e]) for e, d in zip(ends, data.sizes, strict=True)]
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


def ours(setup: config.Experiment, count: int) -> tuple[float, np.ndarray]:
    """Run mpifed in one process. Returns CPU seconds per round, without loading the data, and the model."""
    spent = []

    def clocked(*args: Any) -> Any:
        begun = time.process_time()
        result = rounds(*args)
        spent.append(time.process_time() - begun)
        return result

    with tempfile.TemporaryDirectory() as folder, patch.object(launch, "rounds", clocked):
        recorder = launch.start(Job(setup, os.path.join(folder, "out.h5")))
        assert recorder is not None
        result = recorder.result()
    assert result.x is not None
    return spent[0] / count, result.x


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20, help="rounds of a run (default: 20)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions (default: 5)")
    parser.add_argument("--cases", default="ABC", help="cases to run (default: ABC)")
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
