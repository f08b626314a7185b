"""The proximal operator of a sum of elastic nets."""

import numpy as np

from mpifed.core.typing import Array


def elastic_net_mean(Z: Array, lam: float, eta: float) -> Array:
    """argmin_w Σ_i lam|w − z_i| + (eta/2)(w − z_i)² for each column of Z (m, n): (n,).

    If s of the z_i lie above it, the minimiser is w(s) = mean + (lam/eta)(2s − m)/m; if no s fits, it is one of the
    z_i. Either way it is the median of the 2m + 1 numbers z_1 … z_m, w(0) … w(m). Both lists are sorted, so bisection
    finds it.  Source: fedepm (Zhou, Li, arXiv:2208.11231, 2022), Lemma III.2, (15) with its sign corrected (errata).
    """
    # not Newton or subgradients: the median is exact, and takes the same steps whatever the numbers are
    m = len(Z)
    Z = np.sort(Z, axis=0)
    mean, slope = Z.mean(axis=0), Z.dtype.type(2 * lam / eta / m)
    low, high = np.zeros(Z.shape[1], np.int64), np.full(Z.shape[1], m)
    columns = np.arange(Z.shape[1])
    while (low < high).any():  # the least k with w(m − k) <= z_(k+1), z_(1) <= z_(2) <= …
        k = (low + high) // 2
        fits = mean + slope * (m / 2 - k).astype(Z.dtype) <= Z[np.minimum(k, m - 1), columns]
        low, high = np.where(fits, low, k + 1), np.where(fits, k, high)
    k = low  # of the m + 1 lowest numbers, k are z's and m + 1 − k are w's
    below = np.where(k > 0, Z[np.maximum(k - 1, 0), columns], -np.inf)
    return np.maximum(below, mean + slope * (m / 2 - k).astype(Z.dtype)).astype(Z.dtype)
