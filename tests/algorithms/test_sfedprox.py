"""SFedProx: its box, and SFedAvg as a special case."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.sfedavg import SFedAvg
from mpifed.algorithms.sfedprox import SFedProx
from mpifed.algorithms.step_sizes import Constant, SqrtSamples
from tests.helpers.algorithm_runs import M, N, Run, same


@pytest.mark.parametrize("options", [{}, {"average": "new"}, {"noise": "matched", "epsilon": 50.0}, {"k0": 1}], ids=str)
def test_sfedprox_without_its_term_and_with_one_inner_step_is_sfedavg_to_the_bit(options):
    options = {"noise": "none", "step": Constant(a=0.01), "k0": 3, **options}
    sfedavg, sfedprox = Run(SFedAvg(**options)), Run(SFedProx(mu=0.0, inner=1, **options))
    assert sfedavg.rounds(6).tobytes() == sfedprox.rounds(6).tobytes()
    assert same(sfedavg.states(), sfedprox.states())


@pytest.mark.parametrize("average", ["trained", "new"])
def test_sfedprox_is_its_box_client_by_client(average):
    """(34)–(38) with Algorithm 4: "new" averages the old uploads of the set that is going to train."""
    k0, a, mu, inner = 2, 0.0005, 0.4, 3
    step = Constant(a=0.01) if average == "trained" else SqrtSamples(a=a)
    run = Run(SFedProx(noise="none", average=average, k0=k0, mu=mu, inner=inner, step=step))
    x, z, k = np.zeros(N), np.zeros((M, N)), 0
    for _ in range(5):
        model, chosen = run.rounds(1)[-1], run.fed.selected
        if average == "new":
            x = z[chosen].mean(axis=0)
            assert np.allclose(model, x, rtol=1e-10, atol=1e-12)
        for i in chosen:
            w, (A, b) = x, run.samples()[i]
            for j in range(k0):
                gamma = 0.01 if average == "trained" else a * len(A) / np.sqrt(2 * k0 + (k + j) // k0)
                for _ in range(inner):
                    w = w - gamma * (A.T @ (A @ w - b) / len(A) + mu * (w - x))
            z[i] = w
        k += k0
        if average == "trained":
            x = z[chosen].mean(axis=0)
            assert np.allclose(model, x, rtol=1e-10, atol=1e-12)
        assert np.allclose(run.states().z, z, rtol=1e-10, atol=1e-12)
