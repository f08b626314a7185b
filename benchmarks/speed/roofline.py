"""python -m benchmarks.speed.roofline --to folder: what limits the kernels, memory or arithmetic.

Ceilings of a core of this machine: bandwidth of reading from each level of memory (dot products of two vectors, the
fastest read in numpy, that fill half of a cache; L3 at 16 times L2, memory at --most bytes) and the peak of arithmetic
(gemm of 512 × 512). Where caches are shared with other machines, as in a cloud, the last two may lie close together.

Points: gradients at a separate point for each client, of 128 clients × 70 samples × 1024 features, in blocks as in a
run: linear problems and softmax with 10 classes on dense samples, logistic regression in five gradient steps as in case
A, and on CSR samples with 9 % non-zeros. ``flops : byte`` counts additions and multiplications of the two products with
the samples (4 for each number and class; exp and regularisers are not counted) and the bytes of the samples, read once.
A kernel that reads from a level and is limited by it lies on the line of this level; two passes over samples that do
not stay in a cache lie a factor of two below.

Everything is measured in CPU time. ``alone`` is one process on an idle machine; with --busy a copy works on each core
at once, and the slowest copy is told. Bandwidths and peak are the best repetition, kernels the median. Compiled kernels
are measured where numba is installed (extra fast). The folder gets roofline.csv and, if matplotlib is installed (extra
plot), roofline.png.
"""

import argparse
import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from benchmarks.speed import busy, kernels
from benchmarks.speed.common import figure, told, turn, write_csv
from benchmarks.speed.roofline_picture import Ceiling, Point, draw
from mpifed.core.processor import CPUS, in_bytes
from mpifed.core.typing import Array
from mpifed.data.compiled import compiling
from mpifed.problems.base import Problem

GEMM = 512
ASSUMED = {"L1": 32 << 10, "L2": 1 << 20, "L3": 32 << 20}  # bytes, where the system does not tell
KERNELS = {  # name: problem, shape of the clients, steps
    "least squares": ("least-squares", "wide", 1),
    "logistic": ("logistic", "wide", 1),
    "non-convex logistic": ("nonconvex-logistic", "wide", 1),
    "logistic, 5 steps": ("logistic", "wide", kernels.STEPS),
    "softmax": ("softmax", "wide", 1),
    "logistic, CSR": ("logistic", "sparse", 1),
}


class Task(NamedTuple):
    """A kernel to measure."""

    name: str
    kind: str
    dtype: str
    least: float


def caches() -> dict[str, int]:
    """Bytes of the caches that hold data, by level."""
    found = {}
    for index in sorted((CPUS / "cpu0" / "cache").glob("index*")):
        if (index / "type").read_text().strip() in ("Data", "Unified"):
            found[f"L{(index / 'level').read_text().strip()}"] = in_bytes((index / "size").read_text())
    return found or ASSUMED


def reads(most: int) -> dict[str, int]:
    """The number of bytes to read for each level of memory; a level that its neighbours hide is left out."""
    known, sizes = caches(), dict[str, int]()
    for name in ("L1", "L2"):
        if name in known:
            sizes[name] = known[name] // 2
    largest = max(sizes.values(), default=ASSUMED["L2"])
    if known.get("L3", 0) > 4 * largest:
        sizes["L3"] = min(32 * largest, known["L3"] // 2)
    return {name: size for name, size in sizes.items() if size < most} | {"memory": most}


def reading(size: int, least: float) -> Callable[[], Array]:
    """Read ``size`` bytes, short ones many times in a call."""
    x, y = np.ones((2, max(1, size // 16)))
    many = max(1, (1 << 22) // size)
    shape = (many, len(x))
    return turn([partial(np.vecdot, np.broadcast_to(x, shape), np.broadcast_to(y, shape))], least)


def multiplying(dtype: str, least: float) -> Callable[[], Array]:
    """Multiply two matrices."""
    A = np.ones((GEMM, GEMM), dtype)
    return turn([partial(np.matmul, A, A, out=np.empty_like(A))], least)


def gradient(task: Task) -> Callable[[], Array]:
    """Compute a kernel for all clients."""
    problem, data, X, _ = prepared(task)
    return turn([partial(kernels.ours, problem, data, X, KERNELS[task.name][2])], task.least)


def prepared(task: Task) -> tuple[Problem, kernels.Clients, Array, int]:
    """Problem, clients, a point for each client, and the number of outputs of the linear map."""
    name, shape, _ = KERNELS[task.name]
    classes = kernels.CLASSES if name == "softmax" else 1
    data = kernels.clients(shape, task.dtype, max(2, classes))
    problem = Problem.build({"name": name, **kernels.PROBLEMS[name]}, "problem")
    m, n = len(data.parts), kernels.SHAPES[shape][3]
    X = 0.1 * np.random.default_rng(1).standard_normal((m, classes * (n + 1) if classes > 1 else n))
    if task.kind == "compiled":
        from mpifed.data.compiled.block import CompiledBlock

        data = data._replace(blocks=[CompiledBlock(one.A, one.b, one.d, one.n, one.w) for one in data.blocks])
    return problem, data, X.astype(task.dtype), classes


def kinds(name: str) -> list[str]:
    """The kernels that there are here for a problem: numpy, and compiled ones of the extra ``fast``."""
    problem, shape, _ = KERNELS[name]
    compiles = Problem.build({"name": problem, **kernels.PROBLEMS[problem]}, "problem").compiles()
    return ["numpy", "compiled"] if compiles and shape == "wide" and compiling.installed() else ["numpy"]


def amounts(task: Task) -> tuple[float, float]:
    """Flops, and bytes of the samples without padding."""
    _, data, _, classes = prepared(task)
    features = [A for A, _ in data.parts]
    if sp.issparse(features[0]):
        numbers = sum(A.nnz for A in features)
        size = sum(A.data.nbytes + A.indices.nbytes + A.indptr.nbytes for A in features)
    else:
        numbers, size = sum(A.size for A in features), sum(A.nbytes for A in features)
    return 4.0 * numbers * classes * KERNELS[task.name][2], size + sum(b.nbytes for _, b in data.parts)


def seconds(prepare: Callable[[], Any], args: argparse.Namespace, best: bool) -> tuple[float, float | None]:
    """Seconds alone and of the slowest of as many copies as cores: the best or the median of the repetitions."""
    told, cores = np.min if best else np.median, busy.cores()
    (alone,) = busy.copies(prepare, args.repeat, cores[:1])
    crowd = busy.copies(prepare, args.repeat, cores) if args.busy else []
    return float(told(alone)), max((float(told(copy)) for copy in crowd), default=None)


def rate(amount: float, prepare: Callable[[], Any], args: argparse.Namespace, best: bool) -> tuple[float, float | None]:
    """Amount a second, alone and busy."""
    alone, crowd = seconds(prepare, args, best)
    return amount / alone, None if crowd is None else amount / crowd


def ceilings(args: argparse.Namespace) -> list[Ceiling]:
    """The limits of the machine."""
    found = []
    for name, size in reads(int(args.most)).items():
        amount = max(1, (1 << 22) // size) * max(1, size // 16) * 16
        found.append(Ceiling(name, "B/s", *rate(amount, partial(reading, size, args.least), args, True)))
        show(name, f"reading {size:,} bytes", *found[-1][2:], "GB/s")
    for dtype in args.dtypes.split(","):
        job = partial(multiplying, dtype, args.least)
        found.append(Ceiling(dtype, "flop/s", *rate(2.0 * GEMM**3, job, args, True)))
        show("gemm", dtype, *found[-1][2:], "GFLOP/s")
    return found


def show(name: str, what: str, alone: float, crowd: float | None, unit: str) -> None:
    """Print a line of the table."""
    busy = "" if crowd is None else figure(crowd / 1e9)
    print(f"{name:<22}{what:<26}{figure(alone / 1e9):>9}{busy:>9}  {unit}", flush=True)


def points(dtype: str, args: argparse.Namespace) -> list[Point]:
    """The kernels with numbers of a type."""
    found = []
    for name in KERNELS:
        for kind in kinds(name):
            task = Task(name, kind, dtype, args.least)
            flops, size = amounts(task)
            found.append(Point(name, kind, flops / size, *rate(flops, partial(gradient, task), args, False)))
            show(name, f"{dtype}, {kind}, {figure(flops / size)}", *found[-1][3:], "GFLOP/s")
    return found


def write(limits: list[Ceiling], found: dict[str, list[Point]], path: Path) -> None:
    """Write roofline.csv."""
    rows: list[list[Any]] = []
    for limit in limits:
        what = [limit.name, ""] if limit.unit == "B/s" else ["gemm", limit.name]
        rows.append([*what, "", "", *limit[1:]])
    for dtype, own in found.items():
        rows += [[p.name, dtype, p.kind, p.intensity, "flop/s", p.alone, p.busy] for p in own]
    write_csv(path, ["name", "dtype", "kernels", "flops_per_byte", "unit", "alone", "busy"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    option, memory = parser.add_argument, os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    option("--to", type=Path, default=Path("roofline"), help="folder of table and picture (default: roofline)")
    option("--dtypes", default="float32,float64", help="comma-separated (default: %(default)s)")
    option("--repeat", type=int, default=5, help="repetitions (default: 5)")
    option("--least", type=float, default=0.05, help="minimum seconds of a repetition (default: 0.05)")
    default = min(1 << 30, memory // 8 // len(busy.cores()))
    option("--most", type=float, default=default, help="bytes read from memory (default: %(default)s)")
    busy.add_option(parser)
    args = parser.parse_args()
    args.to.mkdir(parents=True, exist_ok=True)
    print(f"{'':<22}{'dtype, kernels, flops:byte':<26}{'alone':>9}{'busy' if args.busy else '':>9}")
    limits = ceilings(args)
    found = {dtype: points(dtype, args) for dtype in args.dtypes.split(",")}
    write(limits, found, args.to / "roofline.csv")
    told(args.to, "roofline.csv", "roofline.png", draw(limits, found, args.to / "roofline.png"))


if __name__ == "__main__":
    main()
