"""Checks of the edges that users' graphs return, and their conversion to ``Edges``."""

from typing import Any

import numpy as np

from mpifed.core.guards import Guard, InvalidReturn, describe_value
from mpifed.core.typing import Array
from mpifed.graphs.graph import EXACT, Edges, sum_at_ends, unique_edges


def check_edges(graph: Any, result: Any, m: int, rng: np.random.Generator) -> Edges:
    """Return a user's edges, each once, the smaller end first, rising; an array (E, 2) may be in any order."""
    edges = result if isinstance(result, Edges) else Edges(result)
    ends = np.asarray(edges.ends)
    if ends.ndim != 2 or ends.shape[1] != 2 or ends.dtype.kind not in "iu":
        raise InvalidReturn(
            f"returns {describe_value(edges.ends)}: edges are whole numbers of shape (E, 2), two clients each"
        )
    outside = ends[(ends < 0) | (ends >= m)]
    if outside.size:
        raise InvalidReturn(f"returns an edge with node {outside[0]}: nodes are numbered from 0 to {m - 1}")
    loops = ends[ends[:, 0] == ends[:, 1]]
    if len(loops):
        raise InvalidReturn(f"returns an edge from node {loops[0, 0]} to itself: W_ii needs none, it is 1 − Σ_j W_ij")
    once = unique_edges(ends[:, 0], ends[:, 1], m)
    if edges.weights is None:
        return Edges(once)
    return check_weights(edges, ends, once, m)


def check_weights(edges: Edges, ends: Array, once: Array, m: int) -> Edges:
    """Return the edges ``once`` with the weights of ``ends``; Wrong where they are no weights of a graph."""
    weights = np.asarray(edges.weights, float)
    if weights.shape != (len(ends),) or not np.isfinite(weights).all():
        raise InvalidReturn(
            f"returns weights that are {describe_value(edges.weights)}: they are finite numbers, one for each edge"
        )
    # A user may list an edge several times, in either direction, but always with the same weight: (i, j) and (j, i)
    # have one code.
    codes = np.sort(ends, axis=1) @ np.array([m, 1])
    distinct, first, back = np.unique(codes, return_index=True, return_inverse=True)
    differ = ends[weights != weights[first][back]]
    if len(differ):
        raise InvalidReturn(
            f"returns two weights for the edge between {differ[0, 0]} and {differ[0, 1]}: W must be symmetric"
        )
    assert len(distinct) == len(once)
    rest = sum_at_ends(once, weights[first], m)
    own = 1 - rest if edges.own is None else np.asarray(edges.own, float)
    if own.shape != (m,) or not np.isfinite(own).all():
        raise InvalidReturn(
            f"returns own weights that are {describe_value(edges.own)}: they are finite numbers, one for each node"
        )
    error = np.abs(own + rest - 1)
    if error.max() > EXACT:
        i = int(error.argmax())
        raise InvalidReturn(
            f"returns weights whose row of node {i} sums to {own[i] + rest[i]:.12g}: rows of W must sum to 1"
        )
    return Edges(once, weights[first], own)


GUARDS: dict[str, dict[str, Guard]] = {"graphs": {"edges": check_edges}}
