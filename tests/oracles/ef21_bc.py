"""EF21-BC, in which all clients take part.

Source: I. Fatkhullin et al., "EF21 with bells & whistles", 2021, arXiv 2110.03294, Algorithm 5; the step as the
docstring of the method derives it.
"""

import numpy as np

from .compressors import compress
from .ef21 import contracted, first, mean, ratio, root


def run(clients, selections, *, compressor, down, gamma=None, start="compressed"):
    m = len(clients)
    if gamma is None:
        A, B = ratio(clients, compressor), ratio(clients, down)
        gamma = 1 / (mean(clients) + root(clients) * np.sqrt(16 * B + 2 * A * (1 + 8 * B)))
    x = np.zeros(clients[0].n)
    w = first(clients, x, compressor, start)
    g = sum(w) / m
    yield x
    for round in range(1, len(selections) + 1):
        x = x - gamma * g
        w = [w[i] + contracted(compressor, clients[i].gradient(x) - w[i], i, round) for i in range(m)]
        g = g + compress(down, sum(w) / m - g, 0, round, 0)
        yield x
