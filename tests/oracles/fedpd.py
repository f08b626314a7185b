"""FedPD: clients descend on their augmented Lagrangian from the global model and update their dual.

Source: X. Zhang et al., "FedPD: A federated learning framework with optimal rates and adaptivity to non-IID data",
2020, arXiv 2005.11418, oracle choice I, option I. Followed here: as compared in S. Zhou and G. Y. Li, "FedGiA", 2022,
arXiv 2205.01438, section V.D: every local iteration descends from the global x, the dual is updated in every
iteration, and the server averages w_i + eta λ_i of all m clients, of unselected ones the last.
"""

import numpy as np

from .problems import zeros
from .step_sizes import LOG2, step_size


def run(clients, selections, *, k0=5, eta=1.0, inner=5, step=LOG2, scale="1"):
    m = len(clients)
    factor = 1.0 if scale == "1" else 1 / m
    x = np.zeros(clients[0].n)
    w, dual = zeros(clients), zeros(clients)
    yield x
    for t, chosen in enumerate(selections):
        for i in chosen:
            for k in range(t * k0, (t + 1) * k0):
                gamma = step_size(step, k, k0, clients[i].d)
                v = x
                for _ in range(inner):
                    v = v - gamma * (factor * clients[i].gradient(v) + dual[i] + (v - x) / eta)
                w[i] = v
                dual[i] = dual[i] + (w[i] - x) / eta
        x = sum(w[i] + eta * dual[i] for i in range(m)) / m
        yield x
