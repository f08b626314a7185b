"""python -m benchmarks.speed.studies.survival: time of a gradient of Cox regression : one pass over the samples.

100 clients of 1000 samples × 50 features, half of them events, with times that are all different, and with 30 times
that events share. ``pass`` is X @ x and r @ X of all samples in one array, in numpy, as a gradient of least squares
takes it; ``gradient`` is that of all clients, block by block; ``hessians`` and ``c-index`` are theirs. All are CPU
milliseconds, the least of the repetitions, which take turns; ``sorting`` is done once in a run. The goal is a gradient
in at most 3 passes.
"""

import argparse
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.speed.common import clock, turns
from mpifed.core.processor import block_size
from mpifed.data.blocks import Block, plan
from mpifed.data.fill import Layout, fill
from mpifed.data.pool import Pool
from mpifed.problems.cox import Cox

GOAL = 3.0
FEW = 30  # different times


class Measured(NamedTuple):
    """CPU milliseconds."""

    sorting: float
    passing: float
    gradient: float
    hessians: float
    c_index: float


def samples(clients: int, rows: int, features: int, shared: bool) -> Pool:
    """Standard normal samples and times that do not depend on them."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((clients * rows, features))
    times = rng.exponential(size=len(X))
    if shared:
        times = 1 + np.floor(FEW * rng.random(len(X)))
    return Pool(X, times * rng.choice([1, -1], len(X)), None, np.full(clients, rows))


def measure(data: Pool, repeat: int) -> Measured:
    """Measure the samples of all clients at one point."""
    X, y = data.rows(0, data.m)
    groups = list(plan(data.sizes, data.n, X.itemsize, block_size().bytes))
    problem = Cox()
    blocks = fill(data, data.rows, Layout(0, data.sizes, groups, X.dtype), problem.labels)
    x = np.random.default_rng(1).standard_normal(data.n) / np.sqrt(data.n)

    def each(job: Callable[[Block, np.ndarray], object]) -> Callable[[], object]:
        return lambda: [job(block, x) for block in blocks]

    first = clock(each(problem.grad), 1)
    jobs = [lambda: (X @ x - y) @ X, *map(each, (problem.grad, problem.hess, problem.measure))]
    passing, gradient, *others = turns(jobs, repeat).min(axis=0)
    return Measured(*(1e3 * seconds for seconds in (first - gradient, passing, gradient, *others)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=100)
    parser.add_argument("--samples", type=int, default=1000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=15)
    args = parser.parse_args()
    print(f"{'times':<10}" + "".join(f"{name:>10}" for name in ("sorting", "pass", "gradient", "hessians", "c-index")))
    met = True
    for shared in (False, True):
        found = measure(samples(args.clients, args.samples, args.features, shared), args.repeat)
        ratio = found.gradient / found.passing
        met = met and ratio <= GOAL
        print(
            f"{FEW if shared else 'all':<10}"
            + "".join(f"{ms:>10.2f}" for ms in found)
            + f"   gradient : pass {ratio:.2f}"
        )
    print(f"a gradient in at most {GOAL:g} passes: {'met' if met else 'not met'}")


if __name__ == "__main__":
    main()
