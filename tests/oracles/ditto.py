"""Ditto with full gradients: FedAvg, and beside it a personal model of every client.

Source: T. Li, S. Hu, A. Beirami and V. Smith, "Ditto: Fair and robust federated learning through personalization",
2021, arXiv 2012.04221, Algorithm 1, with k0 gradient steps for the global model.
"""

from . import fedavg
from .problems import zeros
from .synchronous import rounds


class Method(fedavg.Method):
    def __init__(self, clients, *, lam=1.0, lr=0.01, inner=5, **options):
        super().__init__(clients, **options)
        self.lam = lam
        self.lr = lr
        self.inner = inner
        self.theta = zeros(clients)

    def begin(self, i):
        theta = self.theta[i]
        for _ in range(self.inner):
            theta = theta - self.lr * (self.clients[i].gradient(theta) + self.lam * (theta - self.x))
        self.theta[i] = theta
        return super().begin(i)

    def shows(self):
        return self.personal(self.theta)


run = rounds(Method)
