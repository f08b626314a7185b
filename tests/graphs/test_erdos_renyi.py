"""Random graphs have the probability of an edge that they are given."""

import numpy as np
import pytest

from mpifed.core.streams import stream
from mpifed.graphs.erdos_renyi import ErdosRenyi, numbered, successes


def test_pairs_are_numbered_without_gaps_also_where_numbers_are_large():
    ends = numbered(np.arange(15 * 14 // 2))
    assert {tuple(edge) for edge in ends.tolist()} == {(i, j) for j in range(15) for i in range(j)}
    m = 200_000
    last = m * (m - 1) // 2 - 1
    assert numbered(np.array([last, last - (m - 2), last - (m - 1)])).tolist() == [
        [0, m - 1],
        [m - 3, m - 2],
        [m - 2, m - 1],
    ]


@pytest.mark.parametrize("p", [0.02, 0.3, 1.0])
def test_trials_succeed_with_probability_p(p):
    found = successes(50_000, p, stream(1, "graph"))
    assert (np.diff(found) > 0).all()
    assert abs(len(found) - 50_000 * p) <= 5 * np.sqrt(50_000 * p * (1 - p))


def test_by_default_a_graph_is_connected_almost_surely():
    degrees = np.bincount(ErdosRenyi().edges(300, stream(0, "graph")).ends.ravel(), minlength=300)
    assert degrees.mean() == pytest.approx(2 * np.log(300), rel=0.15)
    assert degrees.min() > 0
