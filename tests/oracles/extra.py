"""EXTRA.

Source: W. Shi, Q. Ling, G. Wu, W. Yin, "EXTRA: an exact first-order algorithm for decentralized consensus
optimization", 2014, arXiv 1404.6264, Algorithm 1 with W̃ = (I + W)/2, all nodes as rows of one matrix.
"""

import numpy as np

from .graphs import default_step, matrices
from .problems import gradients


def run(clients, rounds, graph, *, gamma=None):
    m, n = len(clients), clients[0].n
    gamma = gamma or default_step(clients, graph)
    W = matrices(graph, m, 1)[0]
    tilde = (np.eye(m) + W) / 2

    before = np.zeros((m, n))
    last = W @ before - gamma * gradients(clients, before)
    yield before
    yield last
    for _ in range(rounds - 1):
        correction = gradients(clients, last) - gradients(clients, before)
        before, last = last, (np.eye(m) + W) @ last - tilde @ before - gamma * correction
        yield last
