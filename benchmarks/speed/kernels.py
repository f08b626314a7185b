"""python -m benchmarks.speed.kernels: time of a gradient of all clients, in blocks : in a plain loop : of a read.

For each problem, dtype and shape of the clients three jobs are measured, interleaved: ours, Problem.grad over the
blocks; a plain numpy loop over the clients with the same formula; and one streaming read of the samples
(np.maximum.reduce over their bits as integers, next to np.vdot the fastest read in numpy). ``common`` is a gradient at
the same point for all clients, ``own`` at a separate point for each client, ``5 steps`` five gradient steps of each
client, block by block. Reported are CPU times: ours in µs per client, and ratios as median (smallest–largest) over the
repetitions. ``off`` is the largest relative deviation of ours from the loop.

If ours : loop is below 1, ours is faster than the loop. A gradient passes over the samples twice. So ours : read is 2
(10 for five steps) if every pass reads from the same level of memory, less if the second pass finds the block in a
cache, and more if arithmetic or overhead dominates. The small shape fits into the cache, also for the read.

With ``--busy`` the same is measured with a copy on each core at once, after the measurement alone; ``busy`` is
ours : loop of the copy that has the worst. Tell others the worse of the two. ``--kernels both`` measures numpy and, for
problems and data that they take, the compiled kernels.
"""

import argparse
from collections.abc import Callable
from functools import partial
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.speed import busy
from benchmarks.speed.common import figure, spread, turn
from mpifed.core.processor import block_size
from mpifed.data.blocks import SPARSE, Block, padded, plan
from mpifed.data.compiled.block import CompiledBlock
from mpifed.data.fill import dense_blocks
from mpifed.data.sparse_block import sparse_block
from mpifed.problems.base import Problem

CLASSES = 10
GAMMA = 0.1
STEPS = 5
PROBLEMS: dict[str, dict[str, Any]] = {
    "least-squares": {},
    "logistic": {"mu": 1e-3},
    "nonconvex-logistic": {"mu": 1e-2},
    "softmax": {},
    "svm": {},
}
SHAPES = {  # clients, fewest and most samples, features, share of non-zeros
    "small": (1000, 20, 20, 20, 1.0),
    "wide": (128, 70, 70, 1024, 1.0),
    "ragged": (1000, 50, 150, 100, 1.0),
    "sparse": (128, 3, 140, 1024, 0.093),
}
Array = np.ndarray


class Clients(NamedTuple):
    """The same clients in blocks, with their ids in ``groups``, and one by one as (A, b)."""

    blocks: list[Block]
    groups: list[Array]
    parts: list[tuple[Any, Array]]


def clients(shape: str, dtype: str, classes: int, kind: type[Block] = Block) -> Clients:
    """Standard normal samples divided by √n, with labels 0 … classes − 1."""
    m, least, most, n, share = SHAPES[shape]
    rng = np.random.default_rng(0)
    sizes = rng.integers(least, most, m, endpoint=True)
    rows = int(sizes.sum())
    X: Any = (rng.standard_normal((rows, n)) / np.sqrt(n)).astype(dtype)
    if share < 1:
        X = sp.csr_array(np.where(rng.random(X.shape) < share, X, 0))
    y = rng.integers(0, classes, rows).astype(dtype)
    ends = np.cumsum(sizes)
    parts = [(X[e - d : e], y[e - d : e]) for e, d in zip(ends, sizes, strict=True)]
    groups = list(plan(sizes, n, X.dtype.itemsize, block_size().bytes * (SPARSE if sp.issparse(X) else 1)))
    blocks: list[Block] = []
    if sp.issparse(X):
        blocks += [sparse_block([parts[i] for i in group], sizes[group], n, X.dtype) for group in groups]
        return Clients(blocks, groups, parts)
    for _, alike in groupby(groups, lambda group: int(padded(sizes[group[:1]])[0])):
        blocks += dense_blocks([sizes[group] for group in alike], n, X.dtype, kind)
    for block, group in zip(blocks, groups, strict=True):
        for j, i in enumerate(group):
            A, b = parts[i]
            block.A[j, : len(b)], block.b[j, : len(b)] = A, b
    return Clients(blocks, groups, parts)


def plain(problem: str, A: Any, b: Array, x: Array) -> Array:
    """∇f_i(x) of a single client, in plain numpy."""
    d, n = A.shape
    if problem in ("softmax", "svm"):
        Z = A @ x[: CLASSES * n].reshape(CLASSES, n).T + x[CLASSES * n :]
        rows, true = np.arange(d), b.astype(np.intp)
        if problem == "softmax":
            R = np.exp(Z - Z.max(axis=1, keepdims=True))
            R /= R.sum(axis=1, keepdims=True)
            R[rows, true] -= 1
        else:
            R = (1 - Z[rows, true][:, None] + Z > 0).astype(Z.dtype) / CLASSES
            R[rows, true] = 0
            R[rows, true] = -R.sum(axis=1)
        R /= d
        return np.concatenate([(A.T @ R).T.ravel(), R.sum(axis=0)])
    if problem == "least-squares":
        return (A @ x - b) @ A / d
    g, mu = (1 / (1 + np.exp(-(A @ x))) - b) @ A, PROBLEMS[problem]["mu"]
    return (g + mu * (x if problem == "logistic" else x / (1 + x * x) ** 2)) / d


def ours(problem: Problem, data: Clients, X: Array, steps: int) -> Array:
    """The final gradient of each client, in the order of the blocks."""
    found = []
    for block, group in zip(data.blocks, data.groups, strict=True):
        w = X if X.ndim == 1 else X[group]
        g = problem.grad(block, w)
        for _ in range(steps - 1):
            w = w - GAMMA * g
            g = problem.grad(block, w)
        found.append(g)
    return np.concatenate(found)


def loop(problem: str, data: Clients, X: Array, steps: int) -> Array:
    """The final gradient of each client, one client after the other."""
    found = []
    for i, (A, b) in enumerate(data.parts):
        w = X if X.ndim == 1 else X[i]
        g = plain(problem, A, b, w)
        for _ in range(steps - 1):
            w = w - GAMMA * g
            g = plain(problem, A, b, w)
        found.append(g)
    return np.array(found)


def reading(data: Clients) -> Callable[[], None]:
    """A job that reads features and labels once, as they are stored in the blocks."""
    arrays = [
        array
        for block in data.blocks
        for array in (
            (block.A.data, block.A.indices, block.A.indptr, block.b) if sp.issparse(block.A) else (block.A, block.b)
        )
    ]
    flat = [array.reshape(-1).view(f"i{array.dtype.itemsize}") for array in arrays]

    def read() -> None:
        for array in flat:
            np.maximum.reduce(array)

    return read


class Task(NamedTuple):
    """What is measured: a problem on clients of a shape, each repetition at least so many seconds."""

    shape: str
    problem: str
    dtype: str
    least: float
    kernels: str = "numpy"

    def build(self) -> Problem:
        return Problem.build({"name": self.problem, **PROBLEMS[self.problem]}, "problem")


KINDS = {"numpy": Block, "compiled": CompiledBlock}
JOBS = ("common", "own", "5 steps")


def prepare(task: Task) -> Callable[[], Array]:
    """A repetition, to be run: of each of JOBS the CPU seconds of ours, loop and read, and the deviation: (3, 4)."""
    name, many = task.problem, task.problem in ("softmax", "svm")
    data = clients(task.shape, task.dtype, CLASSES if many else 2, KINDS[task.kernels])
    problem = task.build()
    m, n = len(data.parts), SHAPES[task.shape][3]
    X = (0.1 * np.random.default_rng(1).standard_normal((m, CLASSES * (n + 1) if many else n))).astype(task.dtype)
    order, read = np.concatenate(data.groups), reading(data)
    turns, off = [], []
    for at, steps in ((X[0], 1), (X, 1), (X, STEPS)):
        expected = loop(name, data, at, steps)[order]
        off.append(np.abs(ours(problem, data, at, steps) - expected).max() / np.abs(expected).max())
        jobs = partial(ours, problem, data, at, steps), partial(loop, name, data, at, steps), read
        turns.append(turn(jobs, task.least))
    return lambda: np.array([[*once(), far] for once, far in zip(turns, off, strict=True)])


def compare(task: Task, args: argparse.Namespace) -> None:
    """Measure a problem and print its three lines."""
    job, cores = partial(prepare, task), busy.cores()
    (alone,) = busy.copies(job, args.repeat, cores[:1])
    crowd = busy.copies(job, args.repeat, cores) if args.busy else []
    for k, name in enumerate(JOBS):
        a, b, c, off = np.array(alone)[:, k].T
        ratios = [spread(np.divide(*np.array(one)[:, k, :2].T)) for one in crowd]
        worst = f"{max(ratios)!s:<25}" if crowd else ""
        print(
            f"  {task.problem:<19}{task.dtype:<9}{task.kernels:<10}{name:<9}"
            f"{figure(np.median(a) / SHAPES[task.shape][0] * 1e6):>10}   "
            f"{spread(a / b)!s:<25}{worst}{spread(a / c)!s:<21}{off[0]:.0e}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--problems", default=",".join(PROBLEMS), help="comma-separated (default: %(default)s)")
    parser.add_argument("--shapes", default=",".join(SHAPES), help="comma-separated (default: %(default)s)")
    parser.add_argument("--dtypes", default="float32,float64", help="comma-separated (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="interleaved repetitions (default: 5)")
    parser.add_argument("--least", type=float, default=0.005, help="minimum seconds of a repetition (default: 0.005)")
    busy.add_option(parser)
    busy.add_kernels(parser)
    args = parser.parse_args()
    crowd = f"{f'busy: {len(busy.cores())} copies':<25}" if args.busy else ""
    for shape in args.shapes.split(","):
        m, least, most, n, share = SHAPES[shape]
        print(
            f"{shape}: {m} clients × {least if least == most else f'{least}–{most}'} samples × {n} features"
            + (f", CSR with {share:.1%} non-zeros" if share < 1 else "")
        )
        head = f"{'ours : loop':<25}{crowd}{'ours : read':<21}off"
        print(f"  {'problem':<19}{'dtype':<9}{'kernels':<10}{'job':<9}{'µs/client':>10}   {head}")
        for dtype in args.dtypes.split(","):
            for problem in args.problems.split(","):
                for kernels in busy.kernels(args):
                    task = Task(shape, problem, dtype, args.least, kernels)
                    if kernels == "numpy" or (share == 1 and task.build().compiles()):
                        compare(task, args)


if __name__ == "__main__":
    main()
