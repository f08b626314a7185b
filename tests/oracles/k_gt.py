"""K-GT.

Source: Y. Liu, T. Lin, A. Koloskova, S. U. Stich, "Decentralized gradient tracking with local steps", 2023,
arXiv 2301.01313, Algorithm 1 with c = 0 at the start.
"""

import numpy as np

from .graphs import matrices
from .problems import gradients


def run(clients, rounds, graph, *, gamma, k0=5, eta=1.0):
    X = C = np.zeros((len(clients), clients[0].n))
    yield X
    for W in matrices(graph, len(clients), rounds):
        Y = X
        for _ in range(k0):
            Y = Y - gamma * (gradients(clients, Y) + C)
        X, C = W @ (X + eta * (Y - X)), C + (Y - X - W @ (Y - X)) / (k0 * gamma)
        yield X
