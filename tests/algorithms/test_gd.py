"""Gradient descent: its step, its limit, and which problems need to be told the step size."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.gd import GD
from mpifed.core.errors import UserError
from mpifed.experiment.config import experiment
from mpifed.experiment.matching import matrix, refuse_mismatch
from mpifed.federation.participation.selection import All
from tests.helpers.algorithm_runs import N, Run, build, gradients, minimiser


def largest_curvature(run):
    return max(np.linalg.norm(A, 2) ** 2 / len(A) for A, _ in run.samples())


@pytest.mark.parametrize("gamma", [None, 0.05])
def test_a_round_is_a_step_with_the_mean_gradient_of_those_selected(gamma):
    run, x = Run(GD(gamma=gamma)), np.zeros(N)
    for _ in range(4):
        model = run.rounds(1)[-1]
        x = x - (gamma or 1 / largest_curvature(run)) * gradients(run, x)[run.fed.selected].mean(axis=0)
        assert np.allclose(model, x, rtol=1e-12, atol=1e-14)


def test_with_all_clients_it_goes_down_in_every_round_and_ends_at_the_minimiser():
    run = Run(GD(), selection=All())
    values = [run.measure()[0]]
    for _ in range(5):
        run.rounds(1)
        values.append(run.measure()[0])
    assert (np.diff(values) < 0).all()
    assert np.allclose(run.rounds(3000)[-1], minimiser(run), rtol=1e-8, atol=1e-8)


def test_a_problem_that_tells_no_curvature_needs_a_step_size():
    config = experiment({"algorithm": "gd", "problem": "mlp"})
    with pytest.raises(UserError, match=r"^gd cannot run on mlp: it needs lipschitz \(.*; with algorithm\.gamma it "):
        refuse_mismatch(config.algorithm, config.problem)
    given = experiment({"algorithm": {"name": "gd", "gamma": 0.1}, "problem": "mlp"})
    refuse_mismatch(given.algorithm, given.problem)
    assert any(line.startswith("gd with gamma set does not need lipschitz (") for line in matrix().options)


@pytest.mark.parametrize("name", ["gd", "local-gd"])
@pytest.mark.parametrize("value", [0, -1.0, "much"])
def test_a_step_size_that_is_not_above_0_is_refused(name, value):
    with pytest.raises(UserError, match=r"^algorithm\.gamma = .* is wrong: it must be a number"):
        build(name, {"gamma": value})
