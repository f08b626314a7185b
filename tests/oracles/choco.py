"""CHOCO-SGD with full gradients.

Source: A. Koloskova, S. U. Stich, M. Jaggi, "Decentralized stochastic optimization and gossip algorithms with
compressed communication", 2019, arXiv 1902.00340, Algorithm 2.
"""

import numpy as np

from .compressors import differences
from .graphs import matrices
from .problems import gradients


def run(clients, rounds, graph, *, compressor, gamma, eta=None):
    eta = eta or 1 / (2 * max(client.lipschitz for client in clients))
    X = H = np.zeros((len(clients), clients[0].n))
    yield X
    for round, W in enumerate(matrices(graph, len(clients), rounds), 1):
        X = X - eta * gradients(clients, X)
        H = H + differences(compressor, [X - H], round)[0]
        X = X + gamma * (W @ H - H)
        yield X
