"""Ringleader ASGD with full gradients: each client has its turn once in a cycle, and a step takes the mean of a table.

Source: A. Maranjyan, P. Richtárik, "Ringleader ASGD", 2025, arXiv 2509.22860, from memory: steps wait until the table
has a gradient of every client; what a client sends after its turn goes into the table of the next cycle. The default
step is 1/(2mL) with L = max L_i, a choice of mpifed.
"""

from .synchronous import Server


class Method(Server):
    everyone = True
    gamma = None

    def prepare(self):
        self.gamma = self.gamma or 1 / (2 * self.m * max(client.lipschitz for client in self.clients))
        self.table = [[] for _ in self.clients]
        self.open()

    def open(self):
        self.waiting = set(range(self.m))
        self.later = [[] for _ in self.clients]

    def begin(self, i):
        return self.clients[i].gradient(self.x)

    def step(self, uploads, ages):
        for i, g in uploads.items():
            (self.table if i in self.waiting else self.later)[i].append(g)
        turns = self.waiting & uploads.keys()
        if all(self.table) and turns:
            self.x = self.x - self.gamma * sum(sum(own) / len(own) for own in self.table) / self.m
            self.waiting -= turns
        if self.waiting:
            return False
        self.table = self.later
        self.open()
        return True
