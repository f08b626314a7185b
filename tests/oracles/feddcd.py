"""FedDCD: dual coordinate descent over the chosen clients, exact or inexact.

Source: Z. Fan, H. Fang and M. P. Friedlander, "A dual approach for federated learning", 2022, arXiv 2201.11183,
Algorithm 1, equations (1), (2), (7), with Λ = I/α or diag(1/α_i). The recorded model is the mean of the round's w_i.
"""

from .dual_oracle import NEWTON, alphas, conjugates, constants, length, solve
from .problems import zeros
from .synchronous import Server, rounds


class Method(Server):
    def __init__(self, clients, *, eta=1.0, solver=NEWTON, dual=False, scaling="common", schedule=None):
        super().__init__(clients)
        self.eta = eta
        self.solver = solver
        self.dual = dual
        self.schedule = schedule
        self.alpha, self.beta = constants(clients)
        self.own = alphas(clients, scaling)
        self.y = zeros(clients)
        self.w = zeros(clients)
        self.t = 0

    def begin(self, i):
        """Nothing yet: y_i and w_i, from which client i solves (1), stay as they are until it arrives."""

    def step(self, uploads, ages):
        share = (len(uploads) - 1) / (self.m - 1)
        for i in uploads:
            self.w[i] = solve(self.clients[i], self.y[i], self.w[i], self.solver, self.alpha, self.beta, share)  # (7)
        self.x = sum(self.own[i] * self.w[i] for i in uploads) / sum(self.own[i] for i in uploads)  # of (2)
        for i in uploads:
            self.y[i] = self.y[i] - length(self.eta, self.schedule, self.t) * self.own[i] * (self.w[i] - self.x)  # (2)
        self.t += 1

    def shows(self):
        return {"dual_objective": conjugates(self.clients, self.y)} if self.dual else {}


run = rounds(Method)
