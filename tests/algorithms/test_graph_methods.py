"""Methods without a server: where those end that do not end at the minimiser, their steps, and what travels."""

import numpy as np
import pytest
from scipy.optimize import linprog

import mpifed
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import All, UniformSelection
from tests.helpers.graph_studies import GRAPHS, M, N, begun, best, names, smoothness
from tests.helpers.graph_studies import quadratics as clients
from tests.oracles.graphs import matrices

GAMMA = 0.1
HALF = UniformSelection(share=0.5)


def weights(graph):
    """W of a graph that does not change."""
    return matrices(graph, M, 1)[0]


@pytest.mark.parametrize(
    ("graph", "key"),
    [({"name": "ring", "loss": 0.1}, "loss = 0.1"), ({"name": "erdos-renyi", "redraw": True}, "redraw = true")],
)
def test_extra_refuses_a_graph_that_changes(graph, key):
    with pytest.raises(UserError, match=rf"^graph\.{key} is wrong: extra needs a graph that does not change, because"):
        mpifed.run({"algorithm": "extra", "graph": graph, "rounds": 1})


@pytest.mark.parametrize("options", [{"H": "zero", "k0": 4}, {"H": "zero", "k0": 2, "mixes": 1}], ids=names)
def test_fedgia_without_a_metric_and_with_two_local_steps_is_exact_diffusion(options):
    """x¹ = V(x⁰ − γ∇f(x⁰)), x^(k+2) = V(2x^(k+1) − x^k − γ(∇f(x^(k+1)) − ∇f(x^k))), with V = W² or, mixed once, W.

    NIDS takes its first step without V, so it is elsewhere on the way to the same limit.
    """
    V = np.linalg.matrix_power(weights({"name": "ring"}), options.get("mixes", 2))

    def forward(X):
        return X - GAMMA * np.array([Q @ x - q for (Q, q), x in zip(clients(), X, strict=True)])

    def means(first, rounds):
        before, now = np.zeros((M, N)), first
        found = [now]
        for _ in range(rounds - 1):
            before, now = now, V @ (now + forward(now) - forward(before))
            found.append(now)
        return np.array(found).mean(axis=1)

    start = forward(np.zeros((M, N)))
    run = begun("fedgia-graph", "ring", HALF, t=1 / (GAMMA * smoothness()), **options)
    found = np.array([run.rounds(1)[-1] for _ in range(20)])
    assert np.allclose(found, means(V @ start, 20), rtol=1e-10)
    assert 6e-3 < np.abs(found - means(start, 20)).max() < 8e-3
    assert np.allclose(means(V @ start, 900)[-1], means(start, 900)[-1], atol=1e-9)


def test_one_mix_diverges_where_w_has_eigenvalues_below_minus_a_third():
    run, sizes = begun("fedgia-graph", {"name": "torus", "rows": 2}, HALF, mixes=1), []
    for _ in range(4):
        run.rounds(60)
        sizes.append(run.row()["consensus"])
    assert (np.diff(np.log(sizes[1:])) > 1).all()


@pytest.mark.parametrize(("selection", "sending"), [(HALF, M / 2), (All(), M)], ids=["half", "all"])
def test_only_selected_nodes_of_fedepm_send_uploads_and_every_node_its_copy(selection, sending):
    """On a ring each has two neighbours: a round has 2 M copies and as many uploads as selected nodes have edges."""
    run = begun("fedepm-graph", "ring", selection, noise="none")
    run.rounds(4)
    assert run.fed.ledger.uploads == 4 * (2 * M + 2 * sending)
    assert run.fed.ledger.bytes_up == run.fed.ledger.uploads * 8 * N


@pytest.mark.parametrize("mixes", [1, 2])
def test_an_edge_carries_a_vector_each_way_for_each_mix_of_fedgia(mixes):
    run = begun("fedgia-graph", {"name": "torus", "rows": 3}, HALF, mixes=mixes)
    run.rounds(3)
    edges = 2 * M  # of a 3 × 4 torus
    assert run.fed.ledger.uploads == 3 * mixes * 2 * edges
    assert run.fed.ledger.bytes_up == run.fed.ledger.uploads * 8 * N


def threshold(W, g):
    """The least λ with |u_ij| <= λ W_ij, Σ_j u_ij = −g_i and Σ_i u_ij = 0, for one coordinate of the gradients g."""
    m = len(g)
    edges = np.argwhere(W > 0)
    k = len(edges)
    flow = np.zeros((2 * m, k + 1))
    flow[edges[:, 0], np.arange(k)] = flow[m + edges[:, 1], np.arange(k)] = 1
    capacity = np.column_stack([np.vstack([np.eye(k), -np.eye(k)]), -np.tile(W[W > 0], 2)])
    bounds = [(None, None)] * k + [(0, None)]
    right = np.concatenate([-g, np.zeros(m)])
    return linprog(np.eye(k + 1)[-1], capacity, np.zeros(2 * k), flow, right, bounds).x[-1]


@pytest.mark.parametrize("graph", GRAPHS, ids=names)
def test_a_graph_asks_for_at_least_the_lambda_of_the_server_and_the_complete_graph_for_just_that(graph):
    G = np.array([Q @ best() - q for Q, q in clients()])
    found = max(threshold(weights(graph), column) for column in G.T)
    printed = np.abs(G).max()
    assert found > (1 - 1e-9) * printed
    assert graph["name"] != "complete" or found < (1 + 1e-9) * printed


@pytest.mark.parametrize("m", [8, 12, 24])
def test_two_halves_of_a_ring_that_disagree_ask_for_a_lambda_that_grows_with_m(m):
    """m/2 gradients of 1 pass four edges of weight 1/3."""
    g = np.repeat([1.0, -1.0], m // 2)
    assert threshold(matrices({"name": "ring"}, m, 1)[0], g) == pytest.approx(3 * m / 8)
