"""FedGiA in which clients that do not take part keep their last upload: an asynchronous form of the method.

Source: S. Zhou and G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning", 2022, arXiv 2205.01438,
equations (11)–(14) and for clients that are not selected their last upload.
"""

from __future__ import annotations

import numpy as np

from .fedgia import metric, table_3
from .problems import trajectory, zeros


def run(clients, selections, *, k0=10, H="diagonal", t=None):
    m, n = len(clients), clients[0].n
    sigma = (table_3(clients) if t is None else t) * max(client.lipschitz for client in clients) / m
    pi, z = zeros(clients), zeros(clients)
    models = [np.zeros(n)]
    for chosen in selections:
        for i in chosen:
            x = models[-1]
            g = clients[i].gradient(x) / m
            system = metric(clients[i], H) / m + sigma * np.eye(n)
            for _ in range(k0):
                own = x - np.linalg.solve(system, g + pi[i])  # (12)
                pi[i] = pi[i] + sigma * (own - x)  # (13)
                z[i] = own + pi[i] / sigma  # (14)
        models.append(sum(z) / m)  # (11)
    return trajectory(clients, models)
