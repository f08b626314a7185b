"""Dual coordinate descent."""

import math

import numpy as np

from .problems import zeros
from .synchronous import Server

NEWTON = {"name": "newton", "tol": 1e-10}


def constants(clients):
    """α and β of Assumptions 3.1 and 3.2, the same for all clients."""
    return min(client.convexity for client in clients), max(client.lipschitz for client in clients)


def alphas(clients, scaling):
    """α_i of Λ = diag(1/α_i) ("own"), or their minimum for all, Λ = I/α ("common")."""
    own = [client.convexity for client in clients]
    return own if scaling == "own" else [min(own)] * len(own)


def length(eta, t):
    """η of iteration t = 0, 1 …: ``eta``, or a/log2(t + 2)."""
    return eta["a"] / math.log2(t + 2) if isinstance(eta, dict) else eta


def solve(client, y, start, solver, alpha, beta, share):
    """The primal model of y; gradient steps begin at ``start``, the client's last. share = (τ − 1)/(N − 1)."""
    if solver["name"] == "newton":
        return minimise(client, y, start)
    w = start
    for _ in range(steps(solver, alpha, beta, share)):
        w = w - (client.gradient(w) - y) / beta
    return w


def minimise(client, y, start):
    """Newton's method with backtracking, to rounding error."""
    w = start
    for _ in range(60):
        g = client.gradient(w) - y
        if np.linalg.norm(g) <= 1e-13:
            break
        direction = np.linalg.solve(client.hessian(w), g)
        length = 1.0
        while length > 1e-3 and np.linalg.norm(client.gradient(w - length * direction) - y) > np.linalg.norm(g):
            length /= 2
        w = w - length * direction
    return w


def steps(solver, alpha, beta, share):
    """The number of gradient steps: given, or the fewest k with (1 − α/β)^(2k) <= δ."""
    if "steps" in solver:
        return solver["steps"]
    delta = solver["delta"]
    if delta == "theorem":  # Theorem 5.2
        delta = (1 - share * alpha / (32 * beta)) / 4
    k = 0
    while (1 - alpha / beta) ** (2 * k) > delta:
        k += 1
    return k


def conjugates(clients, y):
    """G(y) = Σ f_i*(y_i): (D)."""
    total = 0.0
    for client, dual in zip(clients, y, strict=True):
        w = minimise(client, dual, np.zeros(client.n))
        total += dual @ w - client.value(w)
    return total


class FedDCD(Server):
    """FedDCD: dual coordinate descent over the chosen clients, exact or inexact.

    Source: Z. Fan, H. Fang and M. P. Friedlander, "A dual approach for federated learning", 2022, arXiv 2201.11183,
    Algorithm 1, equations (1), (2), (7), with Λ = I/α or diag(1/α_i). The recorded model is the mean of the round's
    w_i.
    """

    eta = 1.0
    solver = NEWTON
    dual = False
    scaling = "common"
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
            self.y[i] = self.y[i] - length(self.eta, self.t) * self.own[i] * (self.w[i] - self.x)  # (2)
        self.t += 1

    def shows(self):
        return {"dual_objective": conjugates(self.clients, self.y)} if self.dual else {}


def accfeddcd(clients, selections, second, *, solver=NEWTON, r=None, kappa=None, dual=False, **options):
    """Accelerated FedDCD: three dual sequences and two draws of clients an iteration, all gradients at v.

    Source: Z. Fan, H. Fang and M. P. Friedlander, "A dual approach for federated learning", 2022, arXiv 2201.11183,
    Algorithm 2, with Λ = I/α or diag(1/α_i) and a factor eta of ŵ. The recorded model is the mean of the w_i of the
    second draw.
    """
    alpha, beta = constants(clients)
    own = alphas(clients, options.get("scaling", "common"))
    kappa = alpha / beta if kappa is None else kappa
    everyone = range(len(clients))
    x = np.zeros(clients[0].n)
    y = zeros(clients)
    z = zeros(clients)
    w = zeros(clients)

    def move(chosen, scale):
        """The mean of the chosen clients' solutions at v, and their ŵ times ``scale``."""
        for i in chosen:
            w[i] = solve(clients[i], v[i], w[i], solver, alpha, beta, share)
        mean = sum(own[i] * w[i] for i in chosen) / sum(own[i] for i in chosen)
        return mean, {i: scale * own[i] * (w[i] - mean) for i in chosen}

    yield x, {"dual_objective": conjugates(clients, y)} if dual else {}
    for t, (first_draw, second_draw) in enumerate(zip(selections, second, strict=True)):
        share = (len(first_draw) - 1) / (len(clients) - 1)
        r_now = share if r is None else r
        eta = length(options.get("eta", 1.0), t)
        a = math.sqrt(kappa) / (1 / r_now + math.sqrt(kappa))
        b = kappa * a * r_now**2
        v = [(1 - a) * y[i] + a * z[i] for i in everyone]
        u = [(a**2 * z[i] + b * v[i]) / (a**2 + b) for i in everyone]
        _, steps = move(first_draw, eta)
        y = [v[i] - steps.get(i, 0.0) for i in everyone]
        x, steps = move(second_draw, a * r_now / (a**2 + b) * eta)
        z = [u[i] - steps.get(i, 0.0) for i in everyone]
        yield x, {"dual_objective": conjugates(clients, y)} if dual else {}
