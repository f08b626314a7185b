"""FedADMM for networks: its box, and where it ends."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fedadmm_deep import FedADMMDeep
from mpifed.federation.participation.selection import Uniform
from tests.helpers.algorithm_runs import M, N, Run, gradients, minimiser


@pytest.mark.parametrize("rho", [0.5, 3.0])
def test_deep_fedadmm_is_its_box_client_by_client(rho):
    """θ_i by gradient steps from w on the augmented Lagrangian; π_i += ρ(θ_i − w); the mean of all θ_i + π_i/ρ."""
    lr, epochs, decay = 0.02, 4, 0.01
    run = Run(FedADMMDeep(rho=rho, lr=lr, epochs=epochs, batch_size=0, weight_decay=decay))
    w, pi, z = np.zeros(N), np.zeros((M, N)), np.zeros((M, N))
    for _ in range(5):
        model = run.rounds(1)[-1]
        for i in run.fed.selected:
            theta, dual = w, pi[i].copy()
            A, b = run.samples()[i]
            for _ in range(epochs):
                g = A.T @ (A @ theta - b) / len(A)
                theta = theta - lr * (g + dual + rho * (theta - w) + decay * theta)
            pi[i] += rho * (theta - w)
            z[i] = theta + pi[i] / rho
        w = z.mean(axis=0)
        assert np.allclose(model, w, rtol=1e-10, atol=1e-12)
        assert np.allclose(run.states().pi, pi, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("rho", [0.5, 3.0])
def test_deep_fedadmm_stays_at_the_minimiser_with_the_gradients_as_duals_and_ends_there(rho):
    run = Run(FedADMMDeep(rho=rho, lr=0.02, epochs=5, batch_size=0))
    x, host = minimiser(run), run.hosts[0]
    host.state.pi[:] = -gradients(run, x)[host.order]
    host.state.z[:] = x + host.state.pi / rho
    run.server = run.server._replace(x=x)
    assert np.allclose(run.rounds(5), x, rtol=1e-10, atol=1e-11)
    run = Run(FedADMMDeep(rho=rho, lr=0.02, epochs=5, batch_size=0), selection=Uniform(share=1.0))
    assert np.allclose(run.rounds(600)[-1], x, rtol=1e-6, atol=1e-7)
