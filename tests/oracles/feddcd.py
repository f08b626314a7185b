"""FedDCD: dual coordinate descent over the chosen clients, exact or inexact.

Source: Z. Fan, H. Fang and M. P. Friedlander, "A dual approach for federated learning", 2022, arXiv 2201.11183,
Algorithm 1, equations (1), (2), (7), with Λ = I/α. The recorded model is the mean of the round's w_i.
"""

from __future__ import annotations

import numpy as np

from .dual_oracle import NEWTON, conjugates, constants, solve
from .problems import trajectory, zeros


def run(clients, selections, *, eta=1.0, solver=NEWTON, dual=False):
    alpha, beta = constants(clients)
    y, w = zeros(clients), zeros(clients)
    models, duals = [np.zeros(clients[0].n)], [conjugates(clients, y)]
    for chosen in selections:
        share = (len(chosen) - 1) / (len(clients) - 1)
        for i in chosen:
            w[i] = solve(clients[i], y[i], w[i], solver, alpha, beta, share)  # (1), (7)
        mean = sum(w[i] for i in chosen) / len(chosen)
        for i in chosen:
            y[i] = y[i] - eta * alpha * (w[i] - mean)  # (2)
        models.append(mean)
        duals.append(conjugates(clients, y))
    return trajectory(clients, models, **({"dual_objective": np.array(duals)} if dual else {}))
