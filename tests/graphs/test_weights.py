"""Edges, each there once; W of every round, and what a lost edge does to it; spectral gaps by three ways."""

import numpy as np
import pytest

from mpifed.core.streams import stream
from mpifed.graphs import weights as module
from mpifed.graphs.families import ErdosRenyi, decode_pairs, draw_successes
from mpifed.graphs.graph import Graph, unique_edges
from mpifed.graphs.weights import Spectrum, Weights, compute_spectrum
from tests.oracles.graphs import matrices

M, ROUNDS = 12, 4
TABLES = [
    {"name": "ring"},
    {"name": "torus", "rows": 2},
    {"name": "torus", "rows": 3, "loss": 0.4},
    {"name": "exponential", "loss": 0.3},
    {"name": "complete", "loss": 0.2},
    {"name": "star", "loss": 0.2},
    {"name": "erdos-renyi", "p": 0.4},
    {"name": "erdos-renyi", "p": 0.3, "redraw": True},
    {"name": "erdos-renyi", "p": 0.3, "redraw": True, "loss": 0.3},
]


def weights(table, seed=3, m=M):
    return Weights(Graph.build(table, "graph"), seed, m)


@pytest.mark.parametrize("m", [6, M, 18])
@pytest.mark.parametrize("table", TABLES, ids=str)
def test_weights_are_those_of_a_plain_loop_in_every_round_and_do_not_depend_on_the_rounds_before(table, m):
    found = weights(table, m=m)
    for round, right in enumerate(matrices(table, m, ROUNDS, 3), 1):
        mixing = found.at(round)
        W = mixing.W.toarray()
        assert np.allclose(W, right, rtol=0, atol=1e-15)
        assert (W == W.T).all()
        assert np.allclose(W.sum(axis=1), 1, rtol=0, atol=1e-15)
        assert mixing.edges == np.count_nonzero(np.triu(W, 1))
        assert np.array_equal(mixing.degrees, np.count_nonzero(W - np.diag(W.diagonal()), axis=1))
    assert (weights(table, m=m).at(ROUNDS).W != mixing.W).nnz == 0


def test_edges_are_lost_with_the_probability_that_is_given_and_none_in_round_0_and_the_least_eigenvalue_stays():
    found = weights({"name": "complete", "loss": 0.25}, m=60)
    assert found.at(0) is found.first
    assert found.first.edges == 60 * 59 / 2
    kept = [found.at(round).edges / found.first.edges for round in range(1, 21)]
    assert np.mean(kept) == pytest.approx(0.75, abs=0.01)
    assert len(set(kept)) > 5
    found = weights({"name": "torus", "rows": 3, "loss": 0.5})
    least = [np.linalg.eigvalsh(found.at(round).W.toarray())[0] for round in range(8)]
    assert min(least) >= least[0] - 1e-12
    assert least[0] - 2e-6 < found.min_eigenvalue < least[0]


@pytest.mark.parametrize(("name", "m"), [("ring", 11), ("torus", 24), ("exponential", 20), ("complete", 9)])
def test_closed_forms_are_the_eigenvalues(name, m):
    W = weights(name, 2, m).first.W
    assert weights(name, 2, m).spectrum == pytest.approx(compute_spectrum(W, ()), rel=0, abs=1e-12)
    assert name != "ring" or weights("ring", m=m).spectrum.gap == pytest.approx(2 / 3 * (1 - np.cos(2 * np.pi / m)))


@pytest.mark.parametrize("name", ["star", "erdos-renyi"])
def test_lanczos_method_finds_what_the_dense_solver_finds(name, monkeypatch):
    W = weights(name, 2, 200).first.W
    dense = compute_spectrum(W, ())
    monkeypatch.setattr(module, "DENSE", 10)
    assert compute_spectrum(W, ()) == pytest.approx(dense, rel=0, abs=1e-5)


def test_where_lanczos_method_does_not_converge_the_gap_is_not_a_number_and_the_bound_is_gershgorins(monkeypatch):
    monkeypatch.setattr(module, "DENSE", 10)
    monkeypatch.setattr(module, "ROUNDS", 1)
    monkeypatch.setattr(type(Graph.build("ring", "graph")), "symmetry", lambda self, m: ())
    found = weights("ring", m=4000)
    assert np.isnan(found.spectrum.gap)
    assert found.min_eigenvalue == pytest.approx(-1 / 3, abs=1e-5)


def test_a_graph_in_parts_has_no_gap_and_one_node_nothing_to_wait_for(tmp_path):
    assert weights("ring", m=1).spectrum == Spectrum(1, 0.0, 0.0)
    (tmp_path / "edges.txt").write_text("0 1\n2 3\n")
    found = weights({"name": "file", "path": str(tmp_path / "edges.txt")}, m=5).spectrum
    assert (found.components, found.gap) == (3, pytest.approx(0, abs=1e-12))


@pytest.mark.parametrize("name", ["ring", "exponential", "complete", "star", "erdos-renyi"])
@pytest.mark.parametrize("m", [1, 2, 3])
def test_the_smallest_graphs_have_the_edges_that_there_can_be(name, m):
    ends = Graph.build(name, "graph").edges(m, stream(0, "graph")).ends
    assert ends.shape == (min(m * (m - 1) // 2, m if name != "star" else m - 1), 2)


@pytest.mark.parametrize(("m", "shape"), [(36, (6, 6)), (12, (3, 4)), (10, (2, 5)), (4, (2, 2))])
def test_a_torus_is_as_square_as_possible(m, shape):
    assert Graph.build("torus", "graph").symmetry(m) == shape


def test_pairs_are_numbered_without_gaps_also_where_numbers_are_large():
    ends = decode_pairs(np.arange(15 * 14 // 2))
    assert {tuple(edge) for edge in ends.tolist()} == {(i, j) for j in range(15) for i in range(j)}
    m = 200_000
    last = m * (m - 1) // 2 - 1
    ends = decode_pairs(np.array([last, last - (m - 2), last - (m - 1)]))
    assert ends.tolist() == [[0, m - 1], [m - 3, m - 2], [m - 2, m - 1]]


@pytest.mark.parametrize("p", [1e-19, 0.02, 0.3, 1.0])
def test_trials_succeed_with_probability_p(p):
    found = draw_successes(50_000, p, stream(1, "graph"))
    assert (np.diff(found) > 0).all()
    assert abs(len(found) - 50_000 * p) <= 5 * np.sqrt(50_000 * p * (1 - p))


def test_by_default_a_graph_is_connected_almost_surely_and_an_edge_is_there_once_whichever_way_it_is_given():
    degrees = np.bincount(ErdosRenyi().edges(300, stream(0, "graph")).ends.ravel(), minlength=300)
    assert degrees.mean() == pytest.approx(2 * np.log(300), rel=0.15)
    assert degrees.min() > 0
    assert unique_edges(np.array([2, 0, 2, 1]), np.array([0, 2, 2, 2]), 3).tolist() == [[0, 2], [1, 2]]
