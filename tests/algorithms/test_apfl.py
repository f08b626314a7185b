"""APFL: personal models between FedAvg's local models and local training."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.apfl import APFL
from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.step_sizes import Constant
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import Uniform
from tests.helpers.algorithm_runs import Run, build, gradients, minimiser, trained_alone


def personal(run):
    return run.fed.inspect(run.algorithm.personalised)


@pytest.mark.parametrize("options", [{}, {"aggregate": "all"}, {"epochs": 2, "batch_size": 5}], ids=str)
def test_the_model_of_the_server_is_that_of_fedavg_to_the_bit(options):
    assert Run(APFL(**options)).rounds(5).tobytes() == Run(FedAvg(**options)).rounds(5).tobytes()


def test_without_a_share_of_their_own_personal_models_are_the_local_ones_of_fedavg():
    mine, theirs = Run(APFL(alpha=0.0)), Run(FedAvg(aggregate="all"))
    mine.rounds(1), theirs.rounds(1)
    assert (mine.fed.selected == theirs.fed.selected).all()
    assert np.array_equal(personal(mine), theirs.states().w)


def test_with_nothing_else_it_is_local_training():
    run = Run(APFL(alpha=1.0, step=Constant(a=0.02), k0=3))
    theta = trained_alone(run, rounds=5, step=0.02, count=3)
    assert np.allclose(personal(run), theta, rtol=1e-12, atol=1e-14)


def test_own_models_make_up_for_what_the_common_one_misses():
    """∇f_i(α v_i + (1 − α) x) falls to 0 for every client, at the minimiser x of their mean, where no ∇f_i is 0."""
    run = Run(APFL(alpha=0.6, k0=1, step=Constant(a=0.1)), selection=Uniform(share=1.0))
    run.rounds(1500)
    assert np.allclose(run.server.x, minimiser(run), rtol=1e-8, atol=1e-8)
    mixed = run.algorithm.mixture(run.states().v, run.server.x)
    own, common = (np.linalg.norm(gradients(run, point), axis=1) for point in (mixed, run.server.x))
    assert common.min() > 0.1
    assert (own < 0.1 * common).all()
    assert np.median(own / common) < 1e-3


@pytest.mark.parametrize("alpha", [-0.1, 1.5])
def test_a_share_outside_zero_and_one_is_refused(alpha):
    with pytest.raises(UserError, match=rf"^algorithm\.alpha = {alpha} is wrong: it must be"):
        build("apfl", {"alpha": alpha})
