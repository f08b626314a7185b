"""FedGiA on a graph: FedGiA on the complete graph, NIDS in a limit, the minimiser on any connected graph."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed import UserError
from mpifed.core.errors import Trouble
from tests.helpers import graph_studies
from tests.helpers.graph_studies import CHANGING, GRAPHS, HALF, M, N, best, names, quadratics, smoothness
from tests.oracles.graphs import matrices

GAMMA = 0.1


def run(rounds, graph, selection=HALF, **options):
    return graph_studies.run(rounds, graph, selection, name="fedgia-graph", **options)


@pytest.mark.parametrize("average", ["tracked", "plain"])
@pytest.mark.parametrize("options", [{"t": 0.4}, {"k0": 3, "H": "gram", "t": 0.3}, {"k0": 1, "H": "zero", "t": 1.5}])
@pytest.mark.parametrize("selection", [HALF, {"name": "all"}], ids=names)
def test_on_the_complete_graph_it_is_fedgia_in_every_round(average, options, selection):
    nodes = run(30, "complete", selection, average=average, **options)
    server = graph_studies.run(30, None, selection, name="fedgia", **options)
    for column in ("objective", "grad_norm_sq"):
        assert np.allclose(nodes.rounds[column], server.rounds[column], rtol=1e-10, atol=1e-18)
    assert np.allclose(nodes.x, server.x, rtol=1e-12, atol=1e-13)
    assert nodes.rounds["consensus_max"].max() < 1e-24


@pytest.mark.parametrize("graph", [*GRAPHS, *CHANGING], ids=names)
@pytest.mark.parametrize("options", [{}, {"k0": 2, "H": "gram"}], ids=names)
def test_nodes_end_at_the_minimiser_of_f(graph, options):
    found = run(400, graph, **options)
    assert found.rounds["grad_norm_sq"][-1] < 1e-20 * found.rounds["grad_norm_sq"][0]
    assert found.rounds["consensus_max"][-1] < 1e-20


@pytest.mark.parametrize("options", [{"H": "zero", "k0": 4}, {"H": "zero", "k0": 2, "mixes": 1}], ids=names)
def test_without_a_metric_and_with_two_local_steps_it_is_nids(options):
    """x¹ = V(x⁰ − γ∇f(x⁰)), x^(k+2) = V(2x^(k+1) − x^k − γ(∇f(x^(k+1)) − ∇f(x^k))), with V = W² or, mixed once, W."""
    clients = quadratics()
    W = matrices({"name": "ring"}, M, 1)[0]
    V = np.linalg.matrix_power(W, options.get("mixes", 2))

    def forward(X):
        return X - GAMMA * np.array([Q @ x - q for (Q, q), x in zip(clients, X, strict=True)])

    before = np.zeros((M, N))
    now = V @ forward(before)
    for _ in range(19):
        before, now = now, V @ (now + forward(now) - forward(before))
    assert np.allclose(run(20, "ring", t=1 / (GAMMA * smoothness()), **options).x, now.mean(axis=0), rtol=1e-10)


def test_the_plain_average_of_gradient_steps_is_decentralised_gradient_descent():
    plain = run(25, "ring", average="plain", mixes=1, H="zero", t=1 / (GAMMA * smoothness()))
    descent = graph_studies.run(25, "ring", name="dgd", order="adapt-combine", gamma=GAMMA)
    assert np.allclose(plain.rounds["objective"], descent.rounds["objective"], rtol=1e-11)
    assert np.allclose(plain.x, descent.x, rtol=1e-10)


def test_the_plain_average_ends_where_its_equation_says_and_not_at_the_minimiser():
    """(I − W)x = −γW∇f(x), γ = 1/(t max r_i), whatever k0, H and the selection."""
    clients, t = quadratics(), 2.0
    gamma = 1 / (t * smoothness())
    W = matrices({"name": "ring"}, M, 1)[0]
    A, b = np.kron(np.eye(M) - W, np.eye(N)), np.zeros(M * N)
    for i, (Q, q) in enumerate(clients):
        A[:, i * N : (i + 1) * N] += gamma * np.kron(W[:, [i]], Q)
        b += gamma * np.kron(W[:, i], q)
    limit = np.linalg.solve(A, b).reshape(M, N).mean(axis=0)
    for options in ({"k0": 5}, {"k0": 1, "H": "gram"}):
        found = run(600, "ring", average="plain", mixes=1, t=t, **options)
        assert np.allclose(found.x, limit, rtol=1e-8)
        assert found.rounds["consensus"][-1] > 1e-3
    assert np.linalg.norm(limit - best()) > 1e-2 * np.linalg.norm(best())


def test_an_edge_carries_a_vector_each_way_for_each_mix():
    edges = 2 * M  # of a 3 × 4 torus
    for mixes in (1, 2):
        found = run(3, {"name": "torus", "rows": 3}, mixes=mixes)
        assert found.rounds["bytes_up"][-1] == 3 * mixes * 2 * edges * 8 * N
        assert found.rounds["uploads"][-1] == 3 * mixes * 2 * edges


def test_one_mix_diverges_where_w_has_eigenvalues_below_minus_a_third():
    assert run(300, {"name": "torus", "rows": 3}).rounds["consensus"][-1] < 1e-12
    with pytest.raises(Trouble, match=r"f diverges.*algorithm\.t"):
        run(3000, {"name": "torus", "rows": 2}, mixes=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k0": 0}, "k0"),
        ({"t": 0.0}, "t = 0.0"),
        ({"mixes": 0}, "mixes"),
        ({"average": "mean"}, "average"),
        ({"H": "hessian"}, "H"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        run(1, "ring", **options)
