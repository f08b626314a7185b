"""Rates of FedDCD with other laws of selection, proven in docs/studies/selection.md."""

import numpy as np

from mpifed.core.typing import Array


def symmetric(theta: Array, size: int) -> float:
    """e_size(θ), the sum over all sets of ``size`` of the products of their θ_i."""
    e = np.zeros(size + 1)
    e[0] = 1.0
    for one in theta:
        e[1:] += one * e[:-1]
    return float(e[size])


def by_importance(a: Array, beta: Array, tau: int) -> float:
    """The factor of E G − G* per iteration with Λ = diag(1/a_i) and sets S drawn ∝ Σ a_i · Π β_i/a_i over S.

    1 − Σ β · e_{τ−2}(κ without its two largest) / Σ β_i e_{τ−1}(κ without κ_i), κ_i = β_i/a_i.
    See docs/studies/selection.md.
    """
    kappa = beta / a
    kappa = kappa / kappa.max()
    rest = [symmetric(np.delete(kappa, i), tau - 1) for i in range(len(kappa))]
    least = symmetric(np.sort(kappa)[:-2], tau - 2)
    return 1 - beta.sum() * least / float(beta @ rest) / float((beta / a).max())


def by_steps(alpha: float, beta: float, N: int, tau: int) -> float:
    """The factor of E G − G* where one client of τ is uniform among those that the others leave, whoever these are.

    1 − (τ − 1)/(τ (N − τ + 1)) · α/β; see docs/studies/selection.md.
    """
    return 1 - (tau - 1) / (tau * (N - tau + 1)) * alpha / beta
