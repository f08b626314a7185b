"""Damped Newton steps on the mean of the functions of all clients, whoever is selected.

Source: S. Boyd and L. Vandenberghe, "Convex optimization", 2004, doi 10.1017/CBO9780511804441, Algorithm 9.5 with the
backtracking of Algorithm 9.2, from the full step on.
"""

import numpy as np


def run(clients, selections, *, c=0.49, shrink=0.5):
    x = np.zeros(clients[0].n)
    yield x, {"server_step": 0.0}
    for _ in selections:
        f = mean(clients, lambda client: client.value(x))  # noqa: B023
        g = mean(clients, lambda client: client.gradient(x))  # noqa: B023
        H = mean(clients, lambda client: client.hessian(x))  # noqa: B023
        d = -np.linalg.inv(H) @ g
        s = 1.0
        while mean(clients, lambda client: client.value(x + s * d)) > f + c * s * (g @ d):  # noqa: B023
            s *= shrink
        x = x + s * d
        yield x, {"server_step": s}


def mean(clients, number):
    return sum(map(number, clients)) / len(clients)
