"""Decentralised gradient descent: where it ends, and which server's method it is on the complete graph."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import All
from tests.helpers.algorithm_runs import M, N, Run, build, gradients, lowest, quadratics, systems


def nodes(graph="ring", problem="least-squares", **options):
    return Run(build("dgd", options), problem, graph=graph)


def slopes(run, X):
    """∇f_i(x_i) of quadratics: (m, n)."""
    return np.array([Q @ x - b for (Q, b), x in zip(run.samples(), X, strict=True)])


def test_it_ends_where_mixing_and_gradient_steps_balance():
    """x = Wx − γ∇F(x): that is no minimiser, for gradients differ between nodes."""
    run = nodes(problem="quadratic", gamma=0.4)
    run.rounds(400)
    X, W = run.states().x, run.fed.weights.first.W.toarray()
    assert np.allclose(X, W @ X - 0.4 * slopes(run, X), atol=1e-9)
    assert np.linalg.norm(X.mean(axis=0) - lowest(run)) > 1e-2


def test_a_tenth_of_the_step_brings_it_about_ten_times_closer():
    def distance(gamma, rounds):
        run = nodes("complete", "quadratic", gamma=gamma)
        run.rounds(rounds)
        X, x = run.states().x, lowest(run)
        return np.array([np.linalg.norm(X.mean(axis=0) - x), np.linalg.norm(X - X.mean(axis=0))])

    ratio = distance(0.2, 200) / distance(0.02, 2000)
    assert ratio.min() > 7
    assert ratio.max() < 12


@pytest.mark.parametrize("k0", [1, 4])
def test_with_the_step_first_it_is_local_gradient_descent_on_the_complete_graph(k0):
    """With uniform weights every node gets the mean of all, which is what the server of local-gd sends."""
    run = nodes(gamma=0.01, graph="complete", order="adapt-combine", k0=k0)
    server = Run(build("local-gd", {"gamma": 0.01, "k0": k0}), selection=All())
    assert np.allclose(run.rounds(20), server.rounds(20), rtol=1e-12, atol=1e-14)
    assert np.ptp(run.states().x, axis=0).max() < 1e-12


def test_with_mixing_first_the_complete_graph_is_no_server():
    """x_i⁺ = x̄ − γ∇f_i(x_i): gradients are those of the nodes' own models, which differ."""
    run = nodes(gamma=0.01, graph="complete")
    X = np.zeros((M, N))
    for x in run.rounds(10):
        X = X.mean(axis=0) - 0.01 * gradients(run, X)
        assert np.allclose(x, X.mean(axis=0), rtol=1e-12, atol=1e-14)
    assert np.ptp(X, axis=0).max() > 1e-3


@pytest.mark.parametrize("order", ["combine-adapt", "adapt-combine"])
def test_one_node_is_gradient_descent(order):
    data = quadratics(*systems(1, N))
    one = Run(build("dgd", {"gamma": 0.1, "order": order}), "quadratic", data=data, graph="ring")
    other = Run(build("gd", {"gamma": 0.1}), "quadratic", data=data)
    assert np.allclose(one.rounds(30), other.rounds(30), rtol=1e-13)


def test_the_default_step_is_half_the_bound():
    run = nodes(graph="torus")
    L = run.fed.inspect(run.algorithm.certify_smoothness, "max")
    W = run.fed.weights.first.W.toarray()
    assert run.server.gamma == pytest.approx((1 + np.linalg.eigvalsh(W)[0]) / (2 * float(L)), rel=1e-5)


def test_local_steps_come_before_mixing_only():
    with pytest.raises(UserError, match=r'^algorithm: k0 = 3 needs order = "adapt-combine"$'):
        build("dgd", {"k0": 3})
