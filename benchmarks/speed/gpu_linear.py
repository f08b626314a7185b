"""python -m benchmarks.speed.gpu_linear: a round of FedAvg on logistic regression, all clients on one GPU.

Each client takes five steps with gradients of all its samples, from the server's model; then models are averaged. Data
are made on the device from a seed. Reported are milliseconds a round, between events of CUDA, as median
(smallest–largest) over repetitions after a warm-up:

ours        the kernels of mpifed.data.cuda: all steps in one launch, and the mean along the tree over client numbers
steps       the first of the two alone
graph       ours in a CUDA graph, without the time that Python takes to launch
bmm         torch.bmm for scores and gradients of all clients, and torch.mean, as one would write it
bmm graph   the same in a CUDA graph
loop        numpy on one core of the processor, one client after the other, where there are at most 10,000

``first`` is how many seconds the first round of ours took, in which kernels are compiled or loaded. ``memory`` is the
peak on the device in ours, as a multiple of the samples. ``off`` is how far models of ours and bmm are from each other,
relative to the largest number. ``goal`` is what a round is to take at most on an H100.

A second table has rounds of FedAvg, FedProx and SCAFFOLD through mpifed on the same samples, from the server's call to
its next model, as milliseconds by the clock on the wall: all local steps in one launch, and those of FedAvg one after
the other (single steps). There ``first`` is the first round of FedAvg, and ``off`` compares its model with ours.

``--simulate`` runs tiny sizes in numba's simulator on the processor, ours, the loop and the second table: it shows that
the program runs, and its times say nothing. The second table needs torch there too.
"""

import argparse
import importlib.util
import os
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.common import figure, spread
from benchmarks.speed.gpu_machines import GAMMA, STEPS, Gpu, Job, Row, Samples, Simulator, seconds

LOOP = 10_000  # clients of the loop in numpy at most
COLUMNS = ("ours", "steps", "graph", "bmm", "bmm graph", "loop")
ROWS = {
    "A": Row(128, 70, 1024, goal=0.5),
    "A64": Row(128, 70, 1024, "float64"),
    "B": Row(1000, 20, 20, goal=0.3),
    "1e4": Row(10_000, 20, 20, goal=0.4),
    "1e5": Row(100_000, 20, 20),
    "1e6": Row(1_000_000, 20, 20, goal=6),
    "15e6": Row(15_000_000, 20, 20, goal=100),
}
TINY = {"tiny": Row(5, 3, 4), "tiny64": Row(3, 2, 9, "float64")}


def ours(machine: Gpu | Simulator, row: Row, data: Samples) -> tuple[Job, Job]:
    """A round, and its steps alone."""
    from mpifed.data.cuda.device import Device
    from mpifed.data.cuda.launch import Kernels, Model
    from mpifed.data.cuda.tree import tree_sum

    def kernels() -> Kernels:
        return Kernels(Model("logistic"), Device(np.dtype(row.dtype), machine.empty, machine.stream()))

    clients = kernels().clients(*data[:4])

    def steps() -> Any:
        return kernels().steps(clients, data.x, data.gamma)

    return lambda: tree_sum(kernels().device, steps(), count=row.clients), steps


def bmm(torch: Any, data: Samples) -> Job:
    """A round with torch's products of batches."""

    def round() -> Any:
        w = data.x.expand(len(data.A), -1)
        for _ in range(STEPS):
            z = torch.bmm(data.A, w.unsqueeze(2)).squeeze(2)
            r = (torch.sigmoid(z) - data.b) * data.w
            w = w - GAMMA * (torch.bmm(r.unsqueeze(1), data.A).squeeze(1) + data.s.unsqueeze(1) * w)
        return w.mean(0)

    return round


def loop(data: Samples) -> Job:
    """A round in numpy, one client after the other."""

    def round() -> np.ndarray:
        total = np.zeros_like(data.x)
        for A, b, p, s in zip(*data[:4], strict=True):
            w = data.x
            for _ in range(STEPS):
                w = w - GAMMA * (((1 / (1 + np.exp(-(A @ w))) - b) * p) @ A + s * w)
            total += w
        return total / len(data.A)

    return round


class Found(NamedTuple):
    """Milliseconds of each job, by its column, and what else is printed."""

    times: dict[str, list[float]]
    first: float
    memory: str
    off: float


def measure(machine: Gpu | Simulator, row: Row, repeat: int) -> Found:
    """A row of the table."""
    data = machine.samples(row)
    round, steps = ours(machine, row, data)
    begun = time.perf_counter()
    x = machine.numpy(round())
    first = time.perf_counter() - begun
    memory = "-"
    times = {"ours": warm(machine.clock, round, repeat), "steps": warm(machine.clock, steps, repeat)}
    if row.clients <= LOOP:
        job = loop(Samples(*map(machine.numpy, data)))
        times["loop"] = warm(seconds, job, min(repeat, 3))
        other = job()
    if isinstance(machine, Gpu):
        memory = figure(machine.peak() / data.A.nbytes)
        product = bmm(machine.torch, data)
        other = machine.numpy(product())
        times["bmm"] = warm(machine.clock, product, repeat)
        for name, job in (("graph", round), ("bmm graph", product)):
            times[name] = warm(machine.clock, machine.graph(job), repeat)
    return Found(times, first, memory, float(np.abs(x - other).max() / np.abs(other).max()))


def warm(clock: Callable[[Job, int], list[float]], job: Job, repeat: int) -> list[float]:
    """Milliseconds of so many calls, after a few."""
    clock(job, min(repeat, 3))
    return clock(job, repeat)


def through(machine: Gpu | Simulator, row: Row, repeat: int) -> Found:
    """A row of the second table."""
    from benchmarks.speed.gpu_methods import METHODS, clients, rounds

    data = machine.samples(row)
    expected = machine.numpy(ours(machine, row, data)[0]())
    here = Samples(*map(machine.numpy, data))
    del data
    machine = type(machine)(row)  # forgets what was on the device
    own = clients(row, here, machine.device())
    size = here.A.nbytes
    del here
    begun = time.perf_counter()
    x = rounds(own, "fedavg")()
    first = time.perf_counter() - begun
    times = {column: warm(machine.wall, rounds(own, column), repeat) for column in METHODS}
    memory = figure(machine.peak() / size) if isinstance(machine, Gpu) else "-"
    return Found(times, first, memory, float(np.abs(x - expected).max() / np.abs(expected).max()))


def why_not(simulate: bool) -> str | None:
    """Why nothing can be measured here, or None."""
    from mpifed.data.cuda.device import failure, installed, simulated

    if not installed():
        return "numba-cuda is not installed: pip install mpifed[cuda]"
    if simulate:
        return None if simulated() else "numba was imported before --simulate could tell it to simulate a GPU"
    if importlib.util.find_spec("torch") is None:
        return "torch is not installed: pip install mpifed[torch]"
    import torch

    return failure() if torch.cuda.is_available() else "torch finds no GPU; --simulate shows that the program runs"


def head(title: str, columns: Iterable[str]) -> None:
    """Print the first lines of a table."""
    names = "".join(f"{name:<22}" for name in columns)
    print(f"{title}\n{'clients':<22}{'numbers':<9}{names}{'first':<7}{'memory':<8}{'off':<8}goal")


def show(row: Row, found: Found, columns: Iterable[str]) -> None:
    """Print a row."""
    name = f"{row.clients:,} × {row.samples} × {row.features}"
    times = "".join(f"{spread(found.times[k])!s:<22}" if k in found.times else f"{'-':<22}" for k in columns)
    goal = "-" if row.goal is None else f"{row.goal:g}"
    print(
        f"{name:<22}{row.dtype:<9}{times}{figure(found.first):<7}{found.memory:<8}{found.off:<8.0e}{goal}", flush=True
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", default=",".join(ROWS), help="comma-separated (default: %(default)s)")
    parser.add_argument("--repeat", type=int, default=20, help="repetitions after a warm-up (default: 20)")
    parser.add_argument("--simulate", action="store_true", help="tiny sizes in numba's simulator of a GPU")
    args = parser.parse_args()
    names = args.rows.split(",")
    if unknown := set(names) - ROWS.keys():
        parser.error(f"there is no row {', '.join(sorted(unknown))}; the rows are {', '.join(ROWS)}")
    if args.simulate:
        os.environ["NUMBA_ENABLE_CUDASIM"] = "1"
    if reason := why_not(args.simulate):
        sys.exit(f"nothing is measured: {reason}")
    rows = [*TINY.values()] if args.simulate else [ROWS[name] for name in names]
    machine = Simulator if args.simulate else Gpu
    repeat = 1 if args.simulate else args.repeat
    head(f"milliseconds a round of {STEPS} steps", COLUMNS)
    for row in rows:
        show(row, measure(machine(row), row, repeat), COLUMNS)
    if importlib.util.find_spec("torch") is None:
        return
    from benchmarks.speed.gpu_methods import METHODS

    head("the same through mpifed", METHODS)
    for row in rows:
        show(row, through(machine(row), row, repeat), [*METHODS])


if __name__ == "__main__":
    main()
