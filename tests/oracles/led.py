"""Local Exact-Diffusion.

Source: S. A. Alghunaim, "Local Exact-Diffusion for decentralized optimization and learning", 2023, arXiv 2302.00620,
in its primal-dual form: y is a sum of (I − W)φ.
"""

import numpy as np

from .graphs import matrices
from .problems import gradients


def run(clients, rounds, graph, *, tau=5, alpha=None, beta=None):
    alpha = alpha or 1 / (2 * tau * max(client.lipschitz for client in clients))
    beta = beta or 1 / (2 * tau)
    X = Y = np.zeros((len(clients), clients[0].n))
    yield X
    for W in matrices(graph, len(clients), rounds):
        for _ in range(tau):
            X = X - alpha * gradients(clients, X) - beta * Y
        Y = Y + (np.eye(len(clients)) - W) @ X
        X = W @ X
        yield X
