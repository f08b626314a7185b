"""Which way replies take to rank 0: up a star or a tree of ranks, or in slices."""

from collections.abc import Sequence
from functools import cache

from mpifed.federation.request import ANY_ORDER
from mpifed.federation.sums import Node, merge
from mpifed.mpi import loggp
from mpifed.mpi.loggp import NETWORK, SHARED, Link
from mpifed.mpi.rank_trees import ALL, SHAPES, Route, pile

AUTO = "auto"
SLICES = "slices"


class Choice:
    """The ways from ranks on ``nodes``, of which rank r sums up the subtrees ``trees[r]``; one may be ``forced``."""

    def __init__(self, nodes: Sequence[int], trees: Sequence[Sequence[Node]], forced: str = AUTO) -> None:
        self.nodes = nodes
        self.forced = forced
        # where the order of additions is free, a rank adds up all its clients first and sends one vector
        one: list[list[Node]] = [[ALL] if own else [] for own in trees]
        # of "rows" the reports alone take a way: the rows themselves are gathered
        none: list[list[Node]] = [[] for _ in trees]
        self.own: dict[str, Sequence[Sequence[Node]]] = {"sum": trees, "rows": none}
        self.own |= dict.fromkeys((*ANY_ORDER, "max"), one)
        # routes depend on the ranks alone, and each new plan asks for several of them
        self.route = cache(self._route)
        self.longest: dict[str, int] = {}  # way -> the most numbers of a vector that took it

    def vectors(self, reduce: str) -> list[int]:
        """How many vectors each rank has for a reduction."""
        return [len(own) for own in self.own[reduce]]

    def way(self, reduce: str, size: int) -> str:
        """The way for vectors of ``size`` bytes: the forced one, or the fastest by the model, the same in every run."""
        # the times are of an assumed network and not measured: all ranks and all runs must come to the same answer, for
        # in slices and in trees sums may have other bits where their order is free
        if self.forced != AUTO and (self.forced != SLICES or reduce != "rows"):
            return self.forced
        seconds = self.seconds(reduce, size, self.link)
        return min(seconds, key=seconds.__getitem__)

    def seconds(self, reduce: str, size: float, link: loggp.Links) -> dict[str, float]:
        """Way -> predicted seconds of a reduction."""
        # with one rank a node, or one node for all, a tree of nodes is the tree of ranks
        several = 1 < len(set(self.nodes)) < len(self.nodes)
        shapes = [name for name in SHAPES if several or name != "nodes"]
        found = {name: loggp.climb(self.route(name, reduce), size, link) for name in shapes}
        if reduce != "rows":
            # in slices every rank speaks with every other one, so the slowest link counts: that to another node
            slowest = link(0, self.nodes.index(max(self.nodes)))
            exchanged = loggp.plain_slices if reduce in ANY_ORDER else loggp.slices
            reports = min(self.seconds("rows", 0, link).values())
            found[SLICES] = exchanged(slowest, size, self.vectors(reduce)) + reports
        return found

    def link(self, one: int, other: int) -> Link:
        return SHARED if self.nodes[one] == self.nodes[other] else NETWORK

    def used(self) -> str:
        """Which ways vectors took, and up to how many numbers each."""
        ways = sorted(self.longest.items(), key=lambda item: item[1])
        return ", ".join(f"{way} up to {longest}" for way, longest in ways)

    def _route(self, name: str, reduce: str) -> Route:
        return Route(SHAPES[name](self.nodes), self.own[reduce], merge if reduce == "sum" else pile)
