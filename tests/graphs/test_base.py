"""Every graph: each edge is there once, in the smallest graphs too."""

import numpy as np
import pytest

from mpifed.core.streams import stream
from mpifed.graphs.base import Graph, pairs


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
