"""FedBuff with full gradients: the server adds the mean of the changes that have arrived, old ones scaled down.

Source: J. Nguyen et al., "Federated learning with buffered asynchronous aggregation", 2022, arXiv 2106.06639, from
public accounts of it: changes from a model that is s steps old count 1/(1 + s)^a. The delay-adaptive weights
m/max(m, s) are those of asynchronous SGD.
"""

from .synchronous import Server


class Method(Server):
    k0 = 5
    lr = 0.01
    server_lr = 1.0
    a = 0.5
    weight = "power"
    epochs = 0

    def begin(self, i):
        w = self.x
        for _ in range(self.epochs or self.k0):
            w = w - self.lr * self.clients[i].gradient(w)
        return w - self.x

    def step(self, uploads, ages):
        if self.weight == "delay":
            factors = [self.m / max(self.m, s) for s in ages]
        else:
            factors = [1 / (1 + s) ** self.a for s in ages]
        scaled = sum(factor * change for factor, change in zip(factors, uploads.values(), strict=True))
        self.x = self.x + self.server_lr * scaled / len(uploads)
