"""What a round costs on P ranks, predicted from a few numbers measured on the machine.

Messages are those of LogGP: A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman, "LogGP: Incorporating long messages
into the LogP model", SPAA 1995. Collectives are binomial trees, recursive halving and doubling, and plain gathers, as in
R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", IJHPCA 19 (2005), whose
α is L + 2o, β is G and γ is the same. Who sends how many bytes is what mpi.py and answer.py do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

from mpifed.core.typing import Array
from mpifed.federation import sums
from mpifed.federation.request import NUMBERS
from mpifed.mpi.plan import BIG

HEAD = 64  # bytes of a request beside its arrays, which start at multiples of 64
REPORT = 8 * NUMBERS  # bytes of what a host reports beside its rows

Points = tuple[Sequence[float], Sequence[float]]  # what was varied, and the seconds it took


class Machine(NamedTuple):
    """The measured numbers; all in seconds, or seconds per unit."""

    L: float  # latency of a message
    o: float  # overhead of sending or receiving one, the gap between two included
    G: float  # per byte of a message
    gamma: float  # γ, per byte of a vector added to another
    o_round: float = 0.0  # a request, server and host, whose clients have nothing to do
    compute: float = 0.0  # per unit of local work
    turn: float = 0.0  # a collective waits so long for each further rank that spins on the same core


class Round(NamedTuple):
    """Seconds of a round and its parts: ``compute`` of the slowest host, ``server`` with all that no message costs."""

    compute: float
    broadcast: float
    reduction: float
    server: float

    @property
    def total(self) -> float:
        return sum(self)


def broadcast(machine: Machine, size: float, ranks: int) -> float:
    """Seconds until ``size`` bytes of rank 0 are everywhere: binomial tree, or scatter and allgather, whichever is cheaper.

    min(⌈lg P⌉ (L + 2o + kG), 2 ⌈lg P⌉ (L + 2o) + 2 (P-1)/P kG). ValueError: size < 0 or no rank. Source: Thakur et al.
    """
    check(size, ranks)
    alpha, stages = machine.L + 2 * machine.o, depth(ranks)
    return min(stages * (alpha + size * machine.G), 2 * stages * alpha + 2 * (ranks - 1) / ranks * size * machine.G)


def gather(machine: Machine, sizes: Sequence[float]) -> float:
    """Seconds until rank 0 has the messages of all others, ``sizes`` bytes each: L + (P-1) o + o + G Σ k_r.

    They travel at the same time and arrive one after the other. ValueError: negative bytes. Source: LogGP.
    """
    check(min(sizes, default=0), 1)
    return machine.L + (len(sizes) + 1) * machine.o + sum(sizes) * machine.G if len(sizes) else 0.0


def reduce(machine: Machine, size: float, ranks: int) -> float:
    """Seconds until rank 0 has the sum of everyone's ``size`` bytes: binomial tree, or reduce-scatter and gather.

    min(⌈lg P⌉ (L + 2o + k (G + γ)), 2 ⌈lg P⌉ (L + 2o) + (P-1)/P k (2G + γ)). ValueError: negative bytes or no rank.
    Source: Thakur et al., reduce.
    """
    check(size, ranks)
    alpha, stages = machine.L + 2 * machine.o, depth(ranks)
    halving = reduce_scatter(machine, size, ranks) + stages * alpha + (ranks - 1) / ranks * size * machine.G
    return min(stages * (alpha + size * (machine.G + machine.gamma)), halving)


def reduce_scatter(machine: Machine, size: float, ranks: int) -> float:
    """Seconds until every rank has its P-th part of the sum of everyone's ``size`` bytes, by recursive halving.

    ⌈lg P⌉ (L + 2o) + (P-1)/P k (G + γ). ValueError: negative bytes or no rank. Source: Thakur et al., reduce-scatter.
    """
    check(size, ranks)
    return depth(ranks) * (machine.L + 2 * machine.o) + (ranks - 1) / ranks * size * (machine.G + machine.gamma)


def vectors(cuts: Sequence[int]) -> list[int]:
    """How many vectors each host sends for a reproducible sum: the subtrees within its run of clients."""
    return [len(sums.nodes(lo, hi, cuts[-1])) for lo, hi in pairwise(cuts)]


def reduction(
    machine: Machine, size: float, rows: Sequence[int], reproducible: bool = True
) -> tuple[float, float, int]:
    """A sum of ``size`` bytes, host r sending ``rows[r]`` vectors: seconds in MPI, of the server's additions; collectives.

    Up to BIG bytes a host: a gather, and Σ k_r - 1 additions at the server; or, of plain sums, a reduction. Longer: each
    rank adds its P-th part up, after an exchange (L + P o + bytes of the busiest · G) or by reduce-scatter; two gathers.
    """
    rows = rows if reproducible else [1] * len(rows)
    ranks, count, reports = len(rows) + 1, sum(rows), gather(machine, [REPORT] * len(rows))
    if max(rows) * size <= BIG:
        if not reproducible:
            return reduce(machine, size + REPORT * ranks, ranks), 0.0, 1
        return gather(machine, [REPORT + k * size for k in rows]), (count - 1) * size * machine.gamma, 1
    if count == 1:
        return reports + gather(machine, [size]), 0.0, 2
    slices = reduce_scatter(machine, size, ranks)
    if reproducible:
        busiest = max(count, max(rows) * (ranks - 1)) * size / ranks
        slices = machine.L + ranks * machine.o + busiest * machine.G + (count - 1) * size / ranks * machine.gamma
    return slices + reports + gather(machine, [size / ranks] * len(rows)), 0.0, 3


def round_seconds(
    machine: Machine,
    ranks: int,
    n: int,
    m: int,
    work: float,
    reproducible: bool = True,
    cores: int | None = None,
    itemsize: int = 8,
) -> Round:
    """One round on ``ranks`` ranks: n numbers to m like clients, ``work`` units of each, the mean of their replies back.

    The slowest host computes max c_r · work · compute, c_r its clients. With more ranks than ``cores`` (None: one each)
    s = ⌈P / cores⌉ share one: waiting ranks spin, so computing takes s times as long, and every collective (s - 1) turn
    longer. ValueError: no rank, core, number or client, more hosts than clients, work < 0.
    """
    check(work, ranks, "work")
    if min(n, m, itemsize, 1 if cores is None else cores) < 1:
        raise ValueError(f"n = {n}, m = {m}, cores = {cores} and itemsize = {itemsize} must be at least 1")
    if ranks > m + 1:
        raise ValueError(f"{ranks} ranks are too many for {m} clients: at most {m + 1}")
    share = 1 if cores is None else -(-ranks // cores)
    cuts = sums.cuts(np.ones(m), max(ranks - 1, 1))
    local, fixed = share * machine.compute * work * max(b - a for a, b in pairwise(cuts)), share * machine.o_round
    if ranks == 1:
        return Round(local, 0.0, 0.0, fixed)
    size, wait = n * itemsize, (share - 1) * machine.turn
    pieces = [HEAD + size] if size <= BIG else [HEAD, size]
    down = sum(broadcast(machine, piece, ranks) + wait for piece in pieces)
    up, added, collectives = reduction(machine, size, vectors(cuts), reproducible)
    return Round(local, down, up + collectives * wait, fixed + share * added)


def fit(pingpong: Points, stream: Points, additions: Points, rounds: Points | None = None) -> Machine:
    """The machine of four measurements, each what was varied and the seconds it took.

    ``pingpong`` bytes, one way: L + 2o + kG. ``stream`` messages that one rank sends: c + k o. ``additions`` bytes:
    c + k γ. ``rounds`` units of work of the one host of two ranks with short messages: o_round + k compute.
    ValueError: fewer than two points, or times that are not positive. Source of o and L: LogGP.
    """
    alpha, G = line(*pingpong)
    o = min(line(*stream)[1], alpha / 2)
    return Machine(alpha - 2 * o, o, G, line(*additions)[1], *(line(*rounds) if rounds is not None else ()))


def fit_turn(machine: Machine, cases: Sequence[Mapping[str, Any]], seconds: Sequence[float]) -> Machine:
    """The machine with the turn >= 0 that fits the seconds of rounds best, relatively; cases: arguments of round_seconds."""
    none, one = (
        np.array([round_seconds(machine._replace(turn=turn), **case).total for case in cases]) for turn in (0, 1)
    )
    slope, rest = (one - none) / np.array(seconds), 1 - none / np.array(seconds)
    return machine._replace(turn=max(0.0, float(slope @ rest / (slope @ slope))) if slope.any() else 0.0)


def line(x: Sequence[float] | Array, y: Sequence[float] | Array) -> tuple[float, float]:
    """a, b >= 0 of a + b x that minimise Σ ((a + b x_i - y_i) / y_i)², so that short times count as much as long ones."""
    points, times = np.asarray(x, float), np.asarray(y, float)
    if len(points) != len(times) or len(np.unique(points)) < 2 or not (times > 0).all():
        raise ValueError(
            f"a line needs two different points and positive times: {len(points)} points, {len(times)} times"
        )
    scale = float(np.abs(points).max())
    a, b = nnls(np.column_stack([np.ones(len(points)), points / scale]) / times[:, None], np.ones(len(times)))[0]
    return float(a), float(b) / scale


def depth(ranks: int) -> int:
    """⌈lg P⌉, the stages of a binomial tree."""
    return (ranks - 1).bit_length()


def check(amount: float, ranks: int, what: str = "size") -> None:
    if amount < 0 or ranks < 1:
        raise ValueError(f"{what} = {amount} must be at least 0 and ranks = {ranks} at least 1")
