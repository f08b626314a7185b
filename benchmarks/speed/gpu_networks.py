"""python -m benchmarks.speed.gpu_networks: rounds of a CNN on a GPU, how a run starts there, and the memory it takes.

conv 32 – conv 64 – 128 – 10 on 3 × 32 × 32 (315,722 parameters), 1000 clients of 50 samples in float32, 50 of them a
round, one epoch of mini-batches of 10. ``--part`` takes some of

rounds   wall milliseconds a round of FedAvg, best and (median) of the repetitions, which go in turn, and the ratio to
         the plain loop over clients: ours; the loop; ``torch.func.vmap`` in twenty lines; the same with convolutions as
         matrix products, through torch.compile; both as CUDA graphs. Before that, ours and the loop take two rounds
         with the same clients and draws in double precision and must end at the same model but for rounding
start    seconds of the whole command without rounds and evaluations
memory   peak on device and host, and what it grows by for each byte of samples more: a run with few clients, in a
         process of its own as well, is the base

Ours includes recording, byte counts and timers; its first round and evaluating are left out. All jobs take the clients
at random and end with the mean of their models on the device. Where there is a GPU, mpifed has switched TF32 off and
deterministic algorithms on, for all of them. KEY=VALUE such as problem.batched=false changes ours. ``--device cpu
--tiny`` runs everything small without a GPU, which shows that it runs, not how fast.
"""

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.measuring import fresh, launched, parser, play
from benchmarks.speed.models import CASES, SMALL, Loop, batched, shuffled, stacked, torch, unfolded
from benchmarks.speed.networks import ROOT, Task, deviation, ours, samples, start
from benchmarks.speed.printing import Table, best_and_median, spread
from mpifed.core.toml import toml_value

NO_GPU = "PyTorch finds no GPU here; --device cpu --tiny runs everything small on the CPU, to see that it runs"
KILO = 1 if sys.platform == "darwin" else 1024  # bytes in the unit of ru_maxrss
MB = 1e6
Round = Callable[[], object]
Drawn = Callable[[], tuple[Any, Any]]  # samples and classes of clients at random


def seconds(device: str) -> float:
    """Wall time, when the kernels before have ended."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def clock(job: Round, device: str, count: int) -> float:
    """Wall seconds of a call."""
    begun = seconds(device)
    for _ in range(count):
        job()
    return (seconds(device) - begun) / count


def jobs(task: Task) -> dict[str, Callable[[], float]]:
    """What is measured, by name: a function that measures the wall seconds of a round, over all but one of a run."""
    case, device = task.case, task.device
    setup = task.study()
    x, parts = start(setup).to(device), samples(setup, task)
    deviation(task)
    loop = Loop(case.make(), x, parts)
    A, b = stacked(parts)

    def selected() -> Any:
        return torch.randperm(len(parts))[: case.clients]

    def drawn() -> tuple[Any, Any]:
        rows = selected().to(device)
        return shuffled(A[rows], b[rows])

    rounds: dict[str, Round] = {"plain loop": lambda: loop.round(selected().tolist())}
    rounds |= in_one_pass(task, loop.server, drawn)
    for job in rounds.values():
        job()  # warms up: the first call compiles
    clocks = {name: partial(clock, job, device, task.rounds - 1) for name, job in rounds.items()}
    return {"mpifed": lambda: ours(setup, partial(seconds, device)).round} | clocks


def in_one_pass(task: Task, x: dict[str, Any], drawn: Drawn) -> dict[str, Round]:
    """Rounds of vmap: as it is, compiled, and both as CUDA graphs where there is a GPU."""
    backend = "inductor" if task.device == "cuda" else "eager"  # a CPU without a compiler can trace, no more
    products = batched(unfolded(task.case.make()).to(task.device))
    named = {
        "vmap": batched(task.case.make().to(task.device)),
        f"products, torch.compile ({backend})": torch.compile(products, backend=backend),
    }
    found: dict[str, Round] = {name: partial(called, round, x, drawn) for name, round in named.items()}
    if task.device == "cuda":
        found |= {f"{name}, CUDA graph": captured(round, x, drawn) for name, round in named.items()}
    return found


def called(round: Callable[..., Any], x: dict[str, Any], drawn: Drawn) -> Any:
    """A round with new samples."""
    return round(x, *drawn())


def captured(round: Callable[..., Any], x: dict[str, Any], drawn: Drawn) -> Round:
    """The round as a CUDA graph, which new samples are copied into."""
    inputs = drawn()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):  # a graph is captured after some calls on a stream of its own
        for _ in range(3):
            round(x, *inputs)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        means = round(x, *inputs)

    def replay() -> dict[str, Any]:
        for static, new in zip(inputs, drawn(), strict=True):
            static.copy_(new)
        graph.replay()
        return {name: mean.clone() for name, mean in means.items()}

    return replay


def told(args: argparse.Namespace) -> Task:
    """What the options ask for."""
    case = SMALL if args.tiny else CASES["CNN"]
    return Task(case, args.rounds + 1, settings=tuple(args.settings), device=args.device)


def rounds(args: argparse.Namespace) -> None:
    """The table of rounds."""
    task = told(args)
    each = jobs(task)
    turns = [[job() for job in each.values()] for _ in range(args.repeat)]
    found = dict(zip(each, zip(*turns, strict=True), strict=True))
    print(f"{task.case.name}, {task.case.clients} of {task.case.all} clients")
    table = Table({"round": 44, "ms (median)": 16, "to the loop": 6}, args.to and args.to / "gpu_rounds.csv")
    for name, times in found.items():
        table.row(name, best_and_median(times), min(times) / min(found["plain loop"]))


def whole_start(args: argparse.Namespace) -> None:
    """The seconds of the start."""
    task = told(args)._replace(rounds=2)
    settings = [f"{key}={toml_value(value)}" for key, value in task.table().items()]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(args.repeat):
            result, whole = launched("", 1, [*settings, *args.settings], Path(folder) / "run.h5")
            later = result.rounds["elapsed_seconds"][-1] + float(np.nansum(result.rounds["evaluate_seconds"]))
            found.append(whole - later)
    print(f"start without rounds and evaluations: {spread(found)} s", flush=True)


class Peak(NamedTuple):
    """Bytes of the samples, and the most that a run took."""

    samples: float
    device: float
    host: float


def peak(task: Task) -> Peak:
    """The memory of a run of ours, to be called in a process of its own."""
    ours(task.study(), partial(seconds, task.device))
    most = torch.cuda.max_memory_allocated() if task.device == "cuda" else float("nan")
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILO
    return Peak(4.0 * task.case.all * task.case.samples * (np.prod(task.case.shape) + 1), most, host)


def memory(args: argparse.Namespace) -> None:
    """The table of memory."""
    task = told(args)
    small = task._replace(case=task.case._replace(all=task.case.clients))
    base, full = (fresh(peak, one) for one in (small, task))
    table = Table({"memory": 8, "peak MB": 8, "a byte of samples more": 6}, args.to and args.to / "gpu_memory.csv")
    for name, least, most in zip(Peak._fields, base, full, strict=True):
        table.row(name, most / MB, float((most - least) / (full.samples - base.samples)))


def main() -> None:
    options: dict[str, Any] = {"rounds": 10, "repeat": 5, "device": "cuda", "tiny": False, "to": None}
    args = parser(__doc__, part="rounds,start,memory", **options, settings=None).parse_args()
    if args.device == "cuda" and not torch.cuda.is_available():
        print(NO_GPU)
        return
    sys.path.insert(0, ROOT)
    play({"rounds": rounds, "start": whole_start, "memory": memory}, args)


if __name__ == "__main__":
    main()
