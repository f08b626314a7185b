"""FedADMM for networks, with full batches: clients descend on their augmented Lagrangian, all are averaged.

Source: Y. Gong, Y. Li and N. M. Freris, "FedADMM: A robust federated deep learning framework with adaptivity to system
heterogeneity", 2022, arXiv 2204.03529, as compared in S. Zhu et al., "Personalized federated learning via ADMM with
Moreau envelope", 2023, arXiv 2311.06756, section 5: local training starts at the broadcast model, the upload is
θ + π/rho, and the server averages the last uploads of all m clients.
"""

from .synchronous import Lasting


class Method(Lasting):
    rho = 0.01
    lr = 0.01
    epochs = 5
    weight_decay = 0.0

    def begin(self, i):
        theta = self.x
        for _ in range(self.epochs):
            slope = self.clients[i].gradient(theta) + self.weight_decay * theta
            theta = theta - self.lr * (slope + self.pi[i] + self.rho * (theta - self.x))
        self.pi[i] = self.pi[i] + self.rho * (theta - self.x)
        return theta + self.pi[i] / self.rho
