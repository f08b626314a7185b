"""Where ``benchmarks.speed.gpu_linear`` measures: a GPU with torch, or numba's simulator of one with numpy."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

STEPS = 5
GAMMA = 0.1
MU = 1e-3
Job = Callable[[], Any]


class Row(NamedTuple):
    """So many clients with so many samples of so many features; milliseconds that ours may take."""

    clients: int
    samples: int
    features: int
    dtype: str = "float32"
    goal: float | None = None


class Samples(NamedTuple):
    """Features (c, D, n), labels and weights (c, D), factors of the regulariser (c,), step sizes and a model (n,)."""

    A: Any
    b: Any
    w: Any
    s: Any
    gamma: Any
    x: Any


class Gpu:
    """One GPU, with torch for arrays, events and graphs."""

    def __init__(self, row: Row) -> None:
        import torch

        self.torch = torch
        self.kind = {"dtype": getattr(torch, row.dtype), "device": "cuda"}
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()

    def empty(self, shape: tuple[int, ...]) -> Any:
        return self.torch.empty(shape, **self.kind)

    def samples(self, row: Row) -> Samples:
        torch = self.torch
        draw = torch.Generator("cuda").manual_seed(0)
        A = torch.randn((row.clients, row.samples, row.features), generator=draw, **self.kind)
        A /= row.features**0.5
        b = torch.rand((row.clients, row.samples), generator=draw, **self.kind).round_()
        w = torch.full_like(b, 1 / row.samples)
        s = torch.full((row.clients,), MU / row.samples, **self.kind)
        gamma = torch.full((STEPS,), GAMMA, **self.kind)
        return Samples(A, b, w, s, gamma, torch.full((row.features,), 0.1, **self.kind))

    def clock(self, job: Job, repeat: int) -> list[float]:
        """Milliseconds of each of so many calls."""
        events = [[self.torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(repeat)]
        for begun, ended in events:
            begun.record()
            job()
            ended.record()
        self.torch.cuda.synchronize()
        return [begun.elapsed_time(ended) for begun, ended in events]

    def wall(self, job: Job, repeat: int) -> list[float]:
        """Milliseconds until each of so many calls has returned, which end on the processor."""
        found = []
        for _ in range(repeat):
            begun = time.perf_counter()
            job()
            found.append((time.perf_counter() - begun) * 1e3)
        return found

    def device(self) -> Any:
        """The device, as a run has it."""
        from mpifed.problems.torch_device import device_of

        return device_of("cuda")

    def stream(self) -> int:
        return int(self.torch.cuda.current_stream().cuda_stream)

    def graph(self, job: Job) -> Callable[[], Any]:
        """The same work, launched at once."""
        found = self.torch.cuda.CUDAGraph()
        with self.torch.cuda.graph(found):
            job()
        return found.replay

    def peak(self) -> int:
        return int(self.torch.cuda.max_memory_allocated())

    def numpy(self, array: Any) -> np.ndarray:
        return np.asarray(array.cpu())


class Simulator:
    """Numba's simulator of a GPU, with numpy for arrays; it has neither graphs nor a bmm."""

    def __init__(self, row: Row) -> None:
        self.dtype = row.dtype

    def empty(self, shape: tuple[int, ...]) -> Any:
        return np.empty(shape, self.dtype)

    def samples(self, row: Row) -> Samples:
        rng = np.random.default_rng(0)
        A = rng.standard_normal((row.clients, row.samples, row.features)).astype(self.dtype)
        b = rng.integers(0, 2, (row.clients, row.samples)).astype(self.dtype)
        numbers = (np.full_like(b, 1 / row.samples), np.full(row.clients, MU / row.samples, self.dtype))
        return Samples(A, b, *numbers, np.full(STEPS, GAMMA, self.dtype), np.full(row.features, 0.1, self.dtype))

    def clock(self, job: Job, repeat: int) -> list[float]:
        return seconds(job, repeat)

    wall = clock

    def device(self) -> Any:
        import torch

        return torch.device("cpu")

    def stream(self) -> int:
        return 0

    def numpy(self, array: Any) -> np.ndarray:
        return np.asarray(array)


def seconds(job: Job, repeat: int) -> list[float]:
    """Milliseconds of the processor for each of so many calls."""
    found = []
    for _ in range(repeat):
        begun = time.process_time()
        job()
        found.append((time.process_time() - begun) * 1e3)
    return found
