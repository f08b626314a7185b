"""Rennala SGD with full gradients: steps with the first B gradients at the newest model.

Source: A. Tyurin, P. Richtárik, "Optimal time complexities of parallel stochastic optimization methods under a fixed
computation model", 2023, arXiv 2305.12387, from memory: gradients at older models are ignored, or stopped at each step.
The default step is 1/L with L = max L_i.
"""

from .synchronous import Server


class Method(Server):
    gamma = None
    B = 1
    stop = False

    def prepare(self):
        self.gamma = self.gamma or 1 / max(client.lipschitz for client in self.clients)
        self.used = []

    def begin(self, i):
        return self.clients[i].gradient(self.x)

    def drops(self, age):
        return self.stop

    def step(self, uploads, ages):
        self.used += [g for g, age in zip(uploads.values(), ages, strict=True) if age == 0]
        if len(self.used) < self.B:
            return False
        self.x = self.x - self.gamma * sum(self.used) / len(self.used)
        self.used = []
        return True
