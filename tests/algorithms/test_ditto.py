"""Ditto: personal models beside FedAvg, from local training to the server's model."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.ditto import Ditto
from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.step_sizes import Constant
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import Uniform
from tests.helpers.algorithm_runs import Run, build, gradients, minimiser, trained_alone

EVERYONE = Uniform(share=1.0)


@pytest.mark.parametrize("options", [{}, {"aggregate": "all"}, {"epochs": 2, "batch_size": 5}], ids=str)
def test_the_model_of_the_server_is_that_of_fedavg_to_the_bit(options):
    assert Run(Ditto(**options)).rounds(5).tobytes() == Run(FedAvg(**options)).rounds(5).tobytes()


def test_without_the_pull_it_is_local_training():
    run = Run(Ditto(lam=0.0, lr=0.02, inner=3))
    theta = trained_alone(run, rounds=5, step=0.02, count=3)
    assert np.allclose(run.states().theta, theta, rtol=1e-12, atol=1e-14)


def test_with_a_strong_pull_personal_models_follow_the_model_received():
    run = Run(Ditto(lam=1e8, lr=1e-8), selection=EVERYONE)
    received = run.rounds(4)[-2]
    assert np.allclose(run.states().theta, received, rtol=0, atol=1e-7)


def test_personal_models_end_at_their_proximal_points_of_the_minimiser():
    """∇f_i(θ_i) + λ(θ_i − x*) = 0 where FedAvg of everyone with one step, gradient descent, has found x*."""
    run = Run(Ditto(k0=1, step=Constant(a=0.1), lam=0.7, lr=0.03), selection=EVERYONE)
    run.rounds(1500)
    x, theta = minimiser(run), run.states().theta
    assert np.allclose(run.server.x, x, rtol=1e-8, atol=1e-8)
    assert np.abs(gradients(run, theta) + 0.7 * (theta - x)).max() < 1e-8


@pytest.mark.parametrize("options", [{"lam": -0.1}, {"lr": 0.0}, {"inner": 0}], ids=str)
def test_options_that_make_no_sense_are_refused(options):
    ((key, value),) = options.items()
    with pytest.raises(UserError, match=rf"^algorithm\.{key} = {value} is wrong: it must be"):
        build("ditto", options)
