"""The time of messages by the LogGP model, and of the ways in which replies can reach rank 0.

A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman, "LogGP: Incorporating long messages into the LogP model",
SPAA 1995. A message of k bytes takes L + 2o + kG, of which the processors spend o each; adding k bytes takes kγ.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mpifed.federation.sums import depth
from mpifed.mpi.rank_trees import Route
from mpifed.mpi.tree_messages import REPORT


class Link(NamedTuple):
    """The parameters of the model for messages of one kind, in seconds or seconds per byte."""

    L: float  # latency of a message
    o: float  # overhead of sending or receiving a message, including the gap to the next
    G: float  # a byte of a message
    gamma: float  # γ: a byte of a vector added to another


# Assumed, never measured: the choice must be the same on all ranks and in all runs. The overhead includes what Python
# does for a message.
NETWORK = Link(L=1.2e-6, o=1e-6, G=1 / 12e9, gamma=5e-11)  # between nodes: 100 Gbit/s
SHARED = Link(L=2e-7, o=1e-6, G=1 / 8e9, gamma=5e-11)  # between the ranks of a node: memory that they share

Links = Callable[[int, int], Link]  # child, parent


def climb(route: Route, size: float, links: Links) -> float:
    """Seconds until rank 0 has the sum of vectors of ``size`` bytes that climb a route.

    A child's message can be received L + o after it is ready; receiving takes o + kG, and then come the additions.
    """
    ready = [0.0] * len(route.parents)
    for rank in route.upwards():
        time = 0.0
        stop = route.stop(rank)
        for (child, vectors), additions in zip(stop.children, stop.additions, strict=True):
            link = links(child, rank)
            message = REPORT + vectors * size
            time = max(time, ready[child] + link.o + link.L) + link.o + message * link.G
            time += len(additions) * size * link.gamma
        ready[rank] = time
    return ready[0]


def slices(link: Link, size: float, rows: Sequence[int]) -> float:
    """Seconds until rank 0 has the sum of the ``rows[r]`` vectors of ``size`` bytes of each rank r, in slices.

    Each of P ranks receives its slice of all R vectors: L + P o and G for the bytes of the busiest rank. It adds them
    up, (R-1) kγ/P, and sends the sum to rank 0, which gathers them.
    """
    ranks = len(rows)
    count = sum(rows)
    busiest = max(count, max(rows) * (ranks - 1)) * size / ranks
    exchange = link.L + ranks * link.o + busiest * link.G + (count - 1) * size / ranks * link.gamma
    return exchange + gather(link, [size / ranks] * (ranks - 1))


def plain_slices(link: Link, size: float, rows: Sequence[int]) -> float:
    """The same where the sum may take any order: by reduce-scatter and gather."""
    ranks = len(rows)
    return reduce_scatter(link, size, ranks) + gather(link, [size / ranks] * (ranks - 1))


def gather(link: Link, sizes: Sequence[float]) -> float:
    """Seconds until rank 0 has the messages of all others, of ``sizes`` bytes: L + (P-1) o + o + G Σ k_r.

    The messages travel at the same time and arrive one after the other. ValueError: negative bytes. Source: LogGP.
    """
    check(min(sizes, default=0), 1)
    return link.L + (len(sizes) + 1) * link.o + sum(sizes) * link.G if len(sizes) else 0.0


def reduce_scatter(link: Link, size: float, ranks: int) -> float:
    """Seconds until every rank has its P-th part of the sum of ``size`` bytes of every rank, by recursive halving.

    ⌈lg P⌉ (L + 2o) + (P-1)/P k (G + γ). ValueError: size < 0 or ranks < 1.
    Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", IJHPCA
    19 (2005).
    """
    check(size, ranks)
    return depth(ranks) * (link.L + 2 * link.o) + (ranks - 1) / ranks * size * (link.G + link.gamma)


def check(amount: float, ranks: int, what: str = "size") -> None:
    """ValueError for a negative amount or fewer than one rank."""
    if amount < 0 or ranks < 1:
        raise ValueError(f"{what} = {amount} must be at least 0 and ranks = {ranks} at least 1")
