"""MoTEF with full gradients; with λ = 1 it is BEER.

Source: R. Islamov, Y. Gao, S. U. Stich, "Towards faster decentralized stochastic optimization with communication
compression", 2024, arXiv 2405.20114, Algorithm 1.
"""

import numpy as np

from .compressors import differences
from .graphs import matrices
from .problems import gradients


def run(clients, rounds, graph, *, compressor, gamma, lam, eta=None):
    eta = eta or lam * gamma / (2 * max(client.lipschitz for client in clients))
    X = H = G = np.zeros((len(clients), clients[0].n))
    V = U = gradients(clients, X)
    yield X
    for round, W in enumerate(matrices(graph, len(clients), rounds), 1):
        before = U
        X = X + gamma * (W @ H - H) - eta * V
        U = (1 - lam) * U + lam * gradients(clients, X)
        V = V + gamma * (W @ G - G) + U - before
        sent = differences(compressor, [X - H, V - G], round)
        H, G = H + sent[0], G + sent[1]
        yield X
