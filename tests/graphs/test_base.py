"""Every graph: its edges are those of a plain loop, each is there once, and wrong sizes are refused."""

import numpy as np
import pytest

from mpifed.core.streams import stream
from mpifed.graphs.base import Graph, pairs
from tests.oracles.graphs import edges

TABLES = [
    {"name": "ring"},
    {"name": "torus", "rows": 2},
    {"name": "torus", "rows": 3},
    {"name": "exponential"},
    {"name": "complete"},
    {"name": "star"},
    {"name": "erdos-renyi", "p": 0.3},
]


@pytest.mark.parametrize("m", [6, 12, 18])
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_edges_are_those_of_a_plain_loop(table, m):
    found = Graph.build(table, "graph").edges(m, stream(5, "graph", 0, 0)).ends
    assert [tuple(edge) for edge in found.tolist()] == edges(table, m, 5, 0)


@pytest.mark.parametrize("name", ["ring", "exponential", "complete", "star", "erdos-renyi"])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_smallest_graphs_have_the_edges_that_there_can_be(name, m):
    ends = Graph.build(name, "graph").edges(m, stream(0, "graph")).ends
    assert ends.shape == (min(m * (m - 1) // 2, m if name != "star" else m - 1), 2)


def test_an_edge_is_there_once_whichever_way_it_is_given():
    assert pairs(np.array([2, 0, 2, 1]), np.array([0, 2, 2, 2]), 3).tolist() == [[0, 2], [1, 2]]


@pytest.mark.parametrize(("m", "shape"), [(36, (6, 6)), (12, (3, 4)), (10, (2, 5)), (4, (2, 2))])
def test_a_torus_is_as_square_as_possible(m, shape):
    assert Graph.build("torus", "graph").symmetry(m) == shape
