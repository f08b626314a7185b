"""Graphs that follow from the number of nodes: ring, torus, exponential graph, complete graph, star."""

import math
from abc import abstractmethod
from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory
from mpifed.core.promises import Keeps
from mpifed.core.typing import Count
from mpifed.graphs.graph import EDGE, Edges, Graph, pairs


class Circle(Graph):
    """Nodes on a circle, node i and the nodes i + h, modulo m, for the ``hops`` h."""

    @abstractmethod
    def hops(self, m: int) -> list[int]:
        """How many places on the neighbours of a node are."""

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        i = np.arange(m)
        others = [(i + hop) % m for hop in self.hops(m)]
        return Edges(pairs(np.tile(i, len(others)), np.concatenate([i[:0], *others]), m))

    def symmetry(self, m: int) -> tuple[int, ...]:
        return (m,)


class Ring(Circle, tag="ring"):
    """Node i and node i + 1, modulo m."""

    # Edges follow from the number of clients. Survival is what its feature says.
    keeps = Keeps.EVERYTHING

    def hops(self, m: int) -> list[int]:
        return [1]


class Torus(Graph, tag="torus"):
    """A grid of ``rows`` × m/rows nodes, row by row, with neighbours above, below, left and right, cyclic."""

    # Edges follow from the number of clients. Survival is what its feature says.
    keeps = Keeps.EVERYTHING

    rows: Annotated[
        Count | None, Meta(description="rows of the grid (default: so that it is as square as possible)")
    ] = None

    def shape(self, m: int) -> tuple[int, int]:
        most = math.isqrt(m)
        rows = self.rows or next(r for r in range(most, 0, -1) if m % r == 0)
        if m % rows:
            raise UserError(f"graph.rows = {rows} is wrong: it must divide the number of clients, {m}")
        if m > 1 and rows in (1, m):
            given = f"graph.rows = {rows}" if self.rows else 'graph = "torus"'
            raise UserError(f'{given} is wrong for {m} clients: they make one row only, which is graph = "ring"')
        return rows, m // rows

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        rows, columns = self.shape(m)
        i = np.arange(m)
        r, c = np.divmod(i, columns)
        below = (r + 1) % rows * columns + c
        right = r * columns + (c + 1) % columns
        return Edges(pairs(np.tile(i, 2), np.concatenate([below, right]), m))

    def symmetry(self, m: int) -> tuple[int, ...]:
        return self.shape(m)


class Exponential(Circle, tag="exponential"):
    """Node i and the nodes i ± 2^k, k = 0, 1 … ⌈log₂ m⌉ − 1, modulo m: about 2 log₂ m neighbours, undirected."""

    # Edges follow from the number of clients. Survival is what its feature says.
    keeps = Keeps.EVERYTHING

    def hops(self, m: int) -> list[int]:
        return [1 << k for k in range((m - 1).bit_length())]


class Complete(Graph, tag="complete"):
    """All pairs of nodes; Metropolis weights are 1/m, so that mixing is the mean of all."""

    # Edges follow from the number of clients. Survival is what its feature says.
    keeps = Keeps.EVERYTHING

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        check_memory(EDGE * m * (m - 1) // 2, f"a complete graph of {m:,} nodes")
        return Edges(np.stack(np.triu_indices(m, 1), axis=1))

    def symmetry(self, m: int) -> tuple[int, ...]:
        return (m,)


class Star(Graph, tag="star"):
    """Node 0 and every other node."""

    # Edges follow from the number of clients. Survival is what its feature says.
    keeps = Keeps.EVERYTHING

    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        others = np.arange(1, m)
        return Edges(np.stack([np.zeros_like(others), others], axis=1))
