"""Methods as an event loop meets them: what a client makes of the server's model, and what the server does with it.

Each class is written from the source that the oracle of the same name has. ``x`` is the server's model.
"""

from __future__ import annotations

import numpy as np

from . import asynchronous_admm as admm
from .dual_oracle import NEWTON, alphas, constants, solve
from .fednova import weights
from .problems import zeros
from .step_sizes import LOG2, step_size


class FedAvg:
    """k0 gradient steps from the model that the client was sent; the mean of those that arrive, or of all the last."""

    def __init__(self, clients, *, k0=5, step=LOG2, scale="1", aggregate="chosen"):
        self.clients, self.m, self.k0, self.rule = clients, len(clients), k0, step
        self.factor = 1.0 if scale == "1" else 1 / self.m
        self.x, self.k, self.last = np.zeros(clients[0].n), 0, zeros(clients)
        self.everyone = aggregate == "all"

    def begin(self, i):
        w = self.x
        for k in range(self.k, self.k + self.k0):
            w = self.move(w, step_size(self.rule, k, self.k0, self.clients[i].d), i)
        return w

    def move(self, w, gamma, i):
        return w - gamma * self.factor * self.clients[i].gradient(w)

    def step(self, uploads, ages):
        for i, w in uploads.items():
            self.last[i] = w
        averaged = range(self.m) if self.everyone else uploads
        self.x = sum(self.last[i] for i in averaged) / len(averaged)
        self.k += self.k0


class FedProx(FedAvg):
    def __init__(self, clients, *, mu=1e-4, inner=5, **options):
        super().__init__(clients, **options)
        self.mu, self.inner = mu, inner

    def move(self, w, gamma, i):
        for _ in range(self.inner):
            w = w - gamma * (self.factor * self.clients[i].gradient(w) + self.mu * (w - self.x))
        return w


class FedNova(FedAvg):
    def begin(self, i):
        gammas = [step_size(self.rule, k, self.k0, self.clients[i].d) for k in range(self.k, self.k + self.k0)]
        norm = sum(weights(gammas, 0.0))
        return (self.x - super().begin(i)) / norm, norm

    def step(self, uploads, ages):
        direction = sum(d for d, _ in uploads.values()) / len(uploads)
        norm = sum(norm for _, norm in uploads.values()) / len(uploads)
        self.x = self.x - norm * direction
        self.k += self.k0


class FedDCD:
    """(1) at the client's own y_i; (2) for those that arrive."""

    def __init__(self, clients, *, eta=1.0, solver=NEWTON, scaling="common", arrivals):
        self.clients, self.m, self.eta, self.solver = clients, len(clients), eta, solver
        self.alpha, self.beta = constants(clients)
        self.own, self.share = alphas(clients, scaling), (arrivals - 1) / (self.m - 1)
        self.x, self.y, self.w = np.zeros(clients[0].n), zeros(clients), zeros(clients)

    def begin(self, i):
        return solve(self.clients[i], self.y[i], self.w[i], self.solver, self.alpha, self.beta, self.share)

    def step(self, uploads, ages):
        self.x = sum(self.own[i] * w for i, w in uploads.items()) / sum(self.own[i] for i in uploads)
        for i, w in uploads.items():
            self.w[i] = w
            self.y[i] = self.y[i] - self.eta * self.own[i] * (w - self.x)


METHODS = {
    "fedavg": FedAvg,
    "fedprox": FedProx,
    "fednova": FedNova,
    "feddcd": FedDCD,
    "ditto": FedAvg,  # personal models never travel
    "apfl": FedAvg,
    "fedadmm": admm.FedADMM,
    "fedadmm-deep": admm.FedADMMDeep,
    "flame": admm.Flame,
    "pfedme": admm.PFedMe,
    "ad-admm": admm.ADADMM,
    "fedgia-async": admm.FedGiA,
    "fedbuff": admm.FedBuff,
}
