"""FedGiA in which clients that do not take part keep their last upload: an asynchronous form of the method.

Source: S. Zhou and G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning", 2022, arXiv 2205.01438,
equations (11)–(14) and for clients that are not selected their last upload.
"""

import numpy as np

from .fedgia import metric, table_3
from .synchronous import Lasting, rounds


class Method(Lasting):
    def __init__(self, clients, *, k0=10, H="diagonal", t=None):
        super().__init__(clients)
        self.k0, self.H = k0, H
        t = table_3(clients) if t is None else t
        self.sigma = t * max(client.lipschitz for client in clients) / self.m

    def begin(self, i):
        client, sigma = self.clients[i], self.sigma
        g = client.gradient(self.x) / self.m
        system = metric(client, self.H) / self.m + sigma * np.eye(client.n)
        for _ in range(self.k0):
            own = self.x - np.linalg.solve(system, g + self.pi[i])  # (12)
            self.pi[i] = self.pi[i] + sigma * (own - self.x)  # (13)
        return own + self.pi[i] / sigma  # (14)


run = rounds(Method)
