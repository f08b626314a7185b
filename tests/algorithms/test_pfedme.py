"""pFedMe: its formula."""

from __future__ import annotations

import numpy as np

from tests.helpers.algorithm_runs import M, N, Run, build
from tests.helpers.personal_models import descend


def test_pfedme_is_its_formula_client_by_client():
    """θ_i by gradient steps on f_i(θ) + (λ/2)‖θ − w‖² from its last θ_i; w_i = w − ηλ(w − θ_i); mean over all m."""
    lam, eta, lr, epochs, decay = 2.0, 0.3, 0.01, 3, 0.02
    run = Run(
        build("pfedme", {"lam": lam, "eta": eta, "lr": lr, "epochs": epochs, "batch_size": 0, "weight_decay": decay})
    )
    w, (theta, z) = np.zeros(N), np.zeros((2, M, N))
    for _ in range(6):
        model = run.rounds(1)[-1]
        for i in run.fed.selected:
            theta[i] = descend(run, i, theta[i], w, lam, lr, epochs, decay)
            z[i] = w - eta * lam * (w - theta[i])
        w = z.mean(axis=0)
        assert np.allclose(model, w, rtol=1e-10, atol=1e-12)
        assert np.allclose(run.states().theta, theta, rtol=1e-10, atol=1e-12)
