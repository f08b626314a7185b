"""FedProx: its proximal term and its inner steps."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.fedprox import FedProx
from mpifed.algorithms.step_sizes import Constant, Log2
from tests.helpers.algorithm_runs import M, N, Run, same


@pytest.mark.parametrize("options", [{}, {"aggregate": "all"}, {"scale": "1/m", "k0": 1}], ids=str)
def test_fedprox_without_its_term_and_with_one_inner_step_is_fedavg_to_the_bit(options):
    fedavg, fedprox = Run(FedAvg(**options)), Run(FedProx(mu=0.0, inner=1, **options))
    assert fedavg.rounds(6).tobytes() == fedprox.rounds(6).tobytes()
    assert same(fedavg.states(), fedprox.states())


def test_fedprox_starts_an_iteration_where_the_last_one_ended():
    a, mu = 0.004, 0.5
    run, x = Run(FedProx(k0=3, inner=2, mu=mu, step=Constant(a=a))), np.zeros(N)
    for _ in range(3):
        model, ends = run.rounds(1)[-1], []
        for i in run.fed.selected:
            (A, b), w = run.samples()[i], x
            for _ in range(3 * 2):
                w = w - a * (A.T @ (A @ w - b) / len(A) + mu * (w - x))
            ends.append(w)
        x = np.mean(ends, axis=0)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)


def test_fedprox_of_fedadmm_goes_on_from_its_own_model():
    """(3.15) and (3.17) of fedadmm with the sign corrected, client by client: w_i is never set to the mean."""
    a, mu, k0, k = 0.02, 2.0, 3, 0
    options = {"scale": "1/m", "inner": 1, "begin": "own", "mu": mu, "k0": k0, "step": Log2(a=a)}
    run, x, w = Run(FedProx(**options)), np.zeros(N), np.zeros((M, N))
    for _ in range(5):
        model = run.rounds(1)[-1]
        for _ in range(k0):
            gamma = a / np.log2(k + 2)
            for i in run.fed.selected:
                A, b = run.samples()[i]
                w[i] = w[i] - gamma * mu * (w[i] - x) - gamma / M * (A.T @ (A @ w[i] - b) / len(A))
            k += 1
        x = w[run.fed.selected].mean(axis=0)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)
    assert np.allclose(run.states().w, w, rtol=1e-10, atol=1e-12)
    assert not np.allclose(w[run.fed.selected], x, atol=1e-6)
