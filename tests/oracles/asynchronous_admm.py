"""Methods whose clients keep duals or personal models, as an event loop meets them; and FedBuff.

Each class is written from the source that the oracle of the same name has: a client moves its own state when it begins,
from the server's ``x`` of that time, and the server learns of its upload when it arrives.
"""

from __future__ import annotations

import numpy as np

from . import ad_admm, fedadmm, fedgia
from .problems import zeros


class Lasting:
    """The server's model is the weighted mean of the last uploads of all clients."""

    def __init__(self, clients):
        self.clients, self.m = clients, len(clients)
        self.x, self.z, self.pi = np.zeros(clients[0].n), zeros(clients), zeros(clients)

    def step(self, uploads, ages):
        for i, z in uploads.items():
            self.z[i] = z
        self.x = self.mean()

    def mean(self):
        return sum(self.z) / self.m


class FedADMM(Lasting):
    """(3.4)–(3.7) at the model that the client was sent; (3.3)."""

    def __init__(self, clients, *, k0=10, r0=0.2, nu=0.95, eps0=None, inner_max=3):
        super().__init__(clients)
        self.k0, self.nu, self.inner = k0, nu, inner_max
        self.sigma = [r0 * client.lipschitz / self.m for client in clients]
        self.eps = [k0**2 if eps0 is None else eps0 for _ in clients]

    def begin(self, i):
        sigma = self.sigma[i]
        for _ in range(self.k0):
            self.eps[i] *= self.nu
            own = fedadmm.solve(self.clients[i], 1 / self.m, sigma, self.pi[i], self.x, self.eps[i], self.inner)
            self.pi[i] = self.pi[i] + sigma * (own - self.x)
        return sigma * own + self.pi[i]

    def mean(self):
        return sum(self.z) / sum(self.sigma)


class FedADMMDeep(Lasting):
    def __init__(self, clients, *, rho=0.01, lr=0.01, epochs=5):
        super().__init__(clients)
        self.rho, self.lr, self.epochs = rho, lr, epochs

    def begin(self, i):
        theta = self.x
        for _ in range(self.epochs):
            slope = self.clients[i].gradient(theta) + self.pi[i] + self.rho * (theta - self.x)
            theta = theta - self.lr * slope
        self.pi[i] = self.pi[i] + self.rho * (theta - self.x)
        return theta + self.pi[i] / self.rho


class Flame(Lasting):
    """(9)–(11) at the model that the client was sent; (12)."""

    def __init__(self, clients, *, rho=0.01, lam=5.0, lr=0.01, epochs=5, center="global"):
        super().__init__(clients)
        self.rho, self.lam, self.lr, self.epochs, self.center = rho, lam, lr, epochs, center
        self.theta, self.w = zeros(clients), zeros(clients)

    def personal(self, i, pull):
        for _ in range(self.epochs):
            slope = self.clients[i].gradient(self.theta[i]) + self.lam * (self.theta[i] - pull)
            self.theta[i] = self.theta[i] - self.lr * slope
        return self.theta[i]

    def begin(self, i):
        theta, share = self.personal(i, self.x if self.center == "global" else self.w[i]), self.lam / self.m
        self.w[i] = (share * theta + self.rho * self.x - self.pi[i]) / (share + self.rho)
        self.pi[i] = self.pi[i] + self.rho * (self.w[i] - self.x)
        return self.w[i] + self.pi[i] / self.rho


class PFedMe(Flame):
    def __init__(self, clients, *, eta=0.5, **options):
        super().__init__(clients, **options)
        self.eta = eta

    def begin(self, i):
        return self.x - self.eta * self.lam * (self.x - self.personal(i, self.x))


class ADADMM(Lasting):
    """The worker's minimiser and dual at the x̂₀ that it was sent; the master's proximal step."""

    def __init__(self, clients, *, solver, rho=None, gamma=0.0):
        super().__init__(clients)
        self.rho = max(client.lipschitz for client in clients) / 4 if rho is None else rho
        self.gamma, self.own = gamma, zeros(clients)

    def begin(self, i):
        self.own[i] = ad_admm.minimiser(self.clients[i], self.pi[i], self.rho, self.x, self.own[i])
        self.pi[i] = self.pi[i] + self.rho * (self.own[i] - self.x)
        return self.rho * self.own[i] + self.pi[i]

    def mean(self):
        return (sum(self.z) + self.gamma * self.x) / (self.m * self.rho + self.gamma)


class FedGiA(Lasting):
    """(12)–(14) with the gradient at the model that the client was sent; (11)."""

    def __init__(self, clients, *, k0=10, H="diagonal", t=None):
        super().__init__(clients)
        self.k0, self.H = k0, H
        t = fedgia.table_3(clients) if t is None else t
        self.sigma = t * max(client.lipschitz for client in clients) / self.m

    def begin(self, i):
        client, sigma = self.clients[i], self.sigma
        g = client.gradient(self.x) / self.m
        system = fedgia.metric(client, self.H) / self.m + sigma * np.eye(client.n)
        for _ in range(self.k0):
            own = self.x - np.linalg.solve(system, g + self.pi[i])
            self.pi[i] = self.pi[i] + sigma * (own - self.x)
        return own + self.pi[i] / sigma


class FedBuff:
    """Changes by k0 gradient steps from the model that the client was sent; those s steps old count 1/(1 + s)^a."""

    def __init__(self, clients, *, k0=5, lr=0.01, server_lr=1.0, a=0.5):
        self.clients, self.m, self.k0, self.lr, self.rate, self.a = clients, len(clients), k0, lr, server_lr, a
        self.x = np.zeros(clients[0].n)

    def begin(self, i):
        w = self.x
        for _ in range(self.k0):
            w = w - self.lr * self.clients[i].gradient(w)
        return w - self.x

    def step(self, uploads, ages):
        scaled = sum(change / (1 + s) ** self.a for change, s in zip(uploads.values(), ages, strict=True))
        self.x = self.x + self.rate * scaled / len(uploads)
