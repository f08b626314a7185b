"""Ditto with full gradients: FedAvg, and beside it a personal model of every client.

Source: T. Li, S. Hu, A. Beirami and V. Smith, "Ditto: Fair and robust federated learning through personalization",
2021, arXiv 2012.04221, Algorithm 1, with k0 gradient steps for the global model.
"""

from . import fedavg


class Method(fedavg.Method):
    lam = 1.0
    lr = 0.01
    inner = 5
    vectors = (*fedavg.Method.vectors, "theta")

    def begin(self, i):
        theta = self.theta[i]
        for _ in range(self.inner):
            theta = theta - self.lr * (self.clients[i].gradient(theta) + self.lam * (theta - self.x))
        self.theta[i] = theta
        return super().begin(i)

    def shows(self):
        return self.personal(self.theta)
