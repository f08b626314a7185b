"""python -m benchmarks.speed.rounds: CPU time of a round, ours : a plain numpy loop over clients.

FedAvg with 5 full-gradient steps on logistic loss. A: 128 clients × 70 samples × 1024 features; B: 1000 × 20 × 20; C:
10,000 × 20 × 20 with 100 selected clients.

Ours includes recording, byte counts, timers and an evaluation every 20 rounds, and what a run does once: the result
file, the evaluation of the start, the checkpoint of the end, together 15 to 25 ms. The loop does
none of that. Both run in the same process in turn. Reported are CPU milliseconds a
round, the best and (median) of the repetitions, and the ratio of the best ones. ``deviation`` is that of the models.
KEY=VALUE such as block_bytes=524288 changes ours.

With ``--busy`` the same is measured with a copy on each core at once, after the measurement alone: ``busy`` is the
ratio of the copy that has the worst, and ``quoted`` the worse of alone and busy, which is the number to tell others.

With ``--sizes`` blocks of fixed sizes are measured too, in turn with ours, which tries some in its first rounds and
keeps one: ``best`` is the lowest of their ratios (of ``quoted``, with ``--busy``), and its size.

With ``--bare`` so is a bare loop over blocks where all clients are in every round: ``bare`` is its ratio to the plain
loop, with ``--busy`` that of the copy that has the worst.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.speed.measuring import (
    Table,
    among,
    best_and_median,
    everyone,
    figure,
    kernels,
    parser,
    quoted,
    tiny,
)
from mpifed.engine.block_sizes import SIZES
from mpifed.experiment import config, serving
from mpifed.experiment import run as launch
from mpifed.experiment.config import Experiment, Job
from mpifed.experiment.rounds import run_rounds
from mpifed.extend import Array
from mpifed.kernels.blocks import Block
from mpifed.kernels.plan import clients_per_block, make_dense_block
from mpifed.results.result import RunRecord

MU = 1e-3
STEPS = 5
GAMMA = 0.1
BYTES = 1 << 22  # of a bare loop's block: of the powers of 2 the fastest in case A, float32, on an AMD EPYC, 1 MB of L2


def fedavg_loop(setup: Experiment) -> Callable[[], tuple[float, Array]]:
    """FedAvg with k0 full gradients of size GAMMA, to be run: CPU seconds of a round, and the model."""
    data = setup.data.load(setup.seed, setup.dtype)
    X, y = data.rows(0, data.m)
    X, y = X.astype(setup.dtype), y.astype(setup.dtype)
    algorithm: Any = setup.algorithm
    ends = np.cumsum(data.sizes)
    parts = [(X[e - d : e], y[e - d : e]) for e, d in zip(ends, data.sizes, strict=True)]

    def run() -> tuple[float, Array]:
        selector = setup.selection.selector(setup.seed, data.m, setup.rounds)
        x = np.zeros(data.n, setup.dtype)
        begun = time.process_time()
        for round in range(1, setup.rounds + 1):
            selected = selector.select(round, 0)
            total = np.zeros_like(x)
            ids = range(data.m) if selected is None else selected
            for i in ids:
                A, b = parts[i]
                w = x
                for _ in range(algorithm.k0):
                    p = 1 / (1 + np.exp(-(A @ w)))
                    w = w - np.float32(GAMMA) * (((p - b) @ A + np.float32(MU) * w) / np.float32(len(b)))
                total += w
            x = total / np.float32(len(ids))
        return (time.process_time() - begun) / setup.rounds, x

    return run


def bare_loop(setup: Experiment, compiled: bool) -> Callable[[], tuple[float, Array]]:
    """The same as a loop over blocks of clients, all in every round and with as many samples.

    It has the products of ours and no record, timers, ledgers, evaluations or sums in a fixed order, and tries no sizes
    of blocks: it shows how much of a round is products with the samples, and what is left for everything else.
    """
    data = setup.data.load(setup.seed, setup.dtype)
    X, y = data.rows(0, data.m)
    d = len(y) // data.m
    whole = make_dense_block(data.sizes, data.n, np.dtype(setup.dtype))
    whole.A[:, :d] = X.reshape(data.m, d, data.n)
    whole.b[:, :d] = y.reshape(data.m, d)
    count = clients_per_block(BYTES, whole.A[0].nbytes)
    gradient = by_kernel if compiled else by_numpy
    gradients = [gradient(whole.part(slice(k, k + count))) for k in range(0, data.m, count)]

    def run() -> tuple[float, Array]:
        x = np.zeros(data.n, setup.dtype)
        begun = time.process_time()
        for _ in range(setup.rounds):
            total = np.zeros_like(x)
            for grad in gradients:
                w = x[None]
                for _ in range(STEPS):
                    w = w - GAMMA * grad(w)
                total += w.sum(axis=0)
            x = total / data.m
        return (time.process_time() - begun) / setup.rounds, x

    return run


def by_numpy(block: Block) -> Callable[[Array], Array]:
    """Gradients by two products of numpy."""
    half = block.w / 2
    rest = block.w * (0.5 - block.b)
    ridge = block.real(MU / block.d)[:, None]

    def gradient(w: Array) -> Array:
        return np.vecmat(half * np.tanh(np.matvec(block.A, w) * 0.5) + rest, block.A) + ridge * w

    return gradient


def by_kernel(block: Block) -> Callable[[Array], Array]:
    """Gradients by the compiled kernel, one pass over the samples."""
    # not above: it needs numba
    from mpifed.kernels.compiling import LOGISTIC, get_kernel

    one_pass: Any = get_kernel(block.b.dtype)
    ridge = block.real(MU / block.d)[:, None]
    return lambda w: one_pass(block.A, w, block.b, block.w, ridge, LOGISTIC)[1]


CASES = {  # clients, samples, features, and how many clients take part
    "A": (128, 70, 1024, None),
    "B": (1000, 20, 20, None),
    "C": (10_000, 20, 20, 100),
}
FULL = {"name": "fedavg", "k0": STEPS, "step": {"name": "constant", "a": GAMMA}}


class Task(NamedTuple):
    """Clients of a size, and the settings of ours."""

    case: str
    dtype: str
    rounds: int
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
            "evaluate": {"every": 20},
            "stop": {"gradient": 0.0},
            "algorithm": FULL,
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


def main() -> None:
    options: dict[str, Any] = {"rounds": 100, "repeat": 5, "cases": "A,B,C", "dtypes": "float32,float64"}
    options |= {"kernels": "numpy", "busy": False, "sizes": False, "bare": False, "to": None, "settings": None}
    args = parser(__doc__, **options).parse_args()
    columns = {"case": 4, "dtype": 7, "kernels": 8, "ours ms (median)": 16, "loop ms (median)": 16, "deviation": 9}
    columns |= {"alone": 5} | ({"busy": 5, "quoted": 6} if args.busy else {})
    more = ({"best": 14} if args.sizes else {}) | ({"bare": 5} if args.bare else {})
    table = Table(columns | more, args.to and args.to / "rounds.csv")
    for case, dtype, kind in product(among(args.cases, CASES), args.dtypes, kernels(args)):
        bare = args.bare and CASES[case][-1] is None
        task = Task(case, dtype, args.rounds, (f"kernels={kind}", *args.settings), kind, bare)
        copies = everyone(partial(prepare, task, SIZES if args.sizes else ()), args)
        beside: list[Any] = [fixed_sizes(copies)] if args.sizes else []
        if args.bare:
            beside.append(max(ratio(own, "bare") for own in copies) if bare else None)
        table.row(case, dtype, kind, *cells(copies), *beside)


if __name__ == "__main__":
    main()
