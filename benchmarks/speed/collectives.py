"""python -m benchmarks.speed.collectives: what a round costs on several ranks and with many clients beside its work.

``--part`` takes one of

empty    under mpirun -n 3 or so: time of a round whose clients send back what they receive, n numbers : bare Bcast and
         Allreduce. Each host has one client; what remains is packing, the broadcast, the sum and bookkeeping. With
         plain sums (reproducible = false) and with sums that have the same bits on any number of ranks
tree     a short study on --ranks ranks, which it starts, with each kind of reduction: whether the model has the bits of
         one process, and the messages and bytes that rank 0 receives in a round, from /ranks. FedAvg, linear
         regression, 256 clients × 100 features; one request a round. The number is the difference of two runs over the
         difference of their rounds. With more ranks than cores, ranks share them, and counts hold all the same
picking  1000 clients selected out of more and more, in one process. ``uniform``, ``cover`` and ``biased`` (5000
         candidates) are the milliseconds in which the server draws them; cover deals a permutation of all clients once
         in m/1000 rounds, which the column ``deal`` has apart. ``pick`` is the request to the selected clients, their
         samples (4 × 4 float64) and state gathered in blocks, and their reply, without work of their own. ``sum`` is
         the goal, uniform and pick at most 1 ms together for a million clients. ``load`` are the seconds until the
         clients are there
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mpifed
from benchmarks.speed.measuring import LAUNCHER, Table, launched, parser, play, printed, spread, starter
from mpifed.data.sources.gaussian import Gaussian
from mpifed.experiment.config import Experiment, experiment
from mpifed.federation import sums
from mpifed.federation.host import Host
from mpifed.federation.participation.selection import Biased, Cover, UniformSelection
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.transport import InProcess
from mpifed.problems.logistic import Logistic

LENGTHS = (100, 1000, 10_000, 100_000, 1_000_000)
KINDS = ("star", "tree", "nodes", "slices")
STUDY = ["data=linreg-noniid", "data.clients=256", "data.features=100", "algorithm=fedavg", "selection=all"]
SWEEP = [sys.executable, "-m", "mpifed", "sweep", "-q"]
ROUNDS = (1, 3)
SELECTED = 1000
CANDIDATES = 5  # of a biased selection, for each client selected
SIDE = 4  # samples of a client, and features
GOAL = 1.0  # ms


class Client(NamedTuple):
    """The state: a model."""

    w: np.ndarray  # (c, n)


class Idle(mpifed.extend.Algorithm):
    """Clients without work of their own: they send back what they receive, or the numbers of their samples."""

    def init_client(self, f: Any) -> Client:
        return Client(f.zeros())

    def echo(self, f: Any, client: Client, x: np.ndarray) -> tuple[Client, np.ndarray]:
        return client, x[None]

    def idle(self, f: Any, client: Client) -> tuple[Client, np.ndarray]:
        return client, f.d.astype(float)

    def init_server(self, fed: Federation) -> Any:
        raise AssertionError("nothing is run")

    def round(self, fed: Federation, server: Any) -> Any:
        raise AssertionError("nothing is run")


def bare(comm: Any, n: int, count: int) -> float:
    """Seconds of one Bcast and one Allreduce of n doubles."""
    x, y = np.zeros(n), np.zeros(n)
    begun = time.perf_counter()
    for _ in range(count):
        comm.Bcast(x, 0)
        comm.Allreduce(x, y)
    return (time.perf_counter() - begun) / count


def rounds(world: Any, setup: Experiment, n: int, count: int, reproducible: bool) -> float:
    """Seconds of a round of idle clients, measured on rank 0."""
    from mpifed.mpi.channel import Server, Service

    data = setup.data.load(0, "float64")
    cuts, agreed = sums.rank_offsets(data.sizes, world.size - 1), RunSpec(setup.problem, Idle(), 0, data.m, np.zeros(n))
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
        fed.mean(Idle().echo, x)
    begun = time.perf_counter()
    for _ in range(count):
        fed.mean(Idle().echo, x)
    spent = (time.perf_counter() - begun) / count
    server.stop()
    return spent


def empty(args: argparse.Namespace) -> None:
    """The table of empty rounds; all ranks come here and ask whether they share cores, and rank 0 prints."""
    from mpifed.mpi.communicator import Communicator

    world = Communicator()
    data = {"name": "gaussian", "clients": world.size - 1, "samples": 1, "features": 1}
    setup = experiment({"data": data, "problem": "logistic"})
    crowded = ", which share cores: an idle round is mostly switching between them" if world.shares_cores() else ""
    if world.rank == 0:
        print(f"{world.size} ranks{crowded}; microseconds, and ratios to the bare pair")
        columns = {"n": 9, "bare": 7, "plain": 7, "plain : bare": 22, "reproducible": 7, "reproducible : bare": 22}
        table = Table(columns, args.to and args.to / f"empty-{world.size}.csv")
    for n in [n for n in LENGTHS if n <= args.most]:
        count = min(args.rounds or 500, max(5, 2_000_000 // n))
        jobs = [partial(bare, world.comm, n, count)]
        jobs += [partial(rounds, world, setup, n, count, kind) for kind in (False, True)]
        found = np.array([[job() for job in jobs] for _ in range(args.repeat)])
        if world.rank == 0:
            least, plain, same = (float(value) for value in 1e6 * np.median(found, axis=0))
            ratios = [spread(found[:, k] / found[:, 0]) for k in (1, 2)]
            table.row(n, least, plain, ratios[0], same, ratios[1])


def tree(args: argparse.Namespace) -> None:
    """The table of messages. All runs of a number of ranks are one sweep, for a thousand ranks start slowly."""
    table = Table({"ranks": 5, "kind": 8, "bits": 5, "messages": 8, "bytes": 9}, args.to and args.to / "tree.csv")
    grid = [f"--grid=reduction={','.join(KINDS)}", f"--grid=rounds={','.join(map(str, ROUNDS))}"]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shared = [*STUDY, "stop.gradient=0", f"evaluate.every={ROUNDS[1]}"]
        alone = launched("", 1, [*shared, f"rounds={ROUNDS[1]}"], folder / "alone.h5").result
        for ranks in args.ranks:
            own = folder / str(ranks)
            printed([*starter(args.launcher, ranks), *SWEEP, *shared, *grid, "-o", str(own)], args.timeout)
            runs = [mpifed.load(path) for path in own.glob("*.h5")]
            for kind in KINDS:
                few, many = sorted((run for run in runs if run.config["reduction"] == kind), key=lambda run: run.cr)
                counts = [float(received(many, what) - received(few, what)) for what in ("messages", "bytes")]
                bits = "same" if same_bits(many, alone) else "OTHER"
                table.row(ranks, kind, bits, *(count / (ROUNDS[1] - ROUNDS[0]) for count in counts))


def same_bits(one: Any, other: Any) -> bool:
    """Whether two runs ended at the same model."""
    return bool(np.array_equal(one.x, other.x))


def received(run: Any, what: str) -> float:
    """Messages or bytes that rank 0 has received."""
    return float(run.ranks[f"mpi_{what}_received"][0])


class Picked(NamedTuple):
    """Milliseconds, median over rounds; load in seconds."""

    uniform: float
    cover: float
    deal: float
    biased: float
    pick: float
    sum: float
    load: float


def median(job: Callable[[int], object], rounds: int) -> float:
    """Median milliseconds of a job in rounds 2, 3 …; round 1 is a warm-up."""
    spent = []
    for round in range(1, rounds + 2):
        begun = time.perf_counter()
        job(round)
        spent.append(time.perf_counter() - begun)
    return float(np.median(spent[1:])) * 1e3


def measure(m: int, count: int, rounds: int) -> Picked:
    """Measure ``rounds`` rounds that select ``count`` of m clients."""
    begun = time.perf_counter()
    data = Gaussian(clients=m, samples=SIDE, features=SIDE).load(1, "float64")
    setup = RunSpec(Logistic(), Idle(), 1, m, np.zeros(SIDE))
    host = Host(setup, data, 0, m)
    host.join()
    load = time.perf_counter() - begun
    uniform = UniformSelection(count=count).selector(1, m, rounds)
    cover = Cover(count=count).selector(1, m, rounds)
    biased = Biased(count=count, candidates=min(m, CANDIDATES * count)).selector(1, m, rounds)
    fed = Federation(InProcess(host), setup, uniform, data.sizes)

    def pick(round: int) -> None:
        fed.begin(round)
        fed.sum(Idle().idle, to=drawn[round])

    drawn = [uniform.select(round, 0) for round in range(rounds + 2)]
    turns = -(-m // count)  # rounds of a group of cover
    drawing, picking = median(lambda round: uniform.select(round, 0), rounds), median(pick, rounds)
    return Picked(
        drawing,
        median(lambda round: cover.select(1 + (round - 1) % turns, 0), rounds),
        median(lambda round: cover.select(1 + round * turns, 0), 3),
        median(lambda round: biased.select(round, 0), rounds),
        picking,
        drawing + picking,
        load,
    )


def picking(args: argparse.Namespace) -> None:
    """The table of picking."""
    names = [f"{name} s" if name == "load" else name for name in Picked._fields]
    table = Table({"clients": 9, **dict.fromkeys(names, 7)}, args.to and args.to / "picking.csv")
    for m in args.clients:
        found = measure(m, max(1, min(SELECTED, m // 2)), args.rounds or 50)
        table.row(m, *found)
    print(f"uniform and pick within {GOAL:.0f} ms: {'yes' if found.sum <= GOAL else 'no'}")


def main() -> None:
    options: dict[str, Any] = {"repeat": 7, "most": 1e6, "ranks": "2,8,32,128", "clients": "1e4,1e5,1e6"}
    args = parser(__doc__, part="empty", **options, rounds=None, launcher=LAUNCHER, timeout=600.0, to=None).parse_args()
    play({"empty": empty, "tree": tree, "picking": picking}, args)


if __name__ == "__main__":
    main()
