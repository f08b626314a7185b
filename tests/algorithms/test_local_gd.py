"""Local gradient descent: what it is one case of, and where it ends."""

from __future__ import annotations

import numpy as np

from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.gd import GD
from mpifed.algorithms.local_gd import LocalGD
from mpifed.algorithms.step_sizes import Constant
from mpifed.federation.participation.selection import All
from tests.helpers.algorithm_runs import Run, minimiser, quadratics, systems


def test_it_is_fedavg_with_full_gradients_and_a_constant_step_to_the_bit():
    plain, averaging = Run(LocalGD(k0=4, gamma=0.01)), Run(FedAvg(k0=4, step=Constant(a=0.01)))
    assert plain.rounds(6).tobytes() == averaging.rounds(6).tobytes()


def test_with_one_local_step_it_is_gradient_descent():
    one, descent = Run(LocalGD(k0=1)), Run(GD())
    assert np.allclose(one.rounds(10), descent.rounds(10), rtol=1e-13, atol=1e-14)


def test_its_limit_on_quadratics_is_the_one_in_closed_form_and_not_the_minimiser():
    """With M_i = I − (I − γQ_i)^k0 and x_i the minimiser of f_i:  (Σ M_i) x = Σ M_i x_i."""
    k0, gamma = 4, 0.02
    Q, b = systems(5, 4, spread=2.0)
    run = Run(LocalGD(k0=k0, gamma=gamma), "quadratic", selection=All(), data=quadratics(Q, b))
    M = np.eye(4) - np.linalg.matrix_power(np.eye(4) - gamma * Q, k0)
    limit = np.linalg.solve(M.sum(axis=0), np.einsum("ijk,ik->j", M, np.linalg.solve(Q, b[..., None])[..., 0]))
    assert np.allclose(run.rounds(3000)[-1], limit, rtol=1e-9)
    optimum = np.linalg.solve(Q.sum(axis=0), b.sum(axis=0))
    assert np.linalg.norm(limit - optimum) > 1e-3 * np.linalg.norm(optimum)


def test_smaller_steps_end_nearer_to_the_minimiser():
    far, near = (Run(LocalGD(k0=5, gamma=gamma), selection=All()) for gamma in (0.04, 0.004))
    distances = [np.linalg.norm(run.rounds(4000)[-1] - minimiser(run)) for run in (far, near)]
    assert 0 < distances[1] < 0.2 * distances[0]
