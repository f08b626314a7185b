"""EF21 with the clients that take part.

Source: P. Richtárik, I. Sokolov, I. Fatkhullin, "EF21: A new, simpler, theoretically better, and practically faster
error feedback", 2021, arXiv 2106.05203, Algorithm 2 and Theorem 1. A client that does not take part keeps its g_i.
"""

import numpy as np

from .compressors import compress, omega


def run(clients, selections, *, compressor, gamma=None):
    m, n = len(clients), clients[0].n
    scale = 1.0 if compressor["name"] == "topk" else 1 / (1 + omega(compressor, n))
    if gamma is None:
        gamma = theory(clients, compressor["k"] / n * len(selections[0]) / m)
    x = np.zeros(n)
    g = [scale * compress(compressor, client.gradient(x), i, 0, 0) for i, client in enumerate(clients)]
    yield x
    for round, chosen in enumerate(selections, 1):
        x = x - gamma * sum(g) / m
        for i in chosen:
            g[i] = g[i] + scale * compress(compressor, clients[i].gradient(x) - g[i], i, round, 0)
        yield x


def theory(clients, delta):
    L = [client.lipschitz for client in clients]
    theta = 1 - np.sqrt(1 - delta)
    beta = (1 - delta) / theta
    return 1 / (np.mean(L) + np.sqrt(np.mean(np.square(L))) * np.sqrt(beta / theta))
