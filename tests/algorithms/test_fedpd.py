"""FedPD: its start and its average."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fedpd import FedPD
from mpifed.algorithms.step_sizes import Constant
from tests.helpers.algorithm_runs import M, N, Run


@pytest.mark.parametrize("scale", ["1", "1/m"])
def test_fedpd_descends_from_the_global_model_and_averages_everyone(scale):
    """w_i by ``inner`` steps from x on f_i(v) + ⟨λ_i, v − x⟩ + ‖v − x‖²/(2 eta);  λ_i += (w_i − x)/eta."""
    a, eta, factor = 0.05, 0.7, 1 if scale == "1" else 1 / M
    run = Run(FedPD(k0=2, inner=3, eta=eta, step=Constant(a=a), scale=scale))
    x, dual, z = np.zeros(N), np.zeros((M, N)), np.zeros((M, N))
    for _ in range(4):
        model = run.rounds(1)[-1]
        for i in run.fed.selected:
            A, b = run.samples()[i]
            for _ in range(2):
                v = x
                for _ in range(3):
                    v = v - a * (factor * A.T @ (A @ v - b) / len(A) + dual[i] + (v - x) / eta)
                dual[i] += (v - x) / eta
            z[i] = v + eta * dual[i]
        x = z.mean(axis=0)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)
