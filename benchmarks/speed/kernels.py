"""python -m benchmarks.speed.kernels: time of the gradients of all clients, in blocks : in a plain loop.

In turn: ours, Problem.grad over the blocks at a separate point for each client, and a plain numpy loop over clients
with the same formula; of "5 steps" five gradient steps of each client, block by block. wide: 128 clients × 70 samples ×
1024 features, as in case A, in CSR 9 % of them; small: 1000 × 20 × 20; softmax has 10 classes. Reported are CPU times:
ours in µs for a client, and ours : loop as median (smallest–largest) over the repetitions; ``off`` is the largest
relative deviation of ours from the loop. With ``--busy`` a copy works on each core at once as well; ``busy`` is the
ratio of the worst copy. ``--kernels both`` measures numpy and, for problems and data that they take, compiled kernels.

With ``--to`` a folder gets kernels.csv, ceilings.csv and roofline.png (matplotlib: extra plot): what limits the
kernels, memory or arithmetic. Ceilings of a core of this machine are the bandwidth of reading from each level of memory
(dot products of two vectors, the fastest read in numpy, that fill half of a cache; L3 at 16 times L2, memory at --most
bytes) and the peak of arithmetic (gemm of 512 × 512), of the best repetition. Where caches are shared with other
machines, as in a cloud, L3 and memory may lie close together. ``flop : byte`` counts additions and multiplications of
the two products with the samples (4 for each number and class; exp and regularisers are not counted) and the bytes of
the samples, read once. A kernel that reads from a level and is limited by it lies on the line of this level; two passes
over samples that do not stay in a cache lie a factor of two below.
"""

import argparse
import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.speed.measuring import among, cores, everyone, kernels, parser, turn
from benchmarks.speed.pictures import Ceiling, Point, draw_roofline
from benchmarks.speed.plain import gradient
from benchmarks.speed.printing import Table, spread, tiny, told
from mpifed.core.processor import CPUS, choose_block_size, parse_size
from mpifed.core.typing import Array
from mpifed.data.pool import Pool
from mpifed.kernels.blocks import Block
from mpifed.kernels.fill import BlockLayout, fill_blocks
from mpifed.kernels.plan import SPARSE_FACTOR, plan_blocks
from mpifed.problems.problem import Problem

CLASSES = 10
GAMMA = 0.1
STEPS = 5
GEMM = 512
ASSUMED = {"L1": 32 << 10, "L2": 1 << 20, "L3": 32 << 20}  # bytes, where the system does not tell
REGULARISERS = {"logistic": 1e-3, "nonconvex-logistic": 1e-2}  # mu, of the problems that have one
SHAPES = {  # clients, fewest and most samples, features, share of non-zeros
    "small": (1000, 20, 20, 20, 1.0),
    "wide": (128, 70, 70, 1024, 1.0),
    "sparse": (128, 3, 140, 1024, 0.093),
}
KERNELS = {  # name: problem, shape of the clients, steps
    "least squares": ("least-squares", "wide", 1),
    "logistic": ("logistic", "wide", 1),
    "non-convex logistic": ("nonconvex-logistic", "wide", 1),
    "logistic 5 steps": ("logistic", "wide", STEPS),
    "softmax": ("softmax", "wide", 1),
    "logistic CSR": ("logistic", "sparse", 1),
    "logistic small": ("logistic", "small", 1),
    "logistic small 5 steps": ("logistic", "small", STEPS),
    "softmax small": ("softmax", "small", 1),
}


class Clients(NamedTuple):
    """The same clients in blocks, with their ids in ``groups``, and one by one as (A, b)."""

    blocks: list[Block]
    groups: list[Array]
    parts: list[tuple[Any, Array]]


class Task(NamedTuple):
    """What is measured: a kernel, with one kind of numbers and one that computes, at least so many seconds."""

    name: str
    dtype: str
    kind: str
    least: float

    @property
    def shape(self) -> tuple[int, int, int, int, float]:
        return SHAPES[KERNELS[self.name][1]]

    @property
    def classes(self) -> int:
        """Outputs of the linear map."""
        return CLASSES if KERNELS[self.name][0] == "softmax" else 1

    def build(self) -> Problem:
        problem = KERNELS[self.name][0]
        mu = {"mu": REGULARISERS[problem]} if problem in REGULARISERS else {}
        return Problem.build({"name": problem, **mu}, "problem")

    def clients(self) -> Clients:
        """Standard normal samples divided by √n, with labels 0 … classes − 1."""
        m, least, most, n, share = self.shape
        rng = np.random.default_rng(0)
        sizes = rng.integers(least, most, m, endpoint=True)
        rows = int(sizes.sum())
        X: Any = (rng.standard_normal((rows, n)) / np.sqrt(n)).astype(self.dtype)
        if share < 1:
            X = sp.csr_array(np.where(rng.random(X.shape) < share, X, 0))
        data = Pool(X, rng.integers(0, max(2, self.classes), rows).astype(self.dtype), None, sizes, self.dtype)
        groups = list(
            plan_blocks(sizes, n, X.dtype.itemsize, choose_block_size().bytes * (SPARSE_FACTOR if share < 1 else 1))
        )
        labels = self.build().labels
        blocks = fill_blocks(data, data.rows, BlockLayout(0, sizes, groups, X.dtype, kernels=self.kind), labels)
        return Clients(blocks, groups, [data.rows(i, i + 1) for i in range(m)])

    def amounts(self) -> tuple[float, float]:
        """Flops, and bytes of the samples without padding."""
        parts, sparse = self.clients().parts, self.shape[-1] < 1
        arrays = [(A.data, A.indices, A.indptr) if sparse else (A,) for A, _ in parts]
        numbers = sum(features[0].size for features in arrays)
        size = sum(array.nbytes for features in arrays for array in features) + sum(b.nbytes for _, b in parts)
        return 4.0 * numbers * self.classes * KERNELS[self.name][2], size


def last_gradient(at: Callable[[Array], Array], w: Array, steps: int) -> Array:
    """The gradient after so many steps, the first of which is at w."""
    g = at(w)
    for _ in range(steps - 1):
        w = w - GAMMA * g
        g = at(w)
    return g


def ours(problem: Problem, data: Clients, X: Array, steps: int) -> list[Array]:
    """The final gradient of each client, in the order of the blocks."""
    pairs = zip(data.blocks, data.groups, strict=True)
    return [last_gradient(partial(problem.grad, block), X[group], steps) for block, group in pairs]


def loop(problem: str, data: Clients, X: Array, steps: int) -> list[Array]:
    """The final gradient of each client, one client after the other."""
    return [
        last_gradient(partial(gradient, problem, REGULARISERS.get(problem, 0.0), A, b), X[i], steps)
        for i, (A, b) in enumerate(data.parts)
    ]


def prepare(task: Task) -> Callable[[], Array]:
    """A repetition, to be run: CPU seconds of ours and of the loop, and the deviation."""
    name, _, steps = KERNELS[task.name]
    problem, data = task.build(), task.clients()
    m, n = len(data.parts), task.shape[3]
    columns = n if task.classes == 1 else task.classes * (n + 1)
    X = (0.1 * np.random.default_rng(1).standard_normal((m, columns))).astype(task.dtype)
    expected = np.array(loop(name, data, X, steps))[np.concatenate(data.groups)]
    off = np.abs(np.concatenate(ours(problem, data, X, steps)) - expected).max() / np.abs(expected).max()
    once = turn([partial(ours, problem, data, X, steps), partial(loop, name, data, X, steps)], task.least)
    return lambda: np.array([*once(), off])


def caches() -> dict[str, int]:
    """Bytes of the caches that hold data, by level."""
    found = {}
    for index in sorted((CPUS / "cpu0" / "cache").glob("index*")):
        if (index / "type").read_text().strip() in ("Data", "Unified"):
            found[f"L{(index / 'level').read_text().strip()}"] = parse_size((index / "size").read_text())
    return found or ASSUMED


def reads(most: int) -> dict[str, int]:
    """The number of bytes to read for each level of memory; a level that its neighbours hide is left out."""
    known = caches()
    sizes = {name: size // 2 for name, size in known.items() if name in ("L1", "L2")}
    largest = max(sizes.values(), default=ASSUMED["L2"])
    if known.get("L3", 0) > 4 * largest:
        sizes["L3"] = min(32 * largest, known["L3"] // 2)
    return {name: size for name, size in sizes.items() if size < most} | {"memory": most}


def reading(size: int, least: float) -> Callable[[], Array]:
    """Read ``size`` bytes, short ones many times in a call: bytes a second."""
    x, y = np.ones((2, max(1, size // 16)))
    shape = (max(1, (1 << 22) // size), len(x))
    once = turn([partial(np.vecdot, np.broadcast_to(x, shape), np.broadcast_to(y, shape))], least)
    return lambda: 16.0 * shape[0] * shape[1] / once()


def multiplying(dtype: str, least: float) -> Callable[[], Array]:
    """Multiply two matrices: flops a second."""
    A = np.ones((GEMM, GEMM), dtype)
    once = turn([partial(np.matmul, A, A, out=np.empty_like(A))], least)
    return lambda: 2.0 * GEMM**3 / once()


def ceilings(args: argparse.Namespace) -> list[Ceiling]:
    """The limits of the machine."""
    jobs = {(name, "B/s"): partial(reading, size, args.least) for name, size in reads(int(args.most)).items()}
    jobs |= {(dtype, "flop/s"): partial(multiplying, dtype, args.least) for dtype in args.dtypes}
    table, found = Table({"ceiling": 8, "unit": 7, "alone": 6, "busy": 6}, args.to / "ceilings.csv"), []
    for (name, unit), job in jobs.items():
        alone, *crowd = (float(np.max(own)) for own in everyone(job, args))
        found.append(Ceiling(name, unit, alone, min(crowd, default=None)))
        table.row(name, f"G{unit}", alone / 1e9, (crowd and min(crowd) / 1e9) or None)
    return found


def tasks(args: argparse.Namespace) -> Iterator[Task]:
    """What is asked for and there: compiled kernels take dense samples, and not every problem."""
    for dtype, name, kind in product(args.dtypes, among(args.cases, KERNELS), kernels(args)):
        task = Task(name, dtype, kind, args.least)
        if kind == "numpy" or (task.shape[-1] == 1 and task.build().compiles()):
            yield task


def kernel_rows(args: argparse.Namespace) -> dict[str, list[Point]]:
    """The table of kernels; by the type of the numbers, what they achieve and the picture shows."""
    columns = {"kernel": 22, "dtype": 7, "kernels": 8, "flop : byte": 5, "µs/client": 6, "ours : loop": 22, "off": 7}
    busy = {"busy ours : loop": 22, "busy GFLOP/s": 6} if args.busy else {}
    table = Table({**columns, "GFLOP/s": 6, **busy}, args.to and args.to / "kernels.csv")
    found: dict[str, list[Point]] = {dtype: [] for dtype in args.dtypes}
    for task in tasks(args):
        flops, size = task.amounts()
        copies = [np.array(own) for own in everyone(partial(prepare, task), args)]
        ratios = [spread(own[:, 0] / own[:, 1]) for own in copies]
        speeds = [flops / float(np.median(own[:, 0])) for own in copies]
        crowd = [max(ratios[1:]), min(speeds[1:]) / 1e9] if args.busy else []
        each = 1e6 * float(np.median(copies[0][:, 0])) / task.shape[0]
        cells = [flops / size, each, ratios[0], tiny(copies[0][0, 2]), speeds[0] / 1e9]
        table.row(task.name, task.dtype, task.kind, *cells, *crowd)
        if KERNELS[task.name][1] != "small":  # which fits into a cache, whatever limits it
            point = Point(task.name, task.kind, flops / size, speeds[0], min(speeds[1:], default=None))
            found[task.dtype].append(point)
    return found


def main() -> None:
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 8 // len(cores())
    options = {"repeat": 5, "least": 0.05, "most": min(1 << 30, memory), "busy": False, "kernels": "numpy", "to": None}
    args = parser(__doc__, cases=",".join(KERNELS), dtypes="float32,float64", **options).parse_args()
    if args.to is None:
        kernel_rows(args)
        return
    args.to.mkdir(parents=True, exist_ok=True)
    limits = ceilings(args)
    drawn = draw_roofline(limits, kernel_rows(args), args.to / "roofline.png")
    told(args.to, "ceilings.csv, kernels.csv", "roofline.png", drawn)


if __name__ == "__main__":
    main()
