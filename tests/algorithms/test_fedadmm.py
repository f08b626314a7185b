"""FedADMM: where it ends, and when its inner solver stops."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedadmm import FedADMM
from tests.helpers.algorithm_cases import CHOSEN
from tests.helpers.algorithm_runs import M, N, Run, gradients, minimiser


def test_fedadmm_ends_at_the_minimiser_and_its_duals_at_the_gradients():
    run = Run(FedADMM(k0=5, r0=0.5))
    x = run.rounds(800)[-1]
    assert np.allclose(x, minimiser(run), rtol=1e-6, atol=1e-8)
    assert np.allclose(run.states().pi, -gradients(run, x) / M, rtol=1e-5, atol=1e-8)


def test_fedadmm_stops_an_inner_solve_by_the_gradient_where_it_is():
    """(3.3)–(3.8) with (3.12) and the test (3.5), client by client."""
    r0, nu, most, k0 = 0.4, 0.8, 6, 2
    run = Run(FedADMM(k0=k0, r0=r0, nu=nu, eps0=1e-3, inner_max=most))
    r = [np.linalg.norm(A, 2) ** 2 / len(A) / M for A, _ in run.samples()]
    sigma = np.multiply(r0, r)
    w, pi, z, eps, taken = np.zeros(N), np.zeros((M, N)), np.zeros((M, N)), np.full(M, 1e-3), []
    for _ in range(5):
        model = run.rounds(1)[-1]
        for i in run.fed.selected:
            A, b = run.samples()[i]
            for _ in range(k0):
                v, steps, residual, eps[i] = w, 0, np.inf, nu * eps[i]
                while steps < most and np.sum(np.square(residual)) > eps[i]:
                    g = A.T @ (A @ v - b) / len(A) / M
                    v, steps = (r[i] * v + sigma[i] * w - g - pi[i]) / (r[i] + sigma[i]), steps + 1
                    residual = A.T @ (A @ v - b) / len(A) / M + pi[i] + sigma[i] * (v - w)
                pi[i] += sigma[i] * (v - w)
                taken.append(steps)
            z[i] = sigma[i] * v + pi[i]
        w = z.sum(axis=0) / sigma.sum()
        assert np.allclose(model, w, rtol=1e-10, atol=1e-12)
    assert run.states().steps.sum() == sum(taken)
    assert len(set(taken)) >= 3


@pytest.mark.parametrize("most", [1, 2, 5])
def test_fedadmm_takes_at_most_inner_max_steps_and_fewer_where_it_is_near(most):
    run = Run(FedADMM(k0=3, inner_max=most, eps0=1e9, nu=0.5))
    run.rounds(4)
    assert run.states().steps.sum() == 4 * CHOSEN * 3  # whoever is near from the start takes one
    run = Run(FedADMM(k0=3, inner_max=most, eps0=0.0))
    run.rounds(4)
    assert run.states().steps.sum() == 4 * CHOSEN * 3 * most


def test_fedadmm_shrinks_eps_of_those_who_train_before_every_iteration():
    run = Run(FedADMM(k0=3, nu=0.9, eps0=2.0))
    run.rounds(4)
    assert np.allclose(run.states().eps, 2.0 * 0.9 ** (3 * run.fed.times_selected))


def test_inner_steps_are_recorded_as_a_total():
    """One inner step an iteration of every selected client: 4 of 8 clients, k0 = 3."""
    study = {
        "algorithm": {"name": "fedadmm", "k0": 3, "inner_max": 1},
        "data": {"clients": 8, "features": 5},
        "rounds": 3,
        "stop": {"gradient": 0.0},
    }
    assert mpifed.run(study).rounds["inner_steps"].tolist() == [0, 12, 24, 36]
