"""Why AccFedDCD is not asynchronous: with clients that arrive unequally often its momentum diverges, FedDCD goes on."""

from functools import cache

import numpy as np
import pytest

from tests.oracles import event_loop

M = 20
N = 6
TAU = 10
ALPHA = 1.0
BETA = 100.0


class Nobody:
    """A method that does nothing: only who arrives counts."""

    m = M

    def begin(self, i):
        return None

    def step(self, uploads, ages):
        pass


def arriving(sigma, count):
    """Who arrives in each step: TAU of clients whose speeds have the logarithmic standard deviation ``sigma``."""
    rng = np.random.default_rng(3)
    seconds, jitter = np.exp(sigma * rng.standard_normal(M)), np.exp(0.3 * rng.standard_normal((M, count)))
    return [one.arrived for one in event_loop.run(Nobody(), lambda i, k: seconds[i] * jitter[i, k], count, TAU)]


@cache
def inverses():
    """The inverses of Q_i with eigenvalues from ALPHA to BETA, and b_i, of f_i = ½⟨x, Q_i x⟩ − ⟨b_i, x⟩."""
    rng = np.random.default_rng(0)
    values = np.geomspace(ALPHA, BETA, N)
    bases = [np.linalg.qr(rng.standard_normal((N, N)))[0] for _ in range(M)]
    return np.array([U @ np.diag(1 / values) @ U.T for U in bases]), rng.standard_normal((M, N))


def dual(y):
    """Σ f_i*(y_i)."""
    Q, b = inverses()
    return 0.5 * np.einsum("ij,ijk,ik->", y + b, Q, y + b)


def step(point, selected):
    """α(w_i − mean) of the selected clients, with exact w_i at the point (M, N)."""
    Q, b = inverses()
    w = np.matvec(Q[selected], (point + b)[selected])
    return ALPHA * (w - w.mean(axis=0))


def ends(sets):
    """The dual objective over its first value: FedDCD after one set a step, AccFedDCD (Algorithm 2) after two."""
    r, kappa = (TAU - 1) / (M - 1), ALPHA / BETA
    a = np.sqrt(kappa) / (1 / r + np.sqrt(kappa))
    b = kappa * a * r**2
    x, y, z = np.zeros((3, M, N))
    for first, second in zip(sets[::2], sets[1::2], strict=True):
        x[first] -= step(x, first)
        v = (1 - a) * y + a * z
        y, z = v.copy(), (a * a * z + b * v) / (a * a + b)
        y[first] -= step(v, first)
        z[second] -= a * r / (a * a + b) * step(v, second)
        if not dual(y) < 1e6 * dual(np.zeros((M, N))):
            return dual(x) / dual(np.zeros((M, N))), np.inf
    return dual(x) / dual(np.zeros((M, N))), dual(y) / dual(np.zeros((M, N)))


@pytest.mark.parametrize(("sigma", "diverges"), [(0.0, False), (2.0, True)])
def test_momentum_needs_selections_that_are_uniform(sigma, diverges):
    plain, accelerated = ends(arriving(sigma, 6000))
    assert plain < 1
    assert (accelerated > 1e5) == diverges
    assert diverges or accelerated < plain
