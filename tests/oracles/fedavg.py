"""FedAvg with full gradients.

Source: B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", 2017,
arXiv 1602.05629. Followed here: Algorithm 2 of S. Zhou and G. Y. Li, "Federated learning via inexact ADMM", 2022,
arXiv 2204.10607, equations (3.14)–(3.16), the factor of the gradient being 1 or 1/m (``scale``), and the step γ_k of
FedGiA (arXiv 2205.01438), section V.D.

With full batches a local epoch is one gradient step, so ``epochs`` > 0 stands in place of k0. Asynchronously the mean
is that of those that arrive, or of the last uploads of all.
"""

from .step_sizes import LOG2, step_size
from .synchronous import Server


class Method(Server):
    k0 = 5
    scale = "1"
    aggregate = "chosen"
    epochs = 0
    k = 0
    vectors = ("last",)

    def __init__(self, clients, step=LOG2, **options):
        self.rule = step
        super().__init__(clients, **options)

    def prepare(self):
        self.count = self.epochs or self.k0
        self.factor = 1.0 if self.scale == "1" else 1 / self.m

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
        averaged = range(self.m) if self.aggregate == "all" else uploads
        self.x = sum(self.last[i] for i in averaged) / len(averaged)  # (3.14), (3.15)
        self.k += self.count
