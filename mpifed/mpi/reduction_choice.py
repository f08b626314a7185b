"""The choice of the way by which replies reach rank 0, a star or a tree of ranks or slices, by the LogGP model.

A. Alexandrov, M. F. Ionescu, K. E. Schauser, C. Scheiman, "LogGP: Incorporating long messages into the LogP model",
SPAA 1995. A message of k bytes takes L + 2o + kG, of which the processors spend o each; adding k bytes takes kγ.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

from mpifed.federation.request import ANY_ORDER
from mpifed.federation.sums import Subtree, merge, tree_depth
from mpifed.mpi.rank_trees import ALL, REPORT, SHAPES, Route, merge_single_vectors

AUTO = "auto"
SLICES = "slices"


class Link(NamedTuple):
    """The parameters of the model for one kind of connection, in seconds or seconds per byte."""

    L: float  # latency of a message
    o: float  # overhead of sending or receiving a message, including the gap to the next
    G: float  # a byte of a message
    gamma: float  # γ: a byte of a vector added to another


# Assumed, not measured, so that all ranks and all runs make the same choice. The overhead includes Python's.
NETWORK = Link(L=1.2e-6, o=1e-6, G=1 / 12e9, gamma=5e-11)  # between nodes: 100 Gbit/s
SHARED = Link(L=2e-7, o=1e-6, G=1 / 8e9, gamma=5e-11)  # between the ranks of a node, by shared memory

LinkBetween = Callable[[int, int], Link]  # child, parent


class ReductionChoice:
    """A choice of ways for ranks on ``nodes``: rank r sums the subtrees ``trees[r]``; one may be ``forced``."""

    def __init__(self, nodes: Sequence[int], trees: Sequence[Sequence[Subtree]], forced: str = AUTO) -> None:
        self.nodes = nodes
        self.forced = forced
        # if the order of additions is free, a rank sends one vector, the sum of all its clients
        joined: list[list[Subtree]] = [[ALL] if own else [] for own in trees]
        # "rows" are gathered, and only reports take a way
        no_sums: list[list[Subtree]] = [[] for _ in trees]
        self.subtrees: dict[str, Sequence[Sequence[Subtree]]] = {"sum": trees, "rows": no_sums}
        self.subtrees |= dict.fromkeys((*ANY_ORDER, "max"), joined)
        # cached, because routes depend on the ranks alone and each new plan asks for several
        self.route = cache(self._route)
        self.longest: dict[str, int] = {}  # way -> maximum length of vectors that took it

    def vectors(self, reduce: str) -> list[int]:
        """Return the number of vectors of each rank for a reduction."""
        return [len(own) for own in self.subtrees[reduce]]

    def way(self, reduce: str, size: int) -> str:
        """Return the way for vectors of ``size`` bytes: forced, or fastest by the model; alike in all runs."""
        # times are of an assumed network and not measured, because all ranks and runs must find the same way: sums in
        # free order may have other bits in slices than in trees
        if self.forced != AUTO and (self.forced != SLICES or reduce != "rows"):
            return self.forced
        seconds = self.seconds(reduce, size, self.link)
        return min(seconds, key=seconds.__getitem__)

    def seconds(self, reduce: str, size: float, link: LinkBetween) -> dict[str, float]:
        """Return way -> predicted seconds of a reduction."""
        # with one rank on each machine, or all on one, the tree of machines is the tree of ranks
        is_mixed = 1 < len(set(self.nodes)) < len(self.nodes)
        shapes = [name for name in SHAPES if is_mixed or name != "nodes"]
        result = {name: predict_climb(self.route(name, reduce), size, link) for name in shapes}
        if reduce != "rows":
            # in slices each rank sends to each other one, so the slowest link counts, which is to another machine
            slowest = link(0, self.nodes.index(max(self.nodes)))
            predict = predict_plain_slices if reduce in ANY_ORDER else predict_slices
            reports = min(self.seconds("rows", 0, link).values())
            result[SLICES] = predict(slowest, size, self.vectors(reduce)) + reports
        return result

    def link(self, one: int, other: int) -> Link:
        """Return the parameters of the connection between two ranks."""
        return SHARED if self.nodes[one] == self.nodes[other] else NETWORK

    def describe_ways(self) -> str:
        """Return a description of the ways that vectors took, each with the maximum length."""
        ways = sorted(self.longest.items(), key=lambda item: item[1])
        return ", ".join(f"{way} up to {longest}" for way, longest in ways)

    def _route(self, name: str, reduce: str) -> Route:
        """Make the tree of ranks of this shape for a reduction."""
        return Route(
            SHAPES[name](self.nodes), self.subtrees[reduce], merge if reduce == "sum" else merge_single_vectors
        )


def predict_climb(route: Route, size: float, links: LinkBetween) -> float:
    """Return the seconds until rank 0 has the sum of vectors of ``size`` bytes that climb a route.

    A child's message can be received L + o after it is ready; receiving takes o + kG, and additions follow.
    """
    ready = [0.0] * len(route.parents)
    for rank in route.upwards():
        time = 0.0
        task = route.task(rank)
        for (child, vectors), additions in zip(task.children, task.additions, strict=True):
            link = links(child, rank)
            message = REPORT + vectors * size
            time = max(time, ready[child] + link.o + link.L) + link.o + message * link.G
            time += len(additions) * size * link.gamma
        ready[rank] = time
    return ready[0]


def predict_slices(link: Link, size: float, rows: Sequence[int]) -> float:
    """Return the seconds until rank 0 has the sum, made in slices, of ``rows[r]`` vectors of ``size`` bytes of rank r.

    Each of P ranks receives its slice of all R vectors: L + P o, and G for each byte of the busiest rank. It adds them,
    (R-1) kγ/P, and sends the sum to rank 0, which gathers.
    """
    ranks = len(rows)
    count = sum(rows)
    busiest = max(count, max(rows) * (ranks - 1)) * size / ranks
    exchange = link.L + ranks * link.o + busiest * link.G + (count - 1) * size / ranks * link.gamma
    return exchange + predict_gather(link, [size / ranks] * (ranks - 1))


def predict_plain_slices(link: Link, size: float, rows: Sequence[int]) -> float:
    """Return the seconds of a sum in slices whose order is free: by reduce-scatter and gather."""
    ranks = len(rows)
    return predict_reduce_scatter(link, size, ranks) + predict_gather(link, [size / ranks] * (ranks - 1))


def predict_gather(link: Link, sizes: Sequence[float]) -> float:
    """Return the seconds until rank 0 has the messages of all others, of ``sizes`` bytes: L + (P-1) o + o + G Σ k_r.

    Messages travel together and arrive one after the other. Source: LogGP.
    """
    return link.L + (len(sizes) + 1) * link.o + sum(sizes) * link.G if len(sizes) else 0.0


def predict_reduce_scatter(link: Link, size: float, ranks: int) -> float:
    """Return the seconds until each of P ranks has its part of the sum of ``size`` bytes of all, by recursive halving.

    ⌈lg P⌉ (L + 2o) + (P-1)/P k (G + γ).
    Source: R. Thakur, R. Rabenseifner, W. Gropp, "Optimization of collective communication operations in MPICH", IJHPCA
    19 (2005).
    """
    return tree_depth(ranks) * (link.L + 2 * link.o) + (ranks - 1) / ranks * size * (link.G + link.gamma)
