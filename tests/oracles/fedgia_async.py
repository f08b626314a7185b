"""FedGiA in which clients that do not take part keep their last upload: an asynchronous form of the method.

Source: S. Zhou and G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning", 2022, arXiv 2205.01438,
equations (11)–(14) and for clients that are not selected their last upload.
"""

from .fedgia import metric, table_3, trained
from .synchronous import Lasting


class Method(Lasting):
    k0 = 10
    H = "diagonal"
    t = None

    def prepare(self):
        t = table_3(self.clients) if self.t is None else self.t
        self.sigma = t * max(client.lipschitz for client in self.clients) / self.m

    def begin(self, i):
        g = self.clients[i].gradient(self.x) / self.m
        H = metric(self.clients[i], self.H) / self.m
        own, self.pi[i] = trained(self.x, g, self.pi[i], H, self.sigma, self.k0)
        return own + self.pi[i] / self.sigma  # (14)
