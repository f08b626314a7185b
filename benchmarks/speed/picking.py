"""python -m benchmarks.speed.picking: what a round costs by the number of clients that it does not select.

1000 clients are selected out of more and more, in one process. ``uniform``, ``cover`` and ``biased`` (5000 candidates)
are the milliseconds in which the server draws them; cover deals a permutation of all clients once in m/1000 rounds,
which the column ``deal`` has apart. ``pick`` is the request to the selected clients, their samples (4 × 4 float64) and
state gathered in blocks, and their reply, without work of their own. ``sum`` is the goal, uniform and pick at most 1 ms
together for a million clients. ``load`` are the seconds until the clients are there.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.speed.common import Idle
from mpifed.data.sources.gaussian import Gaussian
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import Biased, Cover, Uniform
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup
from mpifed.federation.transport import InProcess
from mpifed.problems.logistic import Logistic

CANDIDATES = 5  # of a biased selection, for each client selected
GOAL = 1.0  # ms


class Client(NamedTuple):
    """The state: a model."""

    w: np.ndarray  # (c, n)


class Resting(Idle):
    """Clients that have a state, and do nothing."""

    def join(self, f: Any) -> Client:
        return Client(f.zeros())

    def idle(self, f: Any, client: Client) -> tuple[Client, np.ndarray]:
        return client, f.d.astype(float)


class Picked(NamedTuple):
    """Milliseconds, median over rounds; load in seconds."""

    uniform: float
    cover: float
    deal: float
    biased: float
    pick: float
    load: float


def median(job: Callable[[int], object], rounds: int) -> float:
    """Median milliseconds of a job in rounds 2, 3 …; round 1 is a warm-up."""
    spent = []
    for round in range(1, rounds + 2):
        begun = time.perf_counter()
        job(round)
        spent.append(time.perf_counter() - begun)
    return float(np.median(spent[1:])) * 1e3


def measure(m: int, count: int, rounds: int, samples: int, features: int) -> Picked:
    """Measure ``rounds`` rounds that select ``count`` of m clients."""
    begun = time.perf_counter()
    data = Gaussian(clients=m, samples=samples, features=features).load(1, "float64")
    setup = Setup(Logistic(), Resting(), 1, m, np.zeros(features))
    host = Host(setup, data, 0, m)
    host.join()
    load = time.perf_counter() - begun
    uniform = Uniform(count=count).selector(1, m, rounds)
    cover = Cover(count=count).selector(1, m, rounds)
    biased = Biased(count=count, candidates=min(m, CANDIDATES * count)).selector(1, m, rounds)
    fed = Federation(InProcess(host), setup, uniform, data.sizes)

    def pick(round: int) -> None:
        fed.begin(round)
        fed.sum(Resting().idle, to=drawn[round])

    drawn = [uniform.select(round, 0) for round in range(rounds + 2)]
    turns = -(-m // count)  # rounds of a group of cover
    return Picked(
        median(lambda round: uniform.select(round, 0), rounds),
        median(lambda round: cover.select(1 + (round - 1) % turns, 0), rounds),
        median(lambda round: cover.select(1 + round * turns, 0), 3),
        median(lambda round: biased.select(round, 0), rounds),
        median(pick, rounds),
        load,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", default="1e4,1e5,1e6", help="numbers of clients (default: 1e4,1e5,1e6)")
    parser.add_argument("--selected", type=int, default=1000, help="clients selected a round (default: 1000)")
    parser.add_argument("--samples", type=int, default=4, help="samples of a client (default: 4)")
    parser.add_argument("--features", type=int, default=4, help="features (default: 4)")
    parser.add_argument("--rounds", type=int, default=50, help="rounds, of which medians are told (default: 50)")
    args = parser.parse_args()
    names = "".join(f"{name:>9}" for name in ("clients", "uniform", "cover", "deal", "biased", "pick", "sum"))
    print(f"{names}   load s")
    for m in [int(float(word)) for word in args.clients.split(",")]:
        found = measure(m, args.selected, args.rounds, args.samples, args.features)
        total = found.uniform + found.pick
        cells = "".join(f"{ms:>9.3f}" for ms in (*found[:-1], total))
        print(f"{m:>9}{cells}{found.load:>9.2f}", flush=True)
    print(f"uniform and pick within {GOAL:.0f} ms: {'yes' if total <= GOAL else 'no'}")


if __name__ == "__main__":
    main()
