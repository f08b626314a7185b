"""EXTRA ends at the minimiser of the mean of all objectives."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from tests.helpers.algorithm_runs import N, Run, build, lowest, quadratics, systems


@pytest.mark.parametrize("graph", ["ring", "torus", "star", "complete", "exponential"])
def test_every_node_ends_at_the_minimiser(graph):
    run = Run(build("extra"), "quadratic", graph=graph)
    run.rounds(500)
    assert np.allclose(run.states().x, lowest(run), atol=1e-6)


def test_its_first_two_rounds_are_those_of_decentralised_gradient_descent():
    """It adds (W̃ − W)(x⁰ + x¹ + …), and the first term is 0 because all nodes begin at the same point."""
    one, other = (Run(build(name, {"gamma": 0.02}), graph="ring") for name in ("extra", "dgd"))
    one.rounds(2)
    other.rounds(2)
    assert np.allclose(one.states().x, other.states().x, rtol=1e-12)
    one.rounds(1)
    other.rounds(1)
    assert not np.allclose(one.states().x, other.states().x, rtol=1e-3)


def test_one_node_is_gradient_descent():
    """x⁺ = 2x − x⁻ − γ(∇f(x) − ∇f(x⁻)), which repeats the step of the round before and its change."""
    data = quadratics(*systems(1, N))
    one = Run(build("extra", {"gamma": 0.1}), "quadratic", data=data, graph="ring")
    other = Run(build("gd", {"gamma": 0.1}), "quadratic", data=data)
    assert np.allclose(one.rounds(30), other.rounds(30), rtol=1e-11)


@pytest.mark.parametrize(
    ("graph", "key"),
    [({"name": "ring", "loss": 0.1}, "loss = 0.1"), ({"name": "erdos-renyi", "redraw": True}, "redraw = true")],
)
def test_a_graph_that_changes_is_refused(graph, key):

    with pytest.raises(UserError, match=rf"^graph\.{key} is wrong: extra needs a graph that does not change, because"):
        mpifed.run({"algorithm": "extra", "graph": graph, "rounds": 1})
