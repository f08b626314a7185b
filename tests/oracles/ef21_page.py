"""EF21-PAGE with the clients that take part, one coin for all.

Source: I. Fatkhullin et al., "EF21 with bells & whistles", 2021, arXiv 2110.03294, Algorithm 3; the step as the
docstring of the method derives it.
"""

import numpy as np

from mpifed.core.streams import stream

from .ef21 import contracted, first, mean, ratio, root
from .ef21_sgd import batch


def run(clients, selections, *, compressor, batch_size, p=None, gamma=None, start="compressed"):
    m, n = len(clients), clients[0].n
    if p is None:
        p = batch_size / (batch_size + np.mean([client.d for client in clients]))
    if gamma is None:
        A = ratio(clients, compressor, min(map(len, selections)) / m)
        noise = np.mean([variance(client, batch_size) for client in clients])
        inner = 4 * A * root(clients) ** 2 + 2 * (3 * A + 1 / p) * (1 - p) * noise
        gamma = 1 / (mean(clients) + np.sqrt(inner))
    x = np.zeros(n)
    v = [client.gradient(x) for client in clients]
    g = first(clients, x, compressor, start)
    before = [x] * m
    yield x
    for round, chosen in enumerate(selections, 1):
        x = x - gamma * sum(g) / m
        whole = stream(0, "server", round).random() < p
        for i in chosen:
            part = batch(clients[i], i, round, batch_size)
            v[i] = clients[i].gradient(x) if whole else v[i] + part.gradient(x) - part.gradient(before[i])
            g[i] = g[i] + contracted(compressor, v[i] - g[i], i, round)
            before[i] = x
        yield x


def variance(client, size):
    return 0.0 if size >= client.d else client.lipschitz**2 * client.d * (client.d - size) / size / (client.d - 1)
