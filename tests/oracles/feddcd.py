"""FedDCD: dual coordinate descent over the chosen clients, exact or inexact.

Source: Z. Fan, H. Fang and M. P. Friedlander, "A dual approach for federated learning", 2022, arXiv 2201.11183,
Algorithm 1, equations (1), (2), (7), with Λ = I/α or diag(1/α_i). The recorded model is the mean of the round's w_i.
"""

from .dual_oracle import NEWTON, alphas, conjugates, constants, length, solve
from .synchronous import Server


class Method(Server):
    eta = 1.0
    solver = NEWTON
    dual = False
    scaling = "common"
    schedule = None
    t = 0
    vectors = ("y", "w")

    def prepare(self):
        self.alpha, self.beta = constants(self.clients)
        self.own = alphas(self.clients, self.scaling)

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
