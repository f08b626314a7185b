"""Base class of graphs, which say which clients exchange vectors in a round, and with which weights."""

from abc import abstractmethod
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core.component import Component
from mpifed.core.memory import check_memory
from mpifed.core.typing import Array

EXACT = 1e-9  # how far the sum of a row of a user's weights may be from 1
EDGE = 200  # bytes that an edge takes while the matrix is made


class Edges(NamedTuple):
    """Edges of a graph: ``ends`` (E, 2), the smaller end first, rising; ``weights`` (E,), None for those of Metropolis.

    ``own`` (m,): the weights W_ii, None for those with which rows sum to 1.

        >>> mpifed.extend.Edges(np.array([[0, 1], [1, 2]])).weights is None
        True
    """

    ends: Array
    weights: Array | None = None
    own: Array | None = None


class Graph(Component):
    """Clients as nodes: which of them exchange vectors, and the weights W with which they mix them.

    W is symmetric and its rows sum to 1. Metropolis weights: W_ij = 1/(1 + max(d_i, d_j)) for an edge between nodes
    with d_i and d_j neighbours, W_ii = 1 − Σ_j W_ij. In a round each edge is lost with probability ``loss``: it carries
    nothing, and its weight is added to W_ii and W_jj.

        >>> class Path(mpifed.extend.Graph):
        ...     def edges(self, m, rng):
        ...         return mpifed.extend.Edges(np.column_stack([np.arange(m - 1), np.arange(1, m)]))
        >>> mpifed.run(algorithm="dgd", graph=Path(), rounds=2).cr
        2
    """

    choices: ClassVar[dict[str, str]] = {
        "ring": "mpifed.graphs.families:Ring",
        "torus": "mpifed.graphs.families:Torus",
        "exponential": "mpifed.graphs.families:Exponential",
        "complete": "mpifed.graphs.families:Complete",
        "star": "mpifed.graphs.families:Star",
        "erdos-renyi": "mpifed.graphs.families:ErdosRenyi",
        "file": "mpifed.graphs.edge_file:EdgeFile",
    }
    default: ClassVar[str] = "ring"
    kind: ClassVar[str] = "graphs"
    checks: ClassVar[str] = "mpifed.graphs.graph_guards"

    loss: Annotated[float, Meta(ge=0, lt=1, description="probability that an edge is lost in a round")] = 0.0

    @abstractmethod
    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        """Return the edges between m nodes; UserError where there is no such graph with m nodes."""

    @property
    def is_redrawn(self) -> bool:
        """True if every round has other edges, not only fewer of them."""
        return False

    @property
    def is_changing(self) -> bool:
        """True if W differs between rounds."""
        return self.loss > 0 or self.is_redrawn

    def symmetry(self, m: int) -> tuple[int, ...]:
        """Return the shape of a grid of the m nodes, in order, whose cyclic shifts all leave W as it is; () if none."""
        return ()


def sum_at_ends(ends: Array, values: Array, m: int) -> Array:
    """Return the sums (m,) of the values (E,) of the edges at each node."""
    return np.bincount(ends.ravel(), np.repeat(values, 2), m)


def unique_edges(a: Array, b: Array, m: int) -> Array:
    """Return the edges between nodes a and b (k,), each once, the smaller end first, rising: (E, 2)."""
    # One number for each edge sorts and compares faster than a pair. Loops are left out, as in a ring of one node.
    check_memory(EDGE * len(a), f"a graph with {len(a):,} edges")
    low, high = np.sort([a, b], axis=0)
    codes = np.unique((low * m + high)[low != high])
    return np.stack(np.divmod(codes, m), axis=1)
