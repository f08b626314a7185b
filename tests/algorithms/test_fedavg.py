"""FedAvg: gradient descent, its averages and its steps."""

from __future__ import annotations

import numpy as np

from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.step_sizes import Constant, Log2
from mpifed.federation.participation.selection import Uniform
from tests.helpers.algorithm_runs import M, N, Run, gradients


def test_fedavg_of_everyone_with_one_step_is_gradient_descent():
    run, x = Run(FedAvg(k0=1, step=Constant(a=0.1)), selection=Uniform(share=1.0)), np.zeros(N)
    for model in run.rounds(10):
        x = x - 0.1 * gradients(run, x).mean(axis=0)
        assert np.allclose(model, x, rtol=1e-12, atol=1e-14)


def test_fedavg_over_all_averages_last_models_of_those_not_chosen():
    run = Run(FedAvg(aggregate="all"))
    x = run.rounds(3)[-1]
    assert np.allclose(x, run.states().w.mean(axis=0))
    assert (run.states().w[run.fed.times_selected == 0] == 0).all()


def test_fedavg_counts_its_steps_over_the_whole_run():
    run, x, k = Run(FedAvg(k0=2, step=Log2(a=0.05)), selection=Uniform(share=1.0)), np.zeros(N), 0
    for _ in range(4):
        model, W = run.rounds(1)[-1], np.tile(x, (M, 1))
        for _ in range(2):
            g = np.array([A.T @ (A @ w - b) / len(A) for (A, b), w in zip(run.samples(), W, strict=True)])
            W, k = W - 0.05 / np.log2(k + 2) * g, k + 1
        x = W.mean(axis=0)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)
