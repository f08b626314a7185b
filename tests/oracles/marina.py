"""MARINA with the clients that take part between whole gradients.

Source: E. Gorbunov, K. Burlachenko, Z. Li, P. Richtárik, "MARINA: Faster non-convex distributed learning with
compression", 2021, arXiv 2102.07845, Algorithms 1 and 4, and Theorem 2.1 for the step.
"""

import numpy as np

from mpifed.core.streams import stream

from .compressors import compress, omega


def run(clients, selections, *, compressor, gamma=None, p=None):
    m, n = len(clients), clients[0].n
    alone = omega(compressor, n)
    p = 1 / (1 + alone) if p is None else p
    if gamma is None:
        together = (1 + alone) * m / min(map(len, selections)) - 1
        L = np.sqrt(np.mean([client.lipschitz**2 for client in clients]))
        gamma = 1 / (L * (1 + np.sqrt((1 - p) * together / (p * m))))
    x = np.zeros(n)
    g = sum(client.gradient(x) for client in clients) / m
    yield x
    for round, chosen in enumerate(selections, 1):
        before, x = x, x - gamma * g
        if stream(0, "server", round).random() < p:
            g = sum(client.gradient(x) for client in clients) / m
        else:
            changes = {i: clients[i].gradient(x) - clients[i].gradient(before) for i in chosen}
            g = g + sum(compress(compressor, v, i, round, 0) for i, v in changes.items()) / len(chosen)
        yield x
