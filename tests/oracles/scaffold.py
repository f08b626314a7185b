"""SCAFFOLD with full gradients: local steps corrected by control variates, renewed by option II.

Source: S. P. Karimireddy et al., "SCAFFOLD: Stochastic controlled averaging for federated learning", 2020, arXiv
1910.06378, Algorithm 1. Where the local step varies within a round, K η_l of option II is the sum of the steps taken.
"""

from . import fedavg


class Method(fedavg.Method):
    asynchronous = False
    server_lr = 1.0
    c = 0.0
    vectors = (*fedavg.Method.vectors, "own")  # c_i

    def slope(self, i, w):
        return super().slope(i, w) - self.own[i] + self.c

    def begin(self, i):
        y = super().begin(i)
        change = (self.x - y) / sum(self.gammas(i)) - self.c  # of c_i by option II
        self.own[i] = self.own[i] + change
        return y - self.x, change

    def step(self, uploads, ages):
        models, variates = zip(*uploads.values(), strict=True)
        self.x = self.x + self.server_lr * sum(models) / len(uploads)
        self.c = self.c + len(uploads) / self.m * (sum(variates) / len(uploads))
        self.k += self.count
