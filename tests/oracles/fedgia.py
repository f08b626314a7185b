"""FedGiA: chosen clients take k0 steps of inexact ADMM with one gradient, the others one gradient step.

Source: S. Zhou and G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning", 2022, arXiv 2205.01438,
Algorithm 1, equations (11)–(17); H_i and t of Table III, with the μ/d_i of Example V.3 in Example V.2 too;
σ = t max r_i/m; x_i⁰ = 0; π_i⁰ = 0, or with ``start`` minus the gradient there. With ``adaptive``, which is not the
paper's, the server chooses σ of the next round by the curvature along its last step and by its error, as Y. Malitsky
and K. Mishchenko choose a step size ("Adaptive gradient descent without descent", 2020, arXiv 1910.09529), and takes
back a step that was too long.
"""

import math

import numpy as np

from .problems import LeastSquares, zeros


def run(clients, selections, *, k0=10, H="diagonal", t=None, adaptive=False, start="zero"):
    m, n = len(clients), clients[0].n
    steepest = max(client.lipschitz for client in clients) / m
    sigma = (table_3(clients) if t is None else t) * steepest
    x = np.zeros(n)
    pi = zeros(clients)
    z = zeros(clients)
    if start == "-gradient":
        pi = [-client.gradient(x) / m for client in clients]
        x = sum(pi) / (m * sigma)
    yield x, {"penalty": sigma} if adaptive else {}
    last = None  # the model before, and σ(x − x⁺) and its error there
    for chosen in selections:
        for i in range(m):
            g = clients[i].gradient(x) / m
            if i in chosen:
                own, pi[i] = trained(x, g, pi[i], metric(clients[i], H) / m, sigma, k0)
                z[i] = own + pi[i] / sigma  # (14)
            else:
                pi[i] = -g  # (16)
                z[i] = x - g / sigma  # (17)
        after = sum(z) / m  # (11)
        if adaptive:
            drop = sigma * (x - after)
            error = sum(length(clients[i].gradient(x) / m + sigma * (z[i] - x)) for i in range(m)) / (4 * m)
            if last is None:
                last = x, drop, error
            else:
                change, moved = length(drop - last[1]), length(x - last[0])
                c = min((change - error - last[2]) / moved, steepest)
                if c > 2 * sigma:
                    after, last = last[0], None
                    while sigma < c:
                        sigma *= 2
                else:
                    wanted = 2 * min((change + error + last[2]) / moved, steepest)
                    sigma, last = next_penalty(sigma, wanted), (x, drop, error)
        x = after
        yield x, {"penalty": sigma} if adaptive else {}


def trained(x, g, pi, H, sigma, k0):
    """x_i and π_i after k0 steps from the model x with the gradient g."""
    for _ in range(k0):
        own = x - np.linalg.solve(H + sigma * np.eye(len(x)), g + pi)  # (12)
        pi = pi + sigma * (own - x)  # (13)
    return own, pi


def length(v):
    return np.sqrt(np.sum(v * v))


def next_penalty(sigma, wanted):
    """The one of σ/2, σ, 2σ, 4σ … whose ratio to the wanted one is nearest to 1."""
    return min((sigma * 2.0**k for k in range(-1, 60)), key=lambda s: abs(np.log(s / wanted)))


def metric(client, H):
    """H_i of Table III."""
    return {
        "gram": client.majorant,
        "diagonal": client.lipschitz * np.eye(client.n),
        "zero": np.zeros((client.n, client.n)),
    }[H]


def table_3(clients):
    """t of Table III; d is the number of all samples."""
    if isinstance(clients[0], LeastSquares):
        return 0.15
    return max(0.025, 4 * math.log(sum(client.d for client in clients)) / clients[0].n)
