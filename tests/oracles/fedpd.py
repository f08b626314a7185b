"""FedPD: clients descend on their augmented Lagrangian from the global model and update their dual.

Source: X. Zhang et al., "FedPD: A federated learning framework with optimal rates and adaptivity to non-IID data",
2020, arXiv 2005.11418, oracle choice I, option I. Followed here: as compared in S. Zhou and G. Y. Li, "FedGiA", 2022,
arXiv 2205.01438, section V.D: every local iteration descends from the global x, the dual is updated in every
iteration, and the server averages w_i + eta λ_i of all m clients, of unselected ones the last.
"""

from . import fedavg


class Method(fedavg.Method):
    asynchronous = False
    aggregate = "all"
    eta = 1.0
    inner = 5
    vectors = (*fedavg.Method.vectors, "dual")

    def begin(self, i):
        for gamma in self.gammas(i):
            w = self.x
            for _ in range(self.inner):
                w = w - gamma * (self.slope(i, w) + self.dual[i] + (w - self.x) / self.eta)
            self.dual[i] = self.dual[i] + (w - self.x) / self.eta
        return w + self.eta * self.dual[i]
