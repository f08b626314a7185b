"""What a graph is: which clients exchange vectors, with which weights, in every round."""

from abc import abstractmethod
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core.component import Component
from mpifed.core.memory import check_memory
from mpifed.core.typing import Array

EXACT = 1e-9  # how far a row of given weights may be from 1
EDGE = 200  # bytes that an edge takes while the matrix is made


class Edges(NamedTuple):
    """Edges ``ends`` (E, 2), the smaller end first, rising; ``weights`` (E,) where they are given, None: Metropolis.

    ``own`` (m,) are weights W_ii where they are given, None: what makes rows sum to 1.

        >>> mpifed.Edges(np.array([[0, 1], [1, 2]])).weights is None
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

        >>> class Path(mpifed.Graph):
        ...     def edges(self, m, rng):
        ...         return mpifed.Edges(np.column_stack([np.arange(m - 1), np.arange(1, m)]))
        >>> mpifed.run(algorithm="dgd", graph=Path(), rounds=2).cr
        2
    """

    choices: ClassVar[dict[str, str]] = {
        "ring": "mpifed.graphs.regular:Ring",
        "torus": "mpifed.graphs.regular:Torus",
        "exponential": "mpifed.graphs.regular:Exponential",
        "complete": "mpifed.graphs.regular:Complete",
        "star": "mpifed.graphs.regular:Star",
        "erdos-renyi": "mpifed.graphs.erdos_renyi:ErdosRenyi",
        "file": "mpifed.graphs.edge_file:EdgeFile",
    }
    default: ClassVar[str] = "ring"
    kind: ClassVar[str] = "graphs"
    checks: ClassVar[str] = "mpifed.graphs.graph_guards"

    loss: Annotated[float, Meta(ge=0, lt=1, description="probability that an edge is lost in a round")] = 0.0

    @abstractmethod
    def edges(self, m: int, rng: np.random.Generator) -> Edges:
        """The edges between m nodes. UserError where there is no such graph with m nodes."""

    @property
    def drawn_anew(self) -> bool:
        """Whether every round has other edges, not only fewer of them."""
        return False

    @property
    def changing(self) -> bool:
        """Whether W differs between rounds."""
        return self.loss > 0 or self.drawn_anew

    def symmetry(self, m: int) -> tuple[int, ...]:
        """The shape (…,) of a grid of m nodes, in order, in all of whose cyclic shifts W is the same; () for none."""
        return ()


def at_ends(ends: Array, values: Array, m: int) -> Array:
    """The sum over the edges of each node of their values (E,): (m,)."""
    return np.bincount(ends.ravel(), np.repeat(values, 2), m)


def pairs(a: Array, b: Array, m: int) -> Array:
    """The edges between the nodes a and b (k,), each once, the smaller end first, rising: (E, 2)."""
    # One number for each edge, which sorts and compares faster than a pair; loops are left out, as in a ring of one.
    check_memory(EDGE * len(a), f"a graph with {len(a):,} edges")
    low, high = np.sort([a, b], axis=0)
    codes = np.unique((low * m + high)[low != high])
    return np.stack(np.divmod(codes, m), axis=1)
