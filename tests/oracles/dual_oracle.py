"""w = argmin f_i(w) − ⟨y, w⟩, the gradient of f_i* at y: (1) of FedDCD, exactly or by gradient steps (section 5).

Source: Z. Fan, H. Fang and M. P. Friedlander, "A dual approach for federated learning", 2022, arXiv 2201.11183.
"""

import math

import numpy as np

NEWTON = {"name": "newton", "tol": 1e-10}


def constants(clients):
    """α and β of Assumptions 3.1 and 3.2, the same for all clients."""
    return min(client.convexity for client in clients), max(client.lipschitz for client in clients)


def alphas(clients, scaling):
    """α_i of Λ = diag(1/α_i) ("own"), or their minimum for all, Λ = I/α ("common")."""
    own = [client.convexity for client in clients]
    return own if scaling == "own" else [min(own)] * len(own)


def length(eta, schedule, t):
    """η of iteration t = 0, 1 …: ``eta``, or a/log2(t + 2)."""
    return eta if schedule is None else schedule["a"] / math.log2(t + 2)


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
