"""FedEPM on a graph: FedEPM on the complete graph, its privacy, and how large λ must be."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from mpifed import UserError
from tests.helpers import graph_studies
from tests.helpers.graph_studies import GRAPHS, HALF, M, N, names
from tests.oracles.graphs import matrices

STEPS = {"step_scale": "one", "mu0": 15.0, "k0": 3, "lam": 0.05, "eta": 0.2}
NOISES = [
    {"noise": "none"},
    {"noise": "released", "epsilon": 50.0},
    {"noise": "clipped", "noise_seed": 3, "clip": 20.0, "epsilon": 1e3},
]


def run(rounds, graph, selection=HALF, name="fedepm-graph", **options):
    return graph_studies.run(rounds, graph, selection, name=name, **{**STEPS, **options})


@pytest.mark.parametrize("noise", NOISES, ids=names)
@pytest.mark.parametrize("selection", [HALF, {"name": "all"}], ids=names)
def test_on_the_complete_graph_it_is_fedepm_in_every_round(noise, selection):
    nodes = run(12, "complete", selection, **noise)
    server = run(12, None, selection, name="fedepm", **noise)
    columns = (
        ["objective", "grad_norm_sq"] if noise["noise"] == "none" else ["objective", "grad_norm_sq", "snr", "epsilon"]
    )
    for column in columns:
        assert np.allclose(nodes.rounds[column], server.rounds[column], rtol=1e-9)
    assert np.allclose(nodes.x, server.x, rtol=1e-10, atol=1e-12)
    assert nodes.rounds["consensus_max"].max() < 1e-24


@pytest.mark.parametrize("graph", [GRAPHS[0], GRAPHS[2], GRAPHS[5]], ids=names)
def test_with_lambda_near_0_nodes_end_where_a_linear_system_says(graph):
    """w_i = c_i − ∇f_i(c_i)/η and c = W²w, so (I − W²)c = −W²∇f(c)/η; on the complete graph that is the minimiser."""
    W, eta = matrices(graph, M, 1)[0], 2.0
    A, b = np.kron(np.eye(M) - W @ W, np.eye(N)), np.zeros(M * N)
    for i, (Q, q) in enumerate(graph_studies.quadratics()):
        A[:, i * N : (i + 1) * N] += np.kron((W @ W)[:, [i]], Q) / eta
        b += np.kron((W @ W)[:, i], q) / eta
    limit = np.linalg.lstsq(A, b)[0].reshape(M, N).mean(axis=0)
    found = run(500, graph, {"name": "all"}, noise="none", lam=1e-9, eta=eta, mu0=15.0, alpha=1.0)
    assert np.allclose(found.x, limit, rtol=1e-5)
    assert np.allclose(limit, graph_studies.best(), rtol=1e-9) == (graph["name"] == "complete")


def test_only_selected_nodes_send_uploads_and_every_node_its_copy():
    """On a ring each has two neighbours: a round has 2 M copies and as many uploads as selected nodes have edges."""
    found = run(4, "ring", noise="none").rounds
    assert found["uploads"][-1] == 4 * (2 * M + 2 * M / 2)
    assert found["bytes_up"][-1] == found["uploads"][-1] * 8 * N


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
    gradients = np.array([Q @ graph_studies.best() - q for Q, q in graph_studies.quadratics()])
    W = matrices(graph, M, 1)[0]
    found = max(threshold(W, column) for column in gradients.T)
    printed = np.abs(gradients).max()
    assert found > (1 - 1e-9) * printed
    assert graph["name"] != "complete" or found < (1 + 1e-9) * printed


@pytest.mark.parametrize("m", [8, 12, 24])
def test_two_halves_of_a_ring_that_disagree_ask_for_a_lambda_that_grows_with_m(m):
    """m/2 gradients of 1 pass four edges of weight 1/3."""
    g = np.repeat([1.0, -1.0], m // 2)
    assert threshold(matrices({"name": "ring"}, m, 1)[0], g) == pytest.approx(3 * m / 8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k0": 0}, "k0"),
        ({"eta": 0.0}, r"eta = 0\.0"),
        ({"noise": "gaussian"}, "noise"),
        ({"alpha": 0.5}, r"alpha = 0\.5"),
    ],
)
def test_options_that_make_no_sense_are_refused(options, message):
    with pytest.raises(UserError, match=message):
        run(1, "ring", **options)
