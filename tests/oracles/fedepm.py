"""FedEPM without noise: proximal steps on an exact penalty, the server solves an elastic net.

Source: S. Zhou and G. Y. Li, "Exact penalty method for federated learning", 2022, arXiv 2208.11231, Algorithms 1 and 2,
equations (16), (19)–(22); constants of section VII.B. (16) and (20) are minimised as they stand, for (15) is printed
with a wrong sign. The step is μ_i/d_i (``step_scale``: "samples"), as in the authors' program. z_i⁰ = 0.
"""

import numpy as np

from .problems import zeros


def run(clients, selections, *, lam=None, eta=None, **options):
    m = len(clients)
    x = np.zeros(clients[0].n)
    w, z = zeros(clients), zeros(clients)
    yield x
    for t, chosen in enumerate(selections):
        penalty = penalties(lam, eta, m, len(chosen))
        for i in chosen:
            z[i] = w[i] = trained(clients[i], w[i], x, t, np.ones(1), [x], penalty, **options)  # (21)
        x = nearest(np.ones(m), z, penalty, 0.0, x)  # (19)
        yield x


def penalties(lam, eta, m, count):
    """λ and η of section VII.B, unless they are given."""
    eta = (0.02 * m + 1) * (count / m + 0.1) * 1e-5 if eta is None else eta
    return eta / 2 if lam is None else lam, eta


def trained(client, w, x, t, weights, points, penalty, *, k0=12, mu0=0.05, alpha=1.001, c=1e-8, step_scale="samples"):
    """w_i after the k0 steps (20) of round t, with the gradient at x."""
    g = client.gradient(x)
    for k in range(t * k0, (t + 1) * k0):
        mu = mu0 * (1 + c * np.sum((w - x) ** 2)) * alpha ** (k + 1)
        if step_scale == "samples":
            mu = mu / client.d
        w = nearest(weights, points, penalty, mu, w - g / mu)
    return w


def nearest(weights, points, penalty, mu, v):
    """(16), (20): argmin_w Σ_j weights_j (λ‖w − p_j‖₁ + (η/2)‖w − p_j‖²) + (μ/2)‖w − v‖², coordinate by coordinate."""
    used = [j for j in range(len(points)) if weights[j] > 0]
    columns = np.array([points[j] for j in used]).T
    return np.array([lowest(weights[used], values, *penalty, mu, u) for values, u in zip(columns, v, strict=True)])


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
