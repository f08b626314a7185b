"""FedEPM, and FedAvg and FedProx with its steps, without noise."""

import numpy as np

from .local_steps import SQRT_SAMPLES, step_size
from .problems import zeros


def fedepm(clients, selections, *, lam=None, eta=None, **options):
    """FedEPM without noise: proximal steps on an exact penalty, the server solves an elastic net.

    Source: S. Zhou and G. Y. Li, "Exact penalty method for federated learning", 2022, arXiv 2208.11231, Algorithms 1
    and 2, equations (16), (19)–(22); constants of section VII.B. (16) and (20) are minimised as they stand, for (15) is
    printed with a wrong sign. The step is μ_i/d_i (``step_scale``: "samples"), as in the authors' program. z_i⁰ = 0.
    """
    m = len(clients)
    x = np.zeros(clients[0].n)
    w, z = zeros(clients), zeros(clients)
    yield x
    for t, chosen in enumerate(selections):
        penalty = penalties(lam, eta, m, len(chosen))
        for i in chosen:
            z[i] = w[i] = descend(clients[i], w[i], x, t, np.ones(1), [x], penalty, **options)  # (21)
        x = nearest(np.ones(m), z, penalty, 0.0, x)  # (19)
        yield x


def penalties(lam, eta, m, count):
    """λ and η of section VII.B, unless they are given."""
    eta = (0.02 * m + 1) * (count / m + 0.1) * 1e-5 if eta is None else eta
    return eta / 2 if lam is None else lam, eta


def descend(client, w, x, t, weights, points, penalty, *, k0=12, mu0=0.05, alpha=1.001, c=1e-8, step_scale="samples"):
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


def sfedprox(clients, selections, *, k0=12, step=SQRT_SAMPLES, average="trained", mu=1e-5, inner=3):
    """SFedProx without noise: every local iteration is a few gradient steps on f_i(w) + (mu/2)‖w − x‖².

    Source: S. Zhou and G. Y. Li, "Exact penalty method for federated learning", 2022, arXiv 2208.11231, Algorithms 3
    and 4, equations (34), (36)–(38). ``average``: over the set that trained, or as printed, the last uploads of the new
    set before it trains; z_i⁰ = 0.
    """
    x = np.zeros(clients[0].n)
    z = zeros(clients)
    yield x
    for t, chosen in enumerate(selections):
        if average == "new":
            x = sum(z[i] for i in chosen) / len(chosen)  # (34)
        for i in chosen:
            w = x
            for k in range(t * k0, (t + 1) * k0):
                gamma = step_size(step, k, k0, clients[i].d)
                for _ in range(inner):  # Algorithm 4
                    w = w - gamma * (clients[i].gradient(w) + mu * (w - x))
            z[i] = w  # (37)
        if average == "trained":
            x = sum(z[i] for i in chosen) / len(chosen)
        yield x


def sfedavg(clients, selections, **options):
    """SFedAvg without noise: FedAvg with the step of FedEPM (38), averaged over a set of clients.

    Source: S. Zhou and G. Y. Li, "Exact penalty method for federated learning", 2022, arXiv 2208.11231, Algorithm 3,
    equations (34), (35), (37), (38): a local iteration is one gradient step, where SFedProx has several (36).
    """
    yield from sfedprox(clients, selections, mu=0.0, inner=1, **options)
