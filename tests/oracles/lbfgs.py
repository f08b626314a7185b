"""L-BFGS on the mean of the functions of all clients, with matrices written out; one trial point a round.

Source: D. C. Liu, J. Nocedal, "On the limited memory BFGS method for large scale optimization", 1989, doi
10.1007/BF01589116, Algorithm 2.1: the BFGS formula (2.5) applied to the last pairs, from a multiple of the identity.
"""

import numpy as np

from .newton import mean


def run(clients, selections, *, memory=10, c=1e-4):
    n = clients[0].n
    x = np.zeros(n)
    f, g = both(clients, x)
    pairs = []
    d = -g / max(1, np.linalg.norm(g))
    s = 1.0
    yield x, {"server_step": 0.0}
    for _ in selections:
        trial = x + s * d
        value, gradient = both(clients, trial)
        if value > f + c * s * (g @ d):
            s /= 2
            yield x, {"server_step": 0.0}
            continue
        step, y = trial - x, gradient - g
        if step @ y > 1e-8 * np.linalg.norm(step) * np.linalg.norm(y):
            pairs = [*pairs, (step, y)][-memory:]
        x, f, g = trial, value, gradient
        d = -inverse(pairs, n) @ g if pairs else -g / max(1, np.linalg.norm(g))
        yield x, {"server_step": s}
        s = 1.0


def both(clients, x):
    return mean(clients, lambda client: client.value(x)), mean(clients, lambda client: client.gradient(x))


def inverse(pairs, n):
    step, y = pairs[-1]
    B = (step @ y) / (y @ y) * np.eye(n)
    for step, y in pairs:
        V = np.eye(n) - np.outer(y, step) / (y @ step)
        B = V.T @ B @ V + np.outer(step, step) / (y @ step)
    return B
