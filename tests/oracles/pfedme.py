"""pFedMe with full batches: personal models by local epochs; each client's model steps towards its personal one.

Source: C. T. Dinh, N. H. Tran and T. D. Nguyen, "Personalized federated learning with Moreau envelopes", 2020, arXiv
2006.08848, Algorithm 1 with one local round, as compared in S. Zhu et al., 2023, arXiv 2311.06756, section 5: the
server averages the last w_i of all m clients, and θ_i is kept over rounds.
"""

from __future__ import annotations

import numpy as np

from .problems import mean_value, trajectory, zeros


def run(clients, selections, *, lam=5.0, eta=0.5, lr=0.01, epochs=5, weight_decay=0.0):
    m = len(clients)
    w = np.zeros(clients[0].n)
    theta, local = zeros(clients), zeros(clients)
    models, personal = [w], [mean_value(clients, theta)]
    for chosen in selections:
        for i in chosen:
            for _ in range(epochs):
                slope = clients[i].gradient(theta[i]) + weight_decay * theta[i]
                theta[i] = theta[i] - lr * (slope + lam * (theta[i] - w))
            local[i] = w - eta * lam * (w - theta[i])
        w = sum(local) / m
        models.append(w)
        personal.append(mean_value(clients, theta))
    return trajectory(clients, models, personal_objective=np.array(personal), personal=np.array(theta))
