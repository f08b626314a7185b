"""FedDCD: dual coordinate descent over the chosen clients, exact or inexact.

Source: Z. Fan, H. Fang and M. P. Friedlander, "A dual approach for federated learning", 2022, arXiv 2201.11183,
Algorithm 1, equations (1), (2), (7), with Λ = I/α or diag(1/α_i). The recorded model is the mean of the round's w_i.
"""

from __future__ import annotations

import numpy as np

from .dual_oracle import NEWTON, alphas, conjugates, constants, solve, step
from .problems import trajectory, zeros


def run(clients, selections, *, eta=1.0, solver=NEWTON, dual=False, scaling="common", schedule=None):
    alpha, beta = constants(clients)
    own = alphas(clients, scaling)
    y, w = zeros(clients), zeros(clients)
    models, duals = [np.zeros(clients[0].n)], [conjugates(clients, y)]
    for t, chosen in enumerate(selections):
        share = (len(chosen) - 1) / (len(clients) - 1)
        for i in chosen:
            w[i] = solve(clients[i], y[i], w[i], solver, alpha, beta, share)  # (1), (7)
        mean = sum(own[i] * w[i] for i in chosen) / sum(own[i] for i in chosen)  # of (2), for Λ = diag(1/own)
        for i in chosen:
            y[i] = y[i] - step(eta, schedule, t) * own[i] * (w[i] - mean)  # (2)
        models.append(mean)
        duals.append(conjugates(clients, y))
    return trajectory(clients, models, **({"dual_objective": np.array(duals)} if dual else {}))
