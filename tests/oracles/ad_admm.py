"""AD-ADMM: consensus ADMM in which the master goes on with the workers that have arrived.

Source: T.-H. Chang et al., "Asynchronous distributed ADMM for large-scale optimization, Part I", 2016, arXiv
1509.02597, with h = 0, from memory: a worker minimises f_i(x) + ⟨λ_i, x⟩ + (ρ/2)‖x − x̂₀‖² at the x̂₀ that it was sent,
and moves its λ_i; the master minimises its part of the augmented Lagrangian of all m workers with (γ/2)‖x₀ − x₀ᵏ‖².
Subproblems are solved by Newton's method with dense matrices. ρ is a quarter of max r_i unless it is given.
"""

from __future__ import annotations

import numpy as np

from .problems import trajectory, zeros


def run(clients, selections, *, rho=None, gamma=0.0):
    m, n = len(clients), clients[0].n
    rho = max(client.lipschitz for client in clients) / 4 if rho is None else rho
    x, lam = zeros(clients), zeros(clients)
    models = [np.zeros(n)]
    for chosen in selections:
        for i in chosen:
            center = models[-1]
            x[i] = minimiser(clients[i], lam[i], rho, center, x[i])
            lam[i] = lam[i] + rho * (x[i] - center)
        pull = sum(rho * x[i] + lam[i] for i in range(m))
        models.append((pull + gamma * models[-1]) / (m * rho + gamma))
    return trajectory(clients, models)


def minimiser(client, lam, rho, center, x):
    """argmin f(x) + ⟨lam, x⟩ + (rho/2)‖x − center‖²."""
    for _ in range(50):
        slope = client.gradient(x) + lam + rho * (x - center)
        if np.linalg.norm(slope) < 1e-13:
            break
        x = x - np.linalg.solve(client.hessian(x) + rho * np.eye(client.n), slope)
    return x
