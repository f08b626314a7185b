"""mpirun -n 3 python -m benchmarks.speed.collectives: a round with empty client work : bare Bcast + Allreduce.

One client a host, who replies with the model it was sent: what is left is packing, the broadcast, the reproducible sum and
the bookkeeping. Microseconds a round, the median of several repetitions taken in turns.
"""
from __future__ import annotations

import os
import time
from itertools import pairwise
from typing import Any, NamedTuple

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
from mpi4py import MPI

from mpifed import config, sums
from mpifed.federation import Federation
from mpifed.host import Host
from mpifed.mpi import Server, World, serve


class Client(NamedTuple):
    pass


class Idle:
    """Clients who send back what they get."""

    personal = False

    def join(self, f: Any) -> Client:
        return Client()

    def echo(self, f: Any, client: Client, x: np.ndarray) -> tuple[Client, np.ndarray]:
        return client, np.broadcast_to(x, (len(f), len(x)))


def bare(comm: MPI.Comm, n: int, count: int) -> float:
    """Seconds of a Bcast and an Allreduce of n doubles."""
    x, y = np.zeros(n), np.zeros(n)
    begun = time.perf_counter()
    for _ in range(count):
        comm.Bcast(x, 0)
        comm.Allreduce(x, y)
    return (time.perf_counter() - begun) / count


def main() -> None:
    world = World()
    comm, hosts = world.comm, world.size - 1
    if world.rank == 0:
        print(f"{world.size} ranks\n       n   bare µs   round µs   round : bare")
    for n in (100, 1000, 10_000, 100_000, 1_000_000):
        count = max(5, min(500, 2_000_000 // n))
        setup = config.experiment({"data": {"name": "gaussian", "clients": hosts, "samples": 1, "features": 1},
                                   "problem": "logistic"})
        data = setup.data.load(0, "float64")
        cuts, start = sums.cuts(data.sizes, hosts), np.zeros(n)
        plain = [bare(comm, n, count) for _ in range(5)]
        if world.rank:
            host = Host(data, setup.problem, Idle(), cuts[world.rank - 1], cuts[world.rank], start, "float64", 0)
            host.join()
            serve(world, cuts, host)
            continue
        trees = [sums.nodes(lo, hi, data.m) for lo, hi in pairwise(cuts)]
        fed = Federation(Server(world, cuts, trees, "float64"), setup.problem, setup.selection.draws(0, data.m, 1), 0,
                         data.sizes, start, "float64")
        x, ours = np.random.default_rng(0).normal(size=n), []
        for _ in range(6):
            begun = time.perf_counter()
            for _ in range(count):
                fed.mean(Idle().echo, x)
            ours.append((time.perf_counter() - begun) / count)
        fed._transport.stop()  # type: ignore[attr-defined]
        a, b = np.median(ours[1:]) * 1e6, np.median(plain) * 1e6
        print(f"{n:>8} {b:9.1f} {a:10.1f} {a / b:14.2f}", flush=True)


if __name__ == "__main__":
    main()
