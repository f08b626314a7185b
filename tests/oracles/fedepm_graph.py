"""FedEPM on a graph without noise: an elastic net over each neighbourhood, node by node and number by number.

Source: docs/studies/graph-methods.md: alternating minimisation of Σ f_i(w_i) + Σ_ij W_ij φ(w_i − x_j), with the steps
of S. Zhou and G. Y. Li, "Exact penalty method for federated learning", 2022, arXiv 2208.11231, Algorithm 2. z_i⁰ = 0.
"""

import numpy as np

from .graphs import matrices
from .problems import zeros


def run(clients, selections, graph, *, k0=12, lam=None, eta=None, mu0=0.05, alpha=1.001, c=1e-8, step_scale="samples"):
    m = len(clients)
    share = len(selections[0]) / m
    eta = (0.02 * m + 1) * (share + 0.1) * 1e-5 if eta is None else eta
    lam = eta / 2 if lam is None else lam
    w = zeros(clients)
    z = zeros(clients)
    x = zeros(clients)
    yield np.array(x)
    for t, (W, chosen) in enumerate(zip(matrices(graph, m, len(selections)), selections, strict=True)):
        for i in chosen:
            given = sum(W[i, j] * x[j] for j in range(m))
            g = clients[i].gradient(given)
            for k in range(t * k0, (t + 1) * k0):
                mu = mu0 * (1 + c * np.sum((w[i] - given) ** 2)) * alpha ** (k + 1)
                if step_scale == "samples":
                    mu = mu / clients[i].d
                w[i] = nearest(W[i], x, lam, eta, mu, w[i] - g / mu)
            z[i] = w[i]
        x = [nearest(W[j], z, lam, eta, 0.0, 0 * z[j]) for j in range(m)]
        yield np.array(x)


def nearest(weights, points, lam, eta, mu, v):
    """argmin_w Σ_j weights_j (λ‖w − p_j‖₁ + (η/2)‖w − p_j‖²) + (μ/2)‖w − v‖², coordinate by coordinate."""
    used = [j for j in range(len(points)) if weights[j] > 0]
    columns = np.array([points[j] for j in used]).T
    return np.array([lowest(weights[used], values, lam, eta, mu, u) for values, u in zip(columns, v, strict=True)])


def lowest(a, values, lam, eta, mu, v):
    """The zero of the slope: between two points, where it is linear, or at a point, where it jumps."""

    def slope(w, side):
        signs = np.where(values < w, 1, np.where(values > w, -1, side))
        return np.sum(a * (lam * signs + eta * (w - values))) + mu * (w - v)

    for w in values:
        if slope(w, -1) <= 0 <= slope(w, 1):
            return w
    below = np.array([slope(w, 1) < 0 for w in values])
    return (eta * np.sum(a * values) + mu * v - lam * (np.sum(a[below]) - np.sum(a[~below]))) / (eta * np.sum(a) + mu)
