"""Rounds of FedAvg on a GPU for ``benchmarks.speed.gpu_networks``: ours, the plain loop, and what vmap makes possible.

All jobs take the clients of a case at random and end with the mean of their models on the device. Where there is a GPU,
mpifed has switched TF32 off and deterministic algorithms on, for all of them.
"""

import resource
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import torch

from benchmarks.speed.models import Case, unfolded
from benchmarks.speed.network_runs import deviation, ours, samples, start, study
from benchmarks.speed.plain_networks import Loop, batched, shuffled, sliced

KILO = 1 if sys.platform == "darwin" else 1024  # bytes in the unit of ru_maxrss
Round = Callable[[], object]


class Device(NamedTuple):
    """Where it runs."""

    name: str

    def words(self) -> list[str]:
        """Settings of our run."""
        return [f"problem.device={self.name}"]

    def wait(self) -> None:
        """Wait until all kernels have ended."""
        if self.name == "cuda":
            torch.cuda.synchronize()

    def seconds(self) -> float:
        """Wall time, when the kernels before have ended."""
        self.wait()
        return time.perf_counter()

    def clock(self, job: Round, count: int) -> float:
        """Wall seconds of a call."""
        begun = self.seconds()
        for _ in range(count):
            job()
        return (self.seconds() - begun) / count


def rounds(case: Case, device: Device, count: int, overrides: Sequence[str]) -> dict[str, Callable[[], float]]:
    """What is measured, by name: a function that measures the wall seconds of a round, over ``count`` of them."""
    setup = study(case, "fedavg", count + 1, overrides=[*device.words(), *overrides])
    x, parts = start(setup).to(device.name), samples(setup, case, device.name)
    deviation(case, "fedavg", "torch", [*device.words(), *overrides], device.name)
    loop = Loop(case.make(), x, parts, sliced(parts))
    A, b = (torch.stack([part[k] for part in parts]) for k in range(2))

    def selected() -> Any:
        return torch.randperm(len(parts))[: case.clients]

    def drawn() -> tuple[Any, Any]:
        rows = selected().to(device.name)
        return shuffled(A[rows], b[rows])

    jobs: dict[str, Round] = {"plain loop": lambda: loop.round(selected().tolist())}
    jobs |= batches(case, device, loop.server, drawn)
    for job in jobs.values():
        job()  # warms up: the first call compiles
    clocks = {name: partial(device.clock, job, count) for name, job in jobs.items()}
    return {"mpifed": lambda: ours(setup, device.seconds).round} | clocks


def batches(case: Case, device: Device, x: dict[str, Any], drawn: Callable[[], tuple[Any, Any]]) -> dict[str, Round]:
    """Rounds of vmap: as it is, compiled, and both as CUDA graphs where there is a GPU."""
    backend = "inductor" if device.name == "cuda" else "eager"  # a CPU without a compiler can trace, no more
    plain = batched(case.make().to(device.name))
    products = batched(unfolded(case.make()).to(device.name))
    compiled = torch.compile(products, backend=backend)
    named = {"vmap": plain, f"products, torch.compile ({backend})": compiled}
    jobs: dict[str, Round] = {name: partial(called, round, x, drawn) for name, round in named.items()}
    if device.name == "cuda":
        jobs |= {f"{name}, CUDA graph": captured(round, x, drawn) for name, round in named.items()}
    return jobs


def called(round: Callable[..., Any], x: dict[str, Any], drawn: Callable[[], tuple[Any, Any]]) -> Any:
    """A round with new samples."""
    return round(x, *drawn())


def captured(round: Callable[..., Any], x: dict[str, Any], drawn: Callable[[], tuple[Any, Any]]) -> Round:
    """The round as a CUDA graph, which new samples are copied into."""
    inputs = drawn()
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
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


def methods(case: Case, device: Device, names: Sequence[str], count: int, overrides: Sequence[str]) -> dict[str, float]:
    """Wall seconds of a round of ours by each method."""
    words = [*device.words(), *overrides]
    return {name: ours(study(case, name, count + 1, overrides=words), device.seconds).round for name in names}


class Peak(NamedTuple):
    """Bytes of the samples, and the most that a run took."""

    samples: float
    device: float
    host: float


def peak(case: Case, device: Device, count: int, overrides: Sequence[str]) -> Peak:
    """The memory of a run of ours, to be called in a process of its own."""
    ours(study(case, "fedavg", count + 1, overrides=[*device.words(), *overrides]), device.seconds)
    most = torch.cuda.max_memory_allocated() if device.name == "cuda" else float("nan")
    size = torch.Size(case.shape).numel() + 1
    host = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * KILO
    return Peak(4.0 * case.all * case.samples * size, most, host)
