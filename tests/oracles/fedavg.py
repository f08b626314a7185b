"""FedAvg with full gradients.

Source: B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", 2017,
arXiv 1602.05629. Followed here: Algorithm 2 of S. Zhou and G. Y. Li, "Federated learning via inexact ADMM", 2022,
arXiv 2204.10607, equations (3.14)–(3.16), the factor of the gradient being 1 or 1/m (``scale``), and the step γ_k of
FedGiA (arXiv 2205.01438), section V.D.

With full batches a local epoch is one gradient step, so ``epochs`` > 0 stands in place of k0. Asynchronously the mean
is that of those that arrive, or of the last uploads of all.
"""

from .problems import zeros
from .step_sizes import LOG2, step_size
from .synchronous import Server, rounds


class Method(Server):
    def __init__(self, clients, *, k0=5, step=LOG2, scale="1", aggregate="chosen", epochs=0):
        super().__init__(clients)
        self.k0 = k0
        self.count = epochs or k0
        self.rule = step
        self.factor = 1.0 if scale == "1" else 1 / self.m
        self.all = aggregate == "all"
        self.k = 0
        self.last = zeros(clients)

    def gammas(self, i):
        """The steps of the iterations to come."""
        return [step_size(self.rule, k, self.k0, self.clients[i].d) for k in range(self.k, self.k + self.count)]

    def slope(self, i, w):
        return self.factor * self.clients[i].gradient(w)

    def begin(self, i):
        w = self.x
        for gamma in self.gammas(i):
            w = w - gamma * self.slope(i, w)  # (3.16)
        return w

    def step(self, uploads, ages):
        for i, w in uploads.items():
            self.last[i] = w
        averaged = range(self.m) if self.all else uploads
        self.x = sum(self.last[i] for i in averaged) / len(averaged)  # (3.14), (3.15)
        self.k += self.count


run = rounds(Method)
