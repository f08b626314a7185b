"""Proximal operators and inexact solvers that algorithms share."""
from __future__ import annotations

import numpy as np

from mpifed.data.clients import Array
from mpifed.local import Local


def soft(V: Array, lam: float) -> Array:
    """The soft threshold sign(v)·max(|v| − lam, 0), elementwise: the proximal operator of lam|·|."""
    return np.sign(V) * np.maximum(np.abs(V) - lam, 0)


def elastic_net_mean(Z: Array, lam: float, eta: float) -> Array:
    """argmin_w Σ_i lam|w − z_i| + (eta/2)(w − z_i)² for each column of Z (m, n): (n,).

    With s of the z_i above it the minimiser is w(s) = mean + (lam/eta)(2s − m)/m, or one of the z_i where no s fits:
    the middle one of the 2m + 1 numbers z_1 … z_m, w(0) … w(m). Both are sorted, so the middle is found by bisection.
    Source: fedepm Lemma III.2, (15) with its sign put right (errata).
    """
    m = len(Z)
    Z = np.sort(Z, axis=0)
    mean, slope = Z.mean(axis=0), Z.dtype.type(2 * lam / eta / m)
    low, high = np.zeros(Z.shape[1], np.int64), np.full(Z.shape[1], m)
    columns = np.arange(Z.shape[1])
    while (low < high).any():                      # the least k with w(m − k) <= z_(k+1), z_(1) <= z_(2) <= …
        k = (low + high) // 2
        fits = mean + slope * (m / 2 - k).astype(Z.dtype) <= Z[np.minimum(k, m - 1), columns]
        low, high = np.where(fits, low, k + 1), np.where(fits, k, high)
    k = low                                        # of the m + 1 lowest numbers, k are z's and m + 1 − k are w's
    below = np.where(k > 0, Z[np.maximum(k - 1, 0), columns], -np.inf)
    return np.maximum(below, mean + slope * (m / 2 - k).astype(Z.dtype)).astype(Z.dtype)


def newton(f: Local, Y: Array, W: Array, tol: float, most: int = 100) -> Array:
    """argmin f_i(w) − ⟨y_i, w⟩ from W (c, n), until ‖∇f_i(w) − y_i‖ <= tol: Newton's method.

    Newton systems by conjugate gradients, steps halved while the gradient's norm does not fall (f_i is strongly convex).
    A client who has arrived rests, so nobody's result depends on his neighbours.
    """
    W = W.copy()
    active = np.arange(len(f))
    G = f.grad(W) - Y
    norm = np.sqrt(np.vecdot(G, G))
    for _ in range(most):
        far = norm > tol
        active, G, norm = active[far], G[far], norm[far]
        if not len(active):
            break
        part = f.take(active)
        step = conjugate_gradients(part.hessian(W[active]), G, np.minimum(0.1, norm))
        length, better = np.ones((len(active), 1), W.dtype), np.zeros(len(active), bool)
        start, best = W[active], G.copy()
        least = norm.copy()
        for _ in range(30):
            trial = start - length * step
            H = part.grad(trial) - Y[active]
            size = np.sqrt(np.vecdot(H, H))
            good = ~better & (size < norm)
            W[active[good]], best[good], least[good] = trial[good], H[good], size[good]
            better |= good
            if better.all():
                break
            length = np.where(better[:, None], length, length / 2)
        active, G, norm = active[better], best[better], least[better]   # who cannot improve is at rounding
    return W


def conjugate_gradients(apply: object, B: Array, accuracy: Array) -> Array:
    """Solutions (c, n) of the systems apply(X) = B to relative residuals ``accuracy`` (c,), each client for itself."""
    X, R = np.zeros_like(B), B.copy()
    P, rho = R.copy(), np.vecdot(R, R)
    stop = rho * accuracy**2
    for _ in range(2 * B.shape[1]):
        going = rho > stop
        if not going.any():
            break
        Q = apply(P)  # type: ignore[operator]
        curvature = np.vecdot(P, Q)
        going &= curvature > 0
        step = np.where(going, rho / np.where(going, curvature, 1), 0)[:, None].astype(B.dtype)
        X += step * P
        R -= step * Q
        rho, old = np.where(going, np.vecdot(R, R), 0), rho
        P = R + np.where(going, rho / np.where(going, old, 1), 0)[:, None].astype(B.dtype) * P
    return X


def gradient_descent(f: Local, Y: Array, W: Array, steps: int, rate: float) -> Array:
    """``steps`` gradient steps of size ``rate`` on f_i(w) − ⟨y_i, w⟩ from W (c, n)."""
    for _ in range(steps):
        W = W - rate * (f.grad(W) - Y)
    return W
