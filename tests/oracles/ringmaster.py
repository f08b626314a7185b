"""Ringmaster ASGD with full gradients: steps with gradients that are fewer than R steps old.

Source: A. Maranjyan, A. Tyurin, P. Richtárik, "Ringmaster ASGD", 2025, arXiv 2501.16168, from memory: an older gradient
is ignored, or stopped as soon as it is R steps old. The default step is 1/(2RL) with L = max L_i.
"""

from .synchronous import Server


class Method(Server):
    gamma = None
    R = None
    stop = False

    def prepare(self):
        self.R = self.R or self.m
        self.gamma = self.gamma or 1 / (2 * self.R * max(client.lipschitz for client in self.clients))

    def begin(self, i):
        return self.clients[i].gradient(self.x)

    def drops(self, age):
        return self.stop and age >= self.R

    def step(self, uploads, ages):
        used = [g for g, age in zip(uploads.values(), ages, strict=True) if age < self.R]
        if not used:
            return False
        self.x = self.x - self.gamma * sum(used) / len(used)
        return True
