"""EF21 with the clients that take part, and what its extensions share.

Source: P. Richtárik, I. Sokolov, I. Fatkhullin, "EF21: A new, simpler, theoretically better, and practically faster
error feedback", 2021, arXiv 2106.05203, Algorithm 2 and Theorem 1. A client that does not take part keeps its g_i.
"""

import numpy as np

from .compressors import compress, omega


def run(clients, selections, *, compressor, gamma=None, start="compressed", gradient=None):
    m = len(clients)
    if gamma is None:
        gamma = 1 / (mean(clients) + root(clients) * np.sqrt(ratio(clients, compressor, min(map(len, selections)) / m)))
    x = np.zeros(clients[0].n)
    g = first(clients, x, compressor, start)
    yield x
    for round, chosen in enumerate(selections, 1):
        x = x - gamma * sum(g) / m
        for i in chosen:
            v = clients[i].gradient(x) if gradient is None else gradient(clients[i], x, i, round)
            g[i] = g[i] + contracted(compressor, v - g[i], i, round)
        yield x


def first(clients, x, compressor, start):
    G = [client.gradient(x) for client in clients]
    return G if start == "full" else [contracted(compressor, g, i, 0) for i, g in enumerate(G)]


def contracted(compressor, x, i, round):
    scale = 1.0 if compressor["name"] == "topk" else 1 / (1 + omega(compressor, len(x)))
    return scale * compress(compressor, x, i, round, 0)


def mean(clients):
    return np.mean([client.lipschitz for client in clients])


def root(clients):
    return np.sqrt(np.mean([client.lipschitz**2 for client in clients]))


def ratio(clients, compressor, share=1.0):
    """β/θ."""
    delta = compressor["k"] / clients[0].n * share
    theta = 1 - np.sqrt(1 - delta)
    return (1 - delta) / theta / theta
