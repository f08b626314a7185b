"""LT-ADMM with exact gradients: every node keeps one auxiliary vector for each edge.

Source: X. Ren, N. Bastianello, K. H. Johansson, T. Parisini, "Communication-efficient stochastic distributed learning",
2025, arXiv 2501.13516, as the library decent_bench has it, with ρ = 1 and relaxation 1/2;
its β is 2 ``beta``. z_ij⁰ = x⁰ = 0.
"""

import numpy as np

from .graphs import edges
from .problems import zeros


def run(clients, rounds, graph, *, tau=5, gamma=None, beta=None):
    m = len(clients)
    pairs = edges(graph, m, 0, 1)
    pairs = pairs + [(j, i) for i, j in pairs]
    degree = [sum(1 for i, _ in pairs if i == k) for k in range(m)]
    gamma = 1 / (2 * tau * max(client.lipschitz for client in clients)) if gamma is None else gamma
    beta = 1 / (2 * tau * (max(degree) + 1)) if beta is None else beta
    x, z = zeros(clients), {pair: np.zeros(clients[0].n) for pair in pairs}
    yield np.array(x)
    for _ in range(rounds):
        for i in range(m):
            pull = degree[i] * x[i] - sum(z[pair] for pair in pairs if pair[0] == i)
            phi = x[i]
            for _ in range(tau):
                phi = phi - gamma * clients[i].gradient(phi) - 2 * beta * pull
            x[i] = phi
        z = {(i, j): (z[i, j] - z[j, i]) / 2 + x[j] for i, j in pairs}
        yield np.array(x)
