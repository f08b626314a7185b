"""SCAFFOLD: its box, and what control variates are for."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.scaffold import Scaffold
from mpifed.algorithms.step_sizes import Constant, Log2
from mpifed.federation.participation.selection import Uniform
from tests.helpers.algorithm_cases import CHOSEN
from tests.helpers.algorithm_runs import M, N, Run, gradients, minimiser


def test_scaffold_is_its_box_client_by_client():
    """Algorithm 1 of Karimireddy et al. with option II; Σγ of the round's own steps."""
    k0, lr = 3, 0.7
    run = Run(Scaffold(k0=k0, step=Log2(a=0.02), server_lr=lr))
    x, c, own, k = np.zeros(N), np.zeros(N), np.zeros((M, N)), 0
    for _ in range(5):
        model, dy, dc = run.rounds(1)[-1], [], []
        gammas = [0.02 / np.log2(k + j + 2) for j in range(k0)]
        for i in run.fed.selected:
            (A, b), y = run.samples()[i], x
            for gamma in gammas:
                y = y - gamma * (A.T @ (A @ y - b) / len(A) - own[i] + c)
            new = own[i] - c + (x - y) / sum(gammas)
            dy.append(y - x)
            dc.append(new - own[i])
            own[i] = new
        x, c, k = x + lr * np.mean(dy, axis=0), c + CHOSEN / M * np.mean(dc, axis=0), k + k0
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)
        assert np.allclose(run.server.c, c, rtol=1e-10, atol=1e-12)
        assert np.allclose(run.states().c, own, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("options", [{}, {"batch_size": 4}, {"batch_size": 3, "epochs": 2}], ids=str)
def test_the_control_variate_of_scaffold_is_the_mean_of_those_of_all_clients(options):
    run = Run(Scaffold(step=Constant(a=0.01), **options))
    run.rounds(12)
    assert np.allclose(run.server.c, run.states().c.mean(axis=0), rtol=1e-12, atol=1e-12)


def test_scaffold_with_everyone_ends_at_the_minimiser_where_fedavg_does_not():
    everyone = Uniform(share=1.0)
    scaffold = Run(Scaffold(k0=5, step=Constant(a=0.02)), selection=everyone)
    fedavg = Run(FedAvg(k0=5, step=Constant(a=0.02)), selection=everyone)
    assert np.allclose(scaffold.rounds(400)[-1], minimiser(scaffold), rtol=1e-6, atol=1e-8)
    assert np.linalg.norm(fedavg.rounds(400)[-1] - minimiser(fedavg)) > 1e-3


def test_scaffold_stays_where_its_control_variates_are_the_gradients():
    run = Run(Scaffold(step=Constant(a=0.02)))
    x = minimiser(run)
    run.hosts[0].state.c[:] = gradients(run, x)[run.hosts[0].order]
    run.server = run.server._replace(x=x)
    assert np.allclose(run.rounds(5), x, rtol=1e-10, atol=1e-11)
    assert np.allclose(run.states().c, gradients(run, x), atol=1e-10)
