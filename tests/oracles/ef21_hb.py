"""EF21-HB with the clients that take part.

Source: I. Fatkhullin et al., "EF21 with bells & whistles", 2021, arXiv 2110.03294, Algorithm 6; the step as the
docstring of the method derives it.
"""

import numpy as np

from .ef21 import contracted, first, mean, ratio, root


def run(clients, selections, *, compressor, gamma=None, start="compressed", eta=0.5):
    m = len(clients)
    if gamma is None:
        spread = root(clients) * np.sqrt(ratio(clients, compressor, min(map(len, selections)) / m))
        gamma = (1 - eta) / (mean(clients) / (1 - eta) + spread)
    x = np.zeros(clients[0].n)
    g = first(clients, x, compressor, start)
    v = sum(g) / m
    yield x
    for round, chosen in enumerate(selections, 1):
        x = x - gamma * v
        for i in chosen:
            g[i] = g[i] + contracted(compressor, clients[i].gradient(x) - g[i], i, round)
        v = eta * v + sum(g) / m
        yield x
