"""FedEPM: its box and its default parameters."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.algorithms.fedepm import FedEPM
from tests.helpers.algorithm_cases import CASES, CHOSEN, PROBLEMS, Still, members
from tests.helpers.algorithm_runs import SOURCES, M, N, Run


@pytest.mark.parametrize("step_scale", ["samples", "one"])
def test_fedepm_is_its_box_client_by_client(step_scale):
    """(19)–(22) with one gradient a round at x; μ_i grows with k over the whole run and with ‖w_i − x‖²."""
    k0, mu0, alpha, c, lam, eta = 3, 200.0 if step_scale == "samples" else 25.0, 1.02, 0.1, 0.05, 0.2
    run = Run(FedEPM(k0=k0, mu0=mu0, alpha=alpha, c=c, lam=lam, eta=eta, step_scale=step_scale, noise="none"))
    w, z, x, k = np.zeros((M, N)), np.zeros((M, N)), np.zeros(N), 0
    for _ in range(6):
        model = run.rounds(1)[-1]
        for i in run.fed.selected:
            A, b = run.samples()[i]
            g = A.T @ (A @ x - b) / len(A)
            for j in range(k0):
                mu = (
                    mu0
                    * (1 + c * np.sum((w[i] - x) ** 2))
                    * alpha ** (k + j + 1)
                    / (len(A) if step_scale == "samples" else 1)
                )
                v = mu * (w[i] - x) - g
                w[i] = x + np.sign(v) * np.maximum(abs(v) - lam, 0) / (eta + mu)
            z[i] = w[i]
        k += k0
        s = lam / eta * (2 * np.arange(M + 1)[:, None] - M) / M
        x = np.median(np.concatenate([z, z.mean(axis=0) + s]), axis=0)  # errata to (15)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)
        assert np.allclose(run.states().w, w, rtol=1e-10, atol=1e-12)


def test_fedepm_takes_lambda_and_eta_from_m_and_the_share():
    run = Run(FedEPM(noise="none"))
    assert np.isclose(run.server.eta, (0.02 * M + 1) * (CHOSEN / M + 0.1) * 1e-5, rtol=1e-12)
    assert np.isclose(run.server.lam, run.server.eta / 2, rtol=1e-12)


@members(
    [
        case
        for case in CASES
        if case[0] not in PROBLEMS
        and not case[1].get("weight_decay")
        and case[1].get("noise", "none") == "none"
        and not {"epsilon", "noise_multiplier"} & case[1].keys()
    ]
)
def test_where_nothing_pulls_the_model_of_the_start_stays(algorithm):
    """Also for the share of those who have not trained yet."""
    run = Run(algorithm, Still(), data=SOURCES["least-squares"].load(0, "float64"))
    assert np.allclose(run.server.x, np.linspace(-1, 2, N), rtol=1e-14)
    assert np.allclose(run.rounds(4), np.linspace(-1, 2, N), rtol=1e-12)
