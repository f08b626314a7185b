"""FedADMM: chosen clients solve their augmented Lagrangian inexactly, the server averages all last uploads.

Source: S. Zhou and G. Y. Li, "Federated learning via inexact ADMM", 2022, arXiv 2204.10607, Algorithm 1, equations
(3.3)–(3.8) and the inner solver (3.12); constants of section 5.2: α_i = 1/m, π⁰ = 0, σ_i = r0 r_i/m, ε_i⁰ = k0².
The inner test (3.5) takes the gradient at the new point; at least one and at most ``inner_max`` steps are made.
"""

from __future__ import annotations

import numpy as np

from .problems import trajectory, zeros


def run(clients, selections, *, k0=10, r0=0.2, nu=0.95, eps0=None, inner_max=3):
    m = len(clients)
    alpha = 1 / m
    sigma = [r0 * client.lipschitz / m for client in clients]
    eps = [k0**2 if eps0 is None else eps0 for _ in clients]
    pi, z = zeros(clients), zeros(clients)
    w = np.zeros(clients[0].n)
    models = [w]
    for chosen in selections:
        for i in chosen:
            for _ in range(k0):
                eps[i] = nu * eps[i]  # (3.4)
                own = solve(clients[i], alpha, sigma[i], pi[i], w, eps[i], inner_max)
                pi[i] = pi[i] + sigma[i] * (own - w)  # (3.6)
                z[i] = sigma[i] * own + pi[i]  # (3.7)
        w = sum(z) / sum(sigma)  # (3.3)
        models.append(w)
    return trajectory(clients, models)


def solve(client, alpha, sigma, pi, w, eps, inner_max):
    """Steps (3.12) from w until (3.5) holds."""
    v, g = w, alpha * client.gradient(w)
    for _ in range(inner_max):
        v = (alpha * client.lipschitz * v + sigma * w - (g + pi)) / (alpha * client.lipschitz + sigma)  # (3.12)
        g = alpha * client.gradient(v)
        residual = g + pi + sigma * (v - w)
        if residual @ residual <= eps:  # (3.5)
            break
    return v
