"""DIANA with the clients that take part.

Source: K. Mishchenko, E. Gorbunov, M. Takáč, P. Richtárik, "Distributed learning with compressed gradient differences",
2019, arXiv 1901.09269, Algorithm 1, for unbiased compressors with ω: α = 1/(1 + ω) and γ = 1/((1 + 6ω/m) max L_i) of
E. Gorbunov, F. Hanzely, P. Richtárik, 2019, arXiv 1905.11261. A client that does not take part sends the message 0 of
a compressor that sends with probability |S|/m, and m/|S| times as much.
"""

import numpy as np

from .compressors import compress, omega


def run(clients, selections, *, compressor, gamma=None):
    m, n = len(clients), clients[0].n
    alone = omega(compressor, n)
    if gamma is None:
        together = (1 + alone) * m / min(map(len, selections)) - 1
        gamma = 1 / ((1 + 6 * together / m) * max(client.lipschitz for client in clients))
    x, h = np.zeros(n), [np.zeros(n) for _ in clients]
    yield x
    for round, chosen in enumerate(selections, 1):
        messages = [np.zeros(n) for _ in clients]
        for i in chosen:
            messages[i] = m / len(chosen) * compress(compressor, clients[i].gradient(x) - h[i], i, round, 0)
        x = x - gamma * sum(h[i] + messages[i] for i in range(m)) / m
        h = [h[i] + len(chosen) / m / (1 + alone) * messages[i] for i in range(m)]
        yield x
