"""Edges, drawn or from files, each there once; W of every round, and a lost edge; spectral gaps by three ways."""

import numpy as np
import pytest

from mpifed.core.errors import UserError
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


@pytest.fixture
def read(tmp_path):
    """W of three clients from the text of a file."""

    def matrix(text, m=3, **options):
        (tmp_path / "edges.txt").write_text(text)
        table = {"name": "file", "path": str(tmp_path / "edges.txt")} | options
        return Weights(Graph.build(table, "graph"), 0, m).first.W.toarray()

    return matrix


def test_edges_without_weights_get_those_of_metropolis_and_with_weights_the_diagonal_is_what_rows_lack(read):
    right = np.array([[2 / 3, 1 / 3, 0], [1 / 3, 1 / 3, 1 / 3], [0, 1 / 3, 2 / 3]])
    for text in ("0 1\n1 2\n", "# a path\n2,1\n\n0\t1  # the first\n", "1 0\n0 1\n1 2\n"):
        assert np.allclose(read(text), right, rtol=0, atol=1e-15)
    assert (read("# no edges") == np.eye(3)).all()
    assert np.allclose(read("0 1 0.25\n1 2 0.5\n"), [[0.75, 0.25, 0], [0.25, 0.25, 0.5], [0, 0.5, 0.5]])
    assert np.allclose(read("0 1 0.25\n1 0 0.25\n0 0 0.75\n1 2 0.5\n"), read("0 1 0.25\n1 2 0.5\n"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0 1\n1 3\n", "every line must begin with the numbers of two clients, from 0 to 2"),
        ("0 1\n-1 2\n", "from 0 to 2"),
        ("0 1.5\n", "from 0 to 2"),
        ("0 1 0.2\n1 0 0.3\n", "W must be symmetric, and the edge between 0 and 1 has two weights"),
        ("0 1 0.2\n0 0 0.7\n", "rows of W must sum to 1, and that of client 0 sums to 0.9"),
        ("1e300 1\n", "from 0 to 2"),
        ("0 1 0.2\n1 2\n", "either all lines have a weight or none"),
        ("0 1 inf\n", "it must hold numbers: line 1 has one that is not finite"),
        ("0 1\n1 2 nan\n", "it must hold numbers: line 2 has one that is not finite"),
        ("0 0_1\n", "it must hold numbers: line 1 has one that is not finite, or has _ in it"),
        ("0 1 2 3\n", "line 1 has 4 numbers"),
        ("0 one\n", "it must hold numbers"),
    ],
)
def test_a_wrong_file_is_refused_and_a_missing_one(read, text, words):
    with pytest.raises(UserError, match=rf"^graph\.path = '.*edges\.txt' is wrong: .*{words}"):
        read(text)
    with pytest.raises(UserError, match=r"nowhere' is wrong: it cannot be read: No such file"):
        read(text, path="nowhere")
