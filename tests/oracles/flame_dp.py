"""FLAME with full batches and clipped uploads, without noise: u_i = z_i − w is shortened to the length ``clip``.

Source: as for FLAME; the clipping is that of M. Abadi et al., "Deep learning with differential privacy", 2016, arXiv
1607.00133, applied to whole uploads.
"""

from __future__ import annotations

import numpy as np

from .problems import mean_value, trajectory, zeros


def run(clients, selections, *, clip, noise_multiplier, rho=0.01, lam=5.0, lr=0.01, epochs=5):
    assert noise_multiplier == 0
    m = len(clients)
    w = np.zeros(clients[0].n)
    theta, local, pi, z = zeros(clients), zeros(clients), zeros(clients), zeros(clients)
    models, personal = [w], [mean_value(clients, theta)]
    for chosen in selections:
        for i in chosen:
            for _ in range(epochs):
                theta[i] = theta[i] - lr * (clients[i].gradient(theta[i]) + lam * (theta[i] - w))
            local[i] = (lam / m * theta[i] + rho * w - pi[i]) / (lam / m + rho)
            pi[i] = pi[i] + rho * (local[i] - w)
            u = local[i] + pi[i] / rho - w
            z[i] = w + u * min(1.0, (1 - 1e-9) * clip / max(np.linalg.norm(u), 1e-300))  # a hair below the bound
        w = sum(z) / m
        models.append(w)
        personal.append(mean_value(clients, theta))
    return trajectory(clients, models, personal_objective=np.array(personal), personal=np.array(theta))
