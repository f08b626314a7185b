"""Accelerated FedDCD: three dual sequences and two draws of clients an iteration, all gradients at v.

Source: Z. Fan, H. Fang and M. P. Friedlander, "A dual approach for federated learning", 2022, arXiv 2201.11183,
Algorithm 2, with Λ = I/α or diag(1/α_i) and a factor eta of ŵ. The recorded model is the mean of the w_i of the second
draw.
"""

import math

import numpy as np

from .dual_oracle import NEWTON, alphas, conjugates, constants, length, solve
from .problems import zeros


def run(clients, selections, second, *, solver=NEWTON, r=None, kappa=None, dual=False, **options):
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
        eta = length(options.get("eta", 1.0), options.get("schedule"), t)
        a = math.sqrt(kappa) / (1 / r_now + math.sqrt(kappa))
        b = kappa * a * r_now**2
        v = [(1 - a) * y[i] + a * z[i] for i in everyone]
        u = [(a**2 * z[i] + b * v[i]) / (a**2 + b) for i in everyone]
        _, steps = move(first_draw, eta)
        y = [v[i] - steps.get(i, 0.0) for i in everyone]
        x, steps = move(second_draw, a * r_now / (a**2 + b) * eta)
        z = [u[i] - steps.get(i, 0.0) for i in everyone]
        yield x, {"dual_objective": conjugates(clients, y)} if dual else {}
