"""Graphs that follow from the number of nodes: ring, torus, exponential, complete and random graph, star."""

import math
from abc import abstractmethod
from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory
from mpifed.core.promises import Supports
from mpifed.core.typing import Array, PositiveInt, UnitFraction
from mpifed.graphs.graph import EDGE, Edges, Graph, unique_edges


class Circle(Graph):
    """Nodes on a circle, node i and the nodes i + h, modulo m, for the ``hops`` h."""

    @abstractmethod
    def hops(self, m: int) -> list[int]:
        """Return the distances h from a node to its neighbours along the circle."""

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        i = np.arange(m)
        others = [(i + hop) % m for hop in self.hops(m)]
        return Edges(unique_edges(np.tile(i, len(others)), np.concatenate([i[:0], *others]), m))

    def symmetry(self, m: int) -> tuple[int, ...]:
        return (m,)


class Ring(Circle, tag="ring"):
    """Node i and node i + 1, modulo m."""

    # Edges follow from the number of clients. SURVIVAL is refused by the feature for graphs.
    supports = Supports.EVERYTHING

    def hops(self, m: int) -> list[int]:
        return [1]


class Torus(Graph, tag="torus"):
    """A grid of ``rows`` × m/rows nodes, row by row, with neighbours above, below, left and right, cyclic."""

    # Edges follow from the number of clients. SURVIVAL is refused by the feature for graphs.
    supports = Supports.EVERYTHING

    rows: Annotated[
        PositiveInt | None, Meta(description="rows of the grid (default: so that it is as square as possible)")
    ] = None

    def shape(self, m: int) -> tuple[int, int]:
        """Return the numbers of rows and columns of m nodes; UserError where there is no such grid."""
        rows = self.rows or next(r for r in range(math.isqrt(m), 0, -1) if m % r == 0)
        if m % rows:
            raise UserError(f"graph.rows = {rows} is wrong: it must divide the number of clients, {m}")
        if m > 1 and rows in (1, m):
            setting = f"graph.rows = {rows}" if self.rows else 'graph = "torus"'
            raise UserError(f'{setting} is wrong for {m} clients: they make one row only, which is graph = "ring"')
        return rows, m // rows

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        rows, columns = self.shape(m)
        i = np.arange(m)
        r, c = np.divmod(i, columns)
        below = (r + 1) % rows * columns + c
        right = r * columns + (c + 1) % columns
        return Edges(unique_edges(np.tile(i, 2), np.concatenate([below, right]), m))

    def symmetry(self, m: int) -> tuple[int, ...]:
        return self.shape(m)


class Exponential(Circle, tag="exponential"):
    """Node i and the nodes i ± 2^k, k = 0, 1 … ⌈log₂ m⌉ − 1, modulo m: about 2 log₂ m neighbours, undirected."""

    # Edges follow from the number of clients. SURVIVAL is refused by the feature for graphs.
    supports = Supports.EVERYTHING

    def hops(self, m: int) -> list[int]:
        return [1 << k for k in range((m - 1).bit_length())]


class Complete(Graph, tag="complete"):
    """All pairs of nodes; Metropolis weights are 1/m, so that mixing is the mean of all."""

    # Edges follow from the number of clients. SURVIVAL is refused by the feature for graphs.
    supports = Supports.EVERYTHING

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        check_memory(EDGE * m * (m - 1) // 2, f"a complete graph of {m:,} nodes")
        return Edges(np.stack(np.triu_indices(m, 1), axis=1))

    def symmetry(self, m: int) -> tuple[int, ...]:
        return (m,)


class Star(Graph, tag="star"):
    """Node 0 and every other node."""

    # Edges follow from the number of clients. SURVIVAL is refused by the feature for graphs.
    supports = Supports.EVERYTHING

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        others = np.arange(1, m)
        return Edges(np.stack([np.zeros_like(others), others], axis=1))


class ErdosRenyi(Graph, tag="erdos-renyi"):
    """Every pair of nodes is an edge with probability p, independently of the others; drawn once, or in each round.

    Source: P. Erdős and A. Rényi; this form: E. N. Gilbert, doi:10.1214/aoms/1177706098 (1959).
    """

    # Edges follow from the seed and the round. SURVIVAL is refused by the feature for graphs.
    supports = Supports.EVERYTHING

    p: Annotated[UnitFraction | None, Meta(description="probability of an edge (default: 2 ln(m)/m, at most 1)")] = None
    redraw: Annotated[bool, Meta(description="draw another graph in every round")] = False

    @property
    def is_redrawn(self) -> bool:
        return self.redraw

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        p = self.p or min(1.0, 2 * math.log(max(m, 2)) / m)
        count = m * (m - 1) // 2
        check_memory(int(EDGE * p * count), f"a random graph with about {p * count:,.0f} edges")
        return Edges(decode_pairs(draw_successes(count, p, rng)))


def draw_successes(count: int, p: float, rng: np.random.Generator) -> Array:
    """Draw the trials that succeed, each of ``count`` with probability p: their numbers from 0, rising."""
    # The gaps between successes have a geometric distribution: p · count draws, where one draw for each of the
    # m(m − 1)/2 pairs would be 5·10¹¹ draws for a million nodes.
    chunks = []
    last = -1
    while last < count:
        size = int(1.1 * p * (count - last)) + 16
        # Gaps are cut where they pass the last trial, so that their sums do not overflow.
        trials = last + np.cumsum(np.minimum(rng.geometric(p, size), count + 1))
        chunks.append(trials)
        last = int(trials[-1])
    trials = np.concatenate(chunks)
    return trials[trials < count]


def decode_pairs(k: Array) -> Array:
    """Return the pairs with the numbers k among (0, 1), (0, 2), (1, 2), (0, 3) …, sorted: (E, 2)."""
    # Pair k has the larger end h with h(h − 1)/2 <= k < h(h + 1)/2; k = 6 has h = 4, the pair (0, 4). Above 2^52 the
    # root is rounded, which changes h by one at most.
    high = ((1 + np.sqrt(1.0 + 8.0 * k)) / 2).astype(np.int64)
    high -= high * (high - 1) // 2 > k
    high += high * (high + 1) // 2 <= k
    ends = np.stack([k - high * (high - 1) // 2, high], axis=1)
    return ends[np.lexsort(ends.T[::-1])]
