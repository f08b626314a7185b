"""mpirun -n 2 python -m benchmarks.speed.messages: bare messages of two ranks, and additions, for the cost model."""

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.speed.common import printed, starter
from benchmarks.speed.cost_model import Points

BYTES = [0, 64, 1024, 4096, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22]
STREAM = [10, 30, 100, 300, 1000]


def bare(launcher: str) -> dict[str, Points]:
    """What this program measures on two ranks that the launcher starts: the arguments of ``cost_model.fit``."""
    command = [*starter(launcher, 2), sys.executable, "-m", "benchmarks.speed.messages"]
    found: dict[str, Points] = json.loads(printed(command, 100))
    return found


def main() -> None:
    """Measure on two ranks; rank 0 prints what it found as JSON."""
    from mpi4py import MPI

    comm = MPI.COMM_WORLD
    steps = (comm.Send, comm.Recv) if comm.rank == 0 else (comm.Recv, comm.Send)

    def pingpong(size: int) -> None:
        for step in steps:
            step(buffer[:size], 1 - comm.rank)

    def stream(count: int) -> None:
        for _ in range(count):
            steps[0](buffer[:8], 1 - comm.rank)

    def add(size: int) -> None:
        np.add(a[: size // 8], b[: size // 8])

    buffer = np.zeros(BYTES[-1], np.uint8)
    a, b = np.zeros((2, BYTES[-1] // 8))
    found = {
        "pingpong": (BYTES, [clocked(comm, pingpong, size) / 2 for size in BYTES]),
        "stream": (STREAM, [clocked(comm, stream, count) for count in STREAM]),
        "additions": (BYTES, [clocked(comm, add, size) for size in BYTES]),
    }
    if comm.rank == 0:
        print(json.dumps(found))


def clocked(comm: Any, job: Callable[[int], None], size: int, count: int = 200) -> float:
    """Median seconds of a job, without the first tenth of the calls."""
    times = []
    for _ in range(count):
        comm.Barrier()
        begun = time.perf_counter()
        job(size)
        times.append(time.perf_counter() - begun)
    return float(np.median(times[count // 10 :]))


if __name__ == "__main__":
    main()
