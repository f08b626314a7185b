"""NIDS without a nonsmooth term.

Source: Z. Li, W. Shi, M. Yan, "A decentralized proximal-gradient method with network independent step-sizes and
separated convergence rates", 2017, arXiv 1704.07807, Algorithm 1: the first step does not mix.
"""

import numpy as np

from .graphs import matrices
from .problems import gradients


def run(clients, rounds, graph, *, gamma=None):
    m, n = len(clients), clients[0].n
    gamma = gamma or 1 / max(client.lipschitz for client in clients)
    tilde = (np.eye(m) + matrices(graph, m, 1)[0]) / 2
    before = np.zeros((m, n))
    last = before - gamma * gradients(clients, before)
    yield before
    yield last
    for _ in range(rounds - 1):
        correction = gradients(clients, last) - gradients(clients, before)
        before, last = last, tilde @ (2 * last - before - gamma * correction)
        yield last
