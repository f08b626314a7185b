"""Malenia SGD with full gradients: a step once every client has sent one, or more, at the newest model.

Source: A. Tyurin, P. Richtárik, "Optimal time complexities of parallel stochastic optimization methods under a fixed
computation model", 2023, arXiv 2305.12387, from memory: a step takes the mean over all clients of the means of their
B_i gradients, as soon as the harmonic mean of the B_i is S/m. The default step is 1/L with L = max L_i.
"""

from .synchronous import Server


class Method(Server):
    everyone = True
    gamma = None
    S = None
    stop = False

    def prepare(self):
        self.gamma = self.gamma or 1 / max(client.lipschitz for client in self.clients)
        self.sent = [[] for _ in self.clients]

    def begin(self, i):
        return self.clients[i].gradient(self.x)

    def drops(self, age):
        return self.stop

    def step(self, uploads, ages):
        for (i, g), age in zip(uploads.items(), ages, strict=True):
            if age == 0:
                self.sent[i].append(g)
        if not all(self.sent) or self.m / sum(1 / len(own) for own in self.sent) < (self.S or self.m) / self.m:
            return False
        self.x = self.x - self.gamma * sum(sum(own) / len(own) for own in self.sent) / self.m
        self.sent = [[] for _ in self.clients]
        return True
