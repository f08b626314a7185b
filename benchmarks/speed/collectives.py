"""mpirun -n 3 python -m benchmarks.speed.collectives: time of a round without client work : bare Bcast + Allreduce.

Each host has one client, which replies with the model it received. What remains is packing, the broadcast, the sum and
bookkeeping. Measured with plain sums (reproducible = false) and with sums that have the same bits on any number of
ranks.
"""

import argparse
import time
from typing import Any, NamedTuple

import numpy as np
from mpi4py import MPI

from benchmarks.speed.common import Idle, Spread, spread
from mpifed.experiment import config
from mpifed.federation import sums
from mpifed.federation.host import Host
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup
from mpifed.mpi.channel import Server, Service
from mpifed.mpi.communicator import Communicator

LENGTHS = (100, 1000, 10_000, 100_000, 1_000_000)


class Client(NamedTuple):
    """No state."""


class Echo(Idle):
    """Clients that send back what they receive."""

    def join(self, f: Any) -> Client:
        return Client()

    def echo(self, f: Any, client: Client, x: np.ndarray) -> tuple[Client, np.ndarray]:
        return client, x[None]


def bare(comm: MPI.Comm, n: int, count: int) -> float:
    """Seconds of one Bcast and one Allreduce of n doubles."""
    x, y = np.zeros(n), np.zeros(n)
    begun = time.perf_counter()
    for _ in range(count):
        comm.Bcast(x, 0)
        comm.Allreduce(x, y)
    return (time.perf_counter() - begun) / count


def rounds(world: Communicator, setup: config.Experiment, n: int, count: int, reproducible: bool) -> float:
    """Seconds of a round of idle clients, measured on rank 0."""
    hosts = world.size - 1
    data = setup.data.load(0, "float64")
    cuts, agreed = sums.cuts(data.sizes, hosts), Setup(setup.problem, Echo(), 0, data.m, np.zeros(n))
    if world.rank:
        host = Host(agreed, data, cuts[world.rank - 1], cuts[world.rank])
        host.join()
        Service(world, cuts, "float64").serve(host)
        return 0.0
    server = Server(world, cuts, "float64")
    selector = setup.selection.selector(0, data.m, 1)
    fed = Federation(server, agreed, selector, data.sizes, reproducible=reproducible)
    fed.begin(1)  # from here on the ledger is charged
    x = np.random.default_rng(0).normal(size=n)
    for _ in range(3):
        fed.mean(Echo().echo, x)
    begun = time.perf_counter()
    for _ in range(count):
        fed.mean(Echo().echo, x)
    spent = (time.perf_counter() - begun) / count
    server.stop()
    return spent


def measured(world: Communicator, setup: config.Experiment, n: int, repeat: int) -> np.ndarray:
    """Seconds (repeat, 3) of the bare pair, and of a round with plain and with reproducible sums, in turn."""
    count = max(5, min(500, 2_000_000 // n))
    found = [
        (bare(world.comm, n, count), *(rounds(world, setup, n, count, kind) for kind in (False, True)))
        for _ in range(repeat)
    ]
    return np.array(found)


def told(ratio: Spread) -> str:
    """A ratio with its range."""
    return f"{ratio.median:5.2f} ({ratio.least:.2f}–{ratio.most:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=7, help="interleaved repetitions (default: %(default)s)")
    parser.add_argument("--most", type=int, default=1_000_000, help="the largest n (default: %(default)s)")
    args = parser.parse_args()
    world = Communicator()
    setup = config.experiment(
        {"data": {"name": "gaussian", "clients": world.size - 1, "samples": 1, "features": 1}, "problem": "logistic"}
    )
    crowded = ", which share cores: an idle round is mostly switching between them" if world.crowded() else ""
    worst: list[tuple[float, int]] = []  # ratio and n
    if world.rank == 0:
        print(
            f"{world.size} ranks{crowded}; microseconds, median of {args.repeat} repetitions (range of the ratios)\n"
            "       n   bare   plain   plain : bare         reproducible   reproducible : bare"
        )
    for n in [n for n in LENGTHS if n <= args.most]:
        found = measured(world, setup, n, args.repeat)
        if world.rank == 0:
            a, b, c = np.median(found, axis=0) * 1e6
            plain, same = (spread(found[:, k] / found[:, 0]) for k in (1, 2))
            print(f"{n:>8} {a:6.1f} {b:7.1f}   {told(plain)}   {c:12.1f}   {told(same)}", flush=True)
            worst.append((max(plain.median, same.median), n))
    if world.rank == 0:
        ratio, n = max(worst)
        print(f"the worst ratio on {world.size} ranks: {ratio:.2f} at n = {n:,}")


if __name__ == "__main__":
    main()
