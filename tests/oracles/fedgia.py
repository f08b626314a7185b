"""FedGiA: chosen clients take k0 steps of inexact ADMM with one gradient, the others one gradient step.

Source: S. Zhou and G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning", 2022, arXiv 2205.01438,
Algorithm 1, equations (11)–(17); H_i and t of Table III, with the μ/d_i of Example V.3 in Example V.2 too;
σ = t max r_i/m; x_i⁰ = π_i⁰ = 0.
"""

from __future__ import annotations

import math

import numpy as np

from .problems import LeastSquares, trajectory, zeros


def run(clients, selections, *, k0=10, H="diagonal", t=None):
    m, n = len(clients), clients[0].n
    sigma = (table_3(clients) if t is None else t) * max(client.lipschitz for client in clients) / m
    x = np.zeros(n)
    pi, z = zeros(clients), zeros(clients)
    models = [x]
    for chosen in selections:
        for i in range(m):
            g = clients[i].gradient(x) / m
            if i in chosen:
                system = metric(clients[i], H) / m + sigma * np.eye(n)
                for _ in range(k0):
                    own = x - np.linalg.solve(system, g + pi[i])  # (12)
                    pi[i] = pi[i] + sigma * (own - x)  # (13)
                    z[i] = own + pi[i] / sigma  # (14)
            else:
                pi[i] = -g  # (16)
                z[i] = x - g / sigma  # (17)
        x = sum(z) / m  # (11)
        models.append(x)
    return trajectory(clients, models)


def metric(client, H):
    """H_i of Table III."""
    return {
        "gram": client.majorant,
        "diagonal": client.lipschitz * np.eye(client.n),
        "zero": np.zeros((client.n, client.n)),
    }[H]


def table_3(clients):
    """t of Table III; d is the number of all samples."""
    if isinstance(clients[0], LeastSquares):
        return 0.15
    return max(0.025, 4 * math.log(sum(client.d for client in clients)) / clients[0].n)
