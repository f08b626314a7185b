"""A cost model: the time of a round on P ranks, predicted from a few numbers measured on the machine.

Messages follow LogGP: A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman, "LogGP: Incorporating long messages
into the LogP model", SPAA 1995. Broadcasts are as in R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective
communication operations in MPICH", IJHPCA 19 (2005); its α is L + 2o, its β is G. Replies take the way that mpifed
chooses, at the time that ``mpifed.mpi.reduction_choice`` gives for it. The numbers of bytes are those that the room
``mpifed.mpi`` sends. Under mpirun -n 2 this program measures bare messages of two ranks, and additions, for ``fit``.
"""

import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from benchmarks.speed.measuring import printed, starter
from mpifed.core.typing import Array
from mpifed.federation import sums
from mpifed.federation.sums import tree_depth
from mpifed.mpi.plan import BIG
from mpifed.mpi.reduction_choice import SLICES, Link, ReductionChoice, check_amount, predict_reduce_scatter

LONG = 1e-3  # seconds of computing from which on waiting ranks sleep, as in mpifed.mpi.channel
HEAD = 64  # bytes of a request without its arrays, which start at multiples of 64
BYTES = [0, 64, 1024, 4096, 1 << 14, 1 << 16, 1 << 18, 1 << 20, 1 << 22]  # of bare messages
STREAM = [10, 30, 100, 300, 1000]  # messages
CALLS = 200  # of each measurement

Points = tuple[Sequence[float], Sequence[float]]  # a measurement: what was varied, and the seconds it took


class Machine(NamedTuple):
    """The measured parameters of a machine, in seconds or seconds per unit."""

    L: float  # latency of a message
    o: float  # overhead of sending or receiving a message, including the gap to the next
    G: float  # per byte of a message
    gamma: float  # γ, per byte of a vector added to another
    o_round: float = 0.0  # a request without client work, on server and host
    compute: float = 0.0  # per unit of local work
    turn: float = 0.0  # extra time of a collective for each further rank that spins on the same core


class Round(NamedTuple):
    """Seconds of the parts of a round: ``compute`` on the slowest host; ``server``: everything but messages."""

    compute: float
    broadcast: float
    reduction: float
    server: float

    @property
    def total(self) -> float:
        """Seconds of the whole round."""
        return sum(self)


def broadcast(machine: Machine, size: float, ranks: int) -> float:
    """Seconds until every rank has ``size`` bytes of rank 0: binomial tree, or scatter and allgather if cheaper.

    min(⌈lg P⌉ (L + 2o + kG), 2 ⌈lg P⌉ (L + 2o) + 2 (P-1)/P kG). ValueError: size < 0 or ranks < 1. Source: Thakur et
    al.
    """
    check_amount(size, ranks)
    alpha, stages = machine.L + 2 * machine.o, tree_depth(ranks)
    return min(stages * (alpha + size * machine.G), 2 * stages * alpha + 2 * (ranks - 1) / ranks * size * machine.G)


def reduce(link: Link | Machine, size: float, ranks: int) -> float:
    """Seconds until rank 0 has the sum of ``size`` bytes of every rank: binomial tree, or reduce-scatter and gather.

    min(⌈lg P⌉ (L + 2o + k (G + γ)), 2 ⌈lg P⌉ (L + 2o) + (P-1)/P k (2G + γ)). ValueError: size < 0 or ranks < 1.
    Source: Thakur et al.
    """
    check_amount(size, ranks)
    alpha = link.L + 2 * link.o
    stages = tree_depth(ranks)
    halving = (
        predict_reduce_scatter(Link(*link[:4]), size, ranks) + stages * alpha + (ranks - 1) / ranks * size * link.G
    )
    return min(stages * (alpha + size * (link.G + link.gamma)), halving)


@cache
def choice(cuts: tuple[int, ...], together: bool) -> ReductionChoice:
    """The ways of replies from hosts with these runs of clients, all on one machine or each on its own."""
    trees = [sums.find_subtrees(lo, hi, cuts[-1]) for lo, hi in pairwise(cuts)]
    return ReductionChoice([0] * len(cuts) if together else range(len(cuts)), [[], *trees])


def reduction(machine: Machine, ways: ReductionChoice, size: int, reduce: str = "sum") -> tuple[float, int]:
    """Cost of a sum of ``size`` bytes on the way that mpifed chooses: seconds in MPI, and the number of stages.

    A stage is one level of the tree of ranks or, of slices, the exchange, the gather and the levels of the reports.
    """
    way = ways.way(reduce, size)
    reports = ways.way("rows", 0)
    stages = ways.route(reports if way == SLICES else way, "rows").height[0] - 1
    return ways.seconds(reduce, size, lambda child, parent: Link(*machine[:4]))[way], stages + 2 * (way == SLICES)


class Study(NamedTuple):
    """A round to predict: the server sends n numbers to m equal clients and receives the mean of their replies.

    ``work``: units of local work of a client. ``cores``: in all (None: one for each rank). ``itemsize``: bytes of a
    number.
    """

    ranks: int
    n: int
    m: int
    work: float
    reproducible: bool = True
    cores: int | None = None
    itemsize: int = 8

    def check(self) -> None:
        """ValueError: no rank, core, number or client, more hosts than clients, or work < 0."""
        check_amount(self.work, self.ranks, "work")
        if min(self.n, self.m, self.itemsize, 1 if self.cores is None else self.cores) < 1:
            sizes = f"n = {self.n}, m = {self.m}, cores = {self.cores} and itemsize = {self.itemsize}"
            raise ValueError(f"{sizes} must be at least 1")
        if self.ranks > self.m + 1:
            raise ValueError(f"{self.ranks} ranks are too many for {self.m} clients: at most {self.m + 1}")


def round_seconds(machine: Machine, study: Study) -> Round:
    """Predict the time of a round. Raises ValueError for an impossible study.

    The slowest host computes max c_r · work · compute, with c_r its number of clients. With more ranks than cores,
    s = ⌈P / cores⌉ ranks share a core. Waiting ranks spin, so computing takes s times as long, and every collective
    takes (s - 1) turn longer. But where hosts compute for longer than LONG, waiting ranks sleep: then only hosts share
    the cores.
    """
    study.check()
    ranks, size = study.ranks, study.n * study.itemsize
    share = 1 if study.cores is None else -(-ranks // study.cores)
    cuts = sums.rank_offsets(np.ones(study.m), max(ranks - 1, 1))
    alone = machine.compute * study.work * max(b - a for a, b in pairwise(cuts))
    asleep = alone > LONG
    local = alone * (max(1.0, (ranks - 1) / (study.cores or ranks)) if asleep else share)
    fixed = share * machine.o_round
    if ranks == 1:
        return Round(local, 0.0, 0.0, fixed)
    wait = 0.0 if asleep else (share - 1) * machine.turn
    pieces = [HEAD + size] if size <= BIG else [HEAD, size]
    down = sum(broadcast(machine, piece, ranks) + wait for piece in pieces)
    ways = choice(tuple(cuts), study.cores is not None)
    up, stages = reduction(machine, ways, size, "sum" if study.reproducible else "plain sum")
    return Round(local, down, up + stages * wait, fixed)


def fit(pingpong: Points, stream: Points, additions: Points, rounds: Points | None = None) -> Machine:
    """Fit the parameters of a machine to four measurements.

    ``pingpong``: bytes, one way, L + 2o + kG. ``stream``: messages sent by one rank, c + k o. ``additions``: bytes,
    c + k γ. ``rounds``: units of work of the only host on two ranks, with short messages, o_round + k compute.
    ValueError: fewer than two points, or times that are not positive. Source of o and L: LogGP.
    """
    alpha, G = line(*pingpong)
    o = min(line(*stream)[1], alpha / 2)
    return Machine(alpha - 2 * o, o, G, line(*additions)[1], *(line(*rounds) if rounds is not None else ()))


def fit_turn(machine: Machine, studies: Sequence[Study], seconds: Sequence[float]) -> Machine:
    """The machine with the ``turn`` >= 0 that minimises the relative error of the predicted rounds."""
    none, one = (
        np.array([round_seconds(machine._replace(turn=turn), study).total for study in studies]) for turn in (0, 1)
    )
    slope, rest = (one - none) / np.array(seconds), 1 - none / np.array(seconds)
    return machine._replace(turn=max(0.0, float(slope @ rest / (slope @ slope))) if slope.any() else 0.0)


def line(x: Sequence[float] | Array, y: Sequence[float] | Array) -> tuple[float, float]:
    """Fit a + b x with a, b >= 0 by minimising Σ ((a + b x_i - y_i) / y_i)²: short times count as much as long ones."""
    points, times = np.asarray(x, float), np.asarray(y, float)
    if len(points) != len(times) or len(np.unique(points)) < 2 or not (times > 0).all():
        raise ValueError(
            f"a line needs two different points and positive times: {len(points)} points, {len(times)} times"
        )
    scale = float(np.abs(points).max())
    a, b = nnls(np.column_stack([np.ones(len(points)), points / scale]) / times[:, None], np.ones(len(times)))[0]
    return float(a), float(b) / scale


def bare(launcher: str) -> dict[str, Points]:
    """What this program measures on two ranks that the launcher starts: the arguments of ``fit``."""
    command = [*starter(launcher, 2), sys.executable, "-m", "benchmarks.speed.cost_model"]
    found: dict[str, Points] = json.loads(printed(command, 300))
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


def clocked(comm: Any, job: Callable[[int], None], size: int) -> float:
    """Median seconds of a job, without the first tenth of the calls."""
    times = []
    for _ in range(CALLS):
        comm.Barrier()
        begun = time.perf_counter()
        job(size)
        times.append(time.perf_counter() - begun)
    return float(np.median(times[CALLS // 10 :]))


if __name__ == "__main__":
    main()
