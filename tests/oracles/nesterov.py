"""Accelerated gradient descent with the mean gradient of all clients.

Source: A. Beck, M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse problems", 2009, doi
10.1137/080716542, (4.1)–(4.3) without a penalty; with mu the constant step scheme III of Y. Nesterov, "Introductory
lectures on convex optimization", 2004, (2.2.11).
"""

import numpy as np

from .newton import mean


def run(clients, selections, *, gamma=None, mu=0.0):
    gamma = gamma or 1 / max(client.lipschitz for client in clients)
    mu = mean(clients, lambda client: client.convexity) if mu == "mean" else mu
    q = np.sqrt(mu * gamma)
    x = y = np.zeros(clients[0].n)
    t = 1.0
    yield x, {}
    for _ in selections:
        new = y - gamma * mean(clients, lambda client: client.gradient(y))  # noqa: B023
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y = new + ((1 - q) / (1 + q) if q else (t - 1) / after) * (new - x)
        x, t = new, after
        yield x, {}
