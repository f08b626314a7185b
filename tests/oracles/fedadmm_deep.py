"""FedADMM for networks, with full batches: clients descend on their augmented Lagrangian, all are averaged.

Source: Y. Gong, Y. Li and N. M. Freris, "FedADMM: A robust federated deep learning framework with adaptivity to system
heterogeneity", 2022, arXiv 2204.03529, as compared in S. Zhu et al., "Personalized federated learning via ADMM with
Moreau envelope", 2023, arXiv 2311.06756, section 5: local training starts at the broadcast model, the upload is
θ + π/rho, and the server averages the last uploads of all m clients.
"""

from __future__ import annotations

import numpy as np

from .problems import trajectory, zeros


def run(clients, selections, *, rho=0.01, lr=0.01, epochs=5, weight_decay=0.0):
    m = len(clients)
    w = np.zeros(clients[0].n)
    pi, upload = zeros(clients), zeros(clients)
    models = [w]
    for chosen in selections:
        for i in chosen:
            theta = w
            for _ in range(epochs):
                slope = clients[i].gradient(theta) + weight_decay * theta
                theta = theta - lr * (slope + pi[i] + rho * (theta - w))
            pi[i] = pi[i] + rho * (theta - w)
            upload[i] = theta + pi[i] / rho
        w = sum(upload) / m
        models.append(w)
    return trajectory(clients, models)
