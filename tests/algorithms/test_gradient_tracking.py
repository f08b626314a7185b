"""Gradient tracking ends at the minimiser of the mean of all objectives, also where the graph changes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.algorithm_runs import M, N, Run, build, gradients, lowest, quadratics, systems


@pytest.mark.parametrize(
    "graph",
    ["ring", "star", "complete", {"name": "torus", "loss": 0.3}, {"name": "erdos-renyi", "p": 0.2, "redraw": True}],
    ids=str,
)
def test_every_node_ends_at_the_minimiser(graph):
    run = Run(build("gradient-tracking", {"gamma": 0.15}), "quadratic", graph=graph)
    run.rounds(600)
    assert np.allclose(run.states().x, lowest(run), atol=1e-6)


def test_the_mean_of_what_nodes_track_is_the_mean_gradient_in_every_round():
    run = Run(build("gradient-tracking", {"gamma": 0.02}), graph={"name": "exponential", "loss": 0.4})
    for _ in range(10):
        run.rounds(1)
        client = run.states()
        assert np.allclose(client.s.mean(axis=0), gradients(run, client.x).mean(axis=0), rtol=1e-11)


def test_one_node_is_gradient_descent():
    data = quadratics(*systems(1, N))
    one = Run(build("gradient-tracking", {"gamma": 0.1}), "quadratic", data=data, graph="ring")
    other = Run(build("gd", {"gamma": 0.1}), "quadratic", data=data)
    assert np.allclose(one.rounds(30), other.rounds(30), rtol=1e-12)


@pytest.mark.parametrize("graph", ["ring", "torus", "complete"])
def test_quadratics_of_equal_curvature_blow_up_beyond_twice_the_default_step(graph):
    data = quadratics(np.tile(np.eye(3), (M, 1, 1)), np.random.default_rng(0).standard_normal((M, 3)))
    gamma = Run(build("gradient-tracking"), "quadratic", data=data, graph=graph).server.gamma
    below, above = (
        Run(build("gradient-tracking", {"gamma": factor * gamma}), "quadratic", data=data, graph=graph)
        for factor in (1.9, 2.1)
    )
    start = np.ptp(below.states().s)
    below.rounds(300)
    above.rounds(300)
    assert np.ptp(below.states().s) < 0.1 * start
    assert np.ptp(above.states().s) > 10 * start
