"""EXTRA.

Source: W. Shi, Q. Ling, G. Wu, W. Yin, "EXTRA: an exact first-order algorithm for decentralized consensus
optimization", 2014, arXiv 1404.6264, Algorithm 1 with W̃ = (I + W)/2, all nodes as rows of one matrix.
"""

from __future__ import annotations

import numpy as np

from .graphs import default_step, matrices, recorded
from .problems import trajectory


def run(clients, rounds, graph, *, gamma=None):
    m, n = len(clients), clients[0].n
    gamma = gamma or default_step(clients, graph)
    W = matrices(graph, m, 1)[0]
    tilde = (np.eye(m) + W) / 2

    def gradients(X):
        return np.array([client.gradient(x) for client, x in zip(clients, X, strict=True)])

    points = [np.zeros((m, n))]
    points.append(W @ points[0] - gamma * gradients(points[0]))
    while len(points) <= rounds:
        before, last = points[-2:]
        correction = gradients(last) - gradients(before)
        points.append((np.eye(m) + W) @ last - tilde @ before - gamma * correction)
    return recorded(clients, points, trajectory)
