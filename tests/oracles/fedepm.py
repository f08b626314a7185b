"""FedEPM without noise: proximal steps on an exact penalty, the server solves an elastic net.

Source: S. Zhou and G. Y. Li, "Exact penalty method for federated learning", 2022, arXiv 2208.11231, Algorithms 1 and 2,
equations (15), (16), (19)–(22); constants of section VII.B. Two things differ from the print: the sign in (15) is
put right, w(s) = mean + (λ/η)(2s/m − 1) with s values above it, and the step is μ_i/d_i (``step_scale``: "samples"),
as in the authors' program. z_i⁰ = 0.
"""

import numpy as np

from .problems import zeros


def run(clients, selections, *, k0=12, lam=None, eta=None, mu0=0.05, alpha=1.001, c=1e-8, step_scale="samples"):
    m = len(clients)
    x = np.zeros(clients[0].n)
    w, z = zeros(clients), zeros(clients)
    yield x
    for t, chosen in enumerate(selections):
        eta_now = (0.02 * m + 1) * (len(chosen) / m + 0.1) * 1e-5 if eta is None else eta
        lam_now = eta_now / 2 if lam is None else lam
        for i in chosen:
            g = clients[i].gradient(x)
            for k in range(t * k0, (t + 1) * k0):
                gap = w[i] - x
                mu = mu0 * (1 + c * (gap @ gap)) * alpha ** (k + 1)
                if step_scale == "samples":
                    mu = mu / clients[i].d
                w[i] = x + soft(mu * gap - g, lam_now) / (eta_now + mu)  # (20)
            z[i] = w[i]  # (21)
        x = elastic_net(z, lam_now, eta_now)  # (19)
        yield x


def soft(v, a):
    """(2): soft thresholding."""
    return np.where(v > a, v - a, np.where(v < -a, v + a, 0.0))


def elastic_net(points, lam, eta):
    """(16): argmin Σ_i λ‖w − w_i‖₁ + (η/2)‖w − w_i‖², coordinate by coordinate."""
    return np.array([elastic_net_1d(values, lam, eta) for values in np.transpose(points)])


def elastic_net_1d(values, lam, eta):
    """w(s) of (15) where exactly s values lie above it; else the value at which 0 is a subgradient."""
    m = len(values)
    for s in range(m + 1):
        w = np.mean(values) + lam / eta * (2 * s / m - 1)
        if np.sum(values > w) == s:
            return w
    for w in values:
        slope = eta * (m * w - np.sum(values)) + lam * (np.sum(values < w) - np.sum(values > w))
        if abs(slope) <= lam * np.sum(values == w):
            return w
    raise AssertionError("a convex function has a minimiser")
