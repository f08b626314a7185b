"""Accelerated FedDCD: three dual sequences and two draws of clients an iteration, all gradients at v.

Source: Z. Fan, H. Fang and M. P. Friedlander, "A dual approach for federated learning", 2022, arXiv 2201.11183,
Algorithm 2, with Λ = I/α or diag(1/α_i) and a factor eta of ŵ. The recorded model is the mean of the w_i of the second
draw.
"""

from __future__ import annotations

import math

import numpy as np

from .dual_oracle import NEWTON, alphas, conjugates, constants, solve, step
from .problems import trajectory, zeros


def run(clients, selections, second, *, solver=NEWTON, r=None, kappa=None, dual=False, **options):
    alpha, beta = constants(clients)
    eta, schedule = options.get("eta", 1.0), options.get("schedule")
    own = alphas(clients, options.get("scaling", "common"))
    kappa = alpha / beta if kappa is None else kappa
    everyone = range(len(clients))
    y, z, w = zeros(clients), zeros(clients), zeros(clients)
    models, duals = [np.zeros(clients[0].n)], [conjugates(clients, y)]
    for t, (first_draw, second_draw) in enumerate(zip(selections, second, strict=True)):
        share = (len(first_draw) - 1) / (len(clients) - 1)
        r_now = share if r is None else r
        a = math.sqrt(kappa) / (1 / r_now + math.sqrt(kappa))
        b = kappa * a * r_now**2
        v = [(1 - a) * y[i] + a * z[i] for i in everyone]
        u = [(a**2 * z[i] + b * v[i]) / (a**2 + b) for i in everyone]
        y = list(v)
        for i in first_draw:
            w[i] = solve(clients[i], v[i], w[i], solver, alpha, beta, share)
        mean = sum(own[i] * w[i] for i in first_draw) / sum(own[i] for i in first_draw)
        for i in first_draw:
            y[i] = v[i] - step(eta, schedule, t) * own[i] * (w[i] - mean)
        z = list(u)
        for i in second_draw:
            w[i] = solve(clients[i], v[i], w[i], solver, alpha, beta, share)
        mean = sum(own[i] * w[i] for i in second_draw) / sum(own[i] for i in second_draw)
        for i in second_draw:
            z[i] = u[i] - a * r_now / (a**2 + b) * step(eta, schedule, t) * own[i] * (w[i] - mean)
        models.append(mean)
        duals.append(conjugates(clients, y))
    return trajectory(clients, models, **({"dual_objective": np.array(duals)} if dual else {}))
