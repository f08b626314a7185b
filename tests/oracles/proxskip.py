"""ProxSkip for federated learning, Algorithm 2 (Scaffnew), step by step and coin by coin, with full gradients.

Source: K. Mishchenko, G. Malinovsky, S. Stich, P. Richtárik, "ProxSkip: Yes! Local gradient steps provably lead to
communication acceleration! Finally!", 2022, arXiv 2202.09357. A round ends with the first coin that says 1; the coins
are those of the server's stream of a run with seed 0. With all clients the mean is that of x̂_i − (γ/p)h_i, as printed;
where only some take part it is that of x̂_i (L. Condat et al., arXiv 2302.09832), and the others wait.
"""

import math

import numpy as np

from mpifed import stream

from .problems import zeros


def coins(round, p):
    """0 for every step without communication, then 1."""
    return [0] * (stream(0, "server", round).geometric(p) - 1) + [1]


def run(clients, selections, *, gamma=None, p=None):
    L = max(client.lipschitz for client in clients)
    gamma = 1 / L if gamma is None else gamma
    p = math.sqrt(min(client.convexity for client in clients) / L) if p is None else p
    h = zeros(clients)
    start = np.zeros(clients[0].n)
    yield start
    for t, chosen in enumerate(selections, 1):
        x = dict.fromkeys(chosen, start)
        for coin in coins(t, p):
            hat = {i: x[i] - gamma * (clients[i].gradient(x[i]) - h[i]) for i in chosen}
            mean = sum(hat.values()) / len(chosen)
            if len(chosen) == len(clients):
                mean = sum(hat[i] - gamma / p * h[i] for i in chosen) / len(chosen)
            for i in chosen:
                x[i] = mean if coin else hat[i]
                h[i] = h[i] + p / gamma * (x[i] - hat[i])
        start = x[chosen[0]]
        yield start
