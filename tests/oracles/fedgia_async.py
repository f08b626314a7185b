"""FedGiA in which clients that do not take part keep their last upload: an asynchronous form of the method.

Source: S. Zhou and G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning", 2022, arXiv 2205.01438,
equations (11)–(14) and for clients that are not selected their last upload.
"""

import numpy as np

from .fedgia import metric, table_3
from .synchronous import Lasting


class Method(Lasting):
    k0 = 10
    H = "diagonal"
    t = None

    def prepare(self):
        t = table_3(self.clients) if self.t is None else self.t
        self.sigma = t * max(client.lipschitz for client in self.clients) / self.m

    def begin(self, i):
        client, sigma = self.clients[i], self.sigma
        g = client.gradient(self.x) / self.m
        system = metric(client, self.H) / self.m + sigma * np.eye(client.n)
        for _ in range(self.k0):
            own = self.x - np.linalg.solve(system, g + self.pi[i])  # (12)
            self.pi[i] = self.pi[i] + sigma * (own - self.x)  # (13)
        return own + self.pi[i] / sigma  # (14)
