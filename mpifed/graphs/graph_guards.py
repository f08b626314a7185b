"""A graph of a user's own: its edges are checked, and put into the form that graphs have here."""

from typing import Any

import numpy as np

from mpifed.core.guards import Guard, Wrong, shown
from mpifed.core.typing import Array
from mpifed.graphs.graph import EXACT, Edges, at_ends, pairs


def edges(graph: Any, result: Any, m: int, rng: np.random.Generator) -> Edges:
    """Edges each once, the smaller end first, rising; an array (E, 2) will do, in any order and in both directions."""
    given = result if isinstance(result, Edges) else Edges(result)
    ends = np.asarray(given.ends)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise Wrong(f"returns {shown(given.ends)}: edges are whole numbers of shape (E, 2), two clients each")
    outside = ends[(ends < 0) | (ends >= m)]
    if outside.size:
        raise Wrong(f"returns an edge with node {outside[0]}: nodes are numbered from 0 to {m - 1}")
    loops = ends[ends[:, 0] == ends[:, 1]]
    if len(loops):
        raise Wrong(f"returns an edge from node {loops[0, 0]} to itself: W_ii needs none, it is 1 − Σ_j W_ij")
    once = pairs(ends[:, 0], ends[:, 1], m)
    if given.weights is None:
        return Edges(once)
    return weighted(given, ends, once, m)


def weighted(given: Edges, ends: Array, once: Array, m: int) -> Edges:
    """The edges ``once`` with the weights that are given for ``ends``; Wrong where they are no weights of a graph."""
    weights = np.asarray(given.weights, float)
    if weights.shape != (len(ends),) or not np.isfinite(weights).all():
        raise Wrong(f"returns weights that are {shown(given.weights)}: they are finite numbers, one for each edge")
    # A user may list an edge once or in both directions, or each as often as it pleases: (i, j) and (j, i) have one
    # code, and whoever lists it twice must say the same weight.
    codes = np.sort(ends, axis=1) @ np.array([m, 1])
    found, first, back = np.unique(codes, return_index=True, return_inverse=True)
    differ = ends[weights != weights[first][back]]
    if len(differ):
        raise Wrong(f"returns two weights for the edge between {differ[0, 0]} and {differ[0, 1]}: W must be symmetric")
    assert len(found) == len(once)
    rest = at_ends(once, weights[first], m)
    own = 1 - rest if given.own is None else np.asarray(given.own, float)
    if own.shape != (m,) or not np.isfinite(own).all():
        raise Wrong(f"returns own weights that are {shown(given.own)}: they are finite numbers, one for each node")
    far = np.abs(own + rest - 1)
    if far.max() > EXACT:
        i = int(far.argmax())
        raise Wrong(f"returns weights whose row of node {i} sums to {own[i] + rest[i]:.12g}: rows of W must sum to 1")
    return Edges(once, weights[first], own)


GUARDS: dict[str, dict[str, Guard]] = {"graphs": {"edges": edges}}
