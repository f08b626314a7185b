"""Local gradient descent: Algorithm 1 with t_p = p·k0, of A. Khaled, K. Mishchenko, P. Richtárik, "First analysis of
local GD on heterogeneous data", 2019, arXiv 1909.04715: every client has an iterate of its own at every time t, and
every k0-th time these are replaced by their mean. The default step is 1/L with L = max L_i.
"""

import numpy as np


def run(clients, selections, *, k0=5, gamma=None):
    if gamma is None:
        gamma = 1 / max(client.lipschitz for client in clients)
    x = np.zeros(clients[0].n)
    yield x
    for chosen in selections:
        iterates = dict.fromkeys(chosen, x)
        for t in range(1, k0 + 1):
            stepped = {i: own - gamma * clients[i].gradient(own) for i, own in iterates.items()}
            mean = sum(stepped.values()) / len(chosen)
            iterates = dict.fromkeys(chosen, mean) if t == k0 else stepped
        x = iterates[chosen[0]]
        yield x
