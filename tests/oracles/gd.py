"""Gradient descent with the mean gradient of the clients that take part.

Source: A. Khaled, K. Mishchenko, P. Richtárik, "First analysis of local GD on heterogeneous data", 2019, arXiv
1909.04715, Algorithm 1 with a communication after every step. By default the step is 1/L with L = max L_i.
"""

import numpy as np


def run(clients, selections, *, gamma=None):
    if gamma is None:
        gamma = 1 / max(client.lipschitz for client in clients)
    x = np.zeros(clients[0].n)
    yield x
    for chosen in selections:
        x = x - gamma * sum(clients[i].gradient(x) for i in chosen) / len(chosen)
        yield x
