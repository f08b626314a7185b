"""What the eigenvalues of W say of a graph: how fast differences between its nodes fall."""

from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.typing import Array

DENSE = 500  # nodes of the largest graph whose eigenvalues are all computed
ROUNDS = 100  # restarts of Lanczos' method at most; it takes a minute for a million nodes


class Spectrum(NamedTuple):
    """``parts``: connected components. ``least`` and ``second``: the smallest and the second largest eigenvalue of W.

    They are NaN where they were not found in reasonable time.
    """

    parts: int
    least: float
    second: float

    @property
    def gap(self) -> float:
        """The spectral gap 1 − max(|λ₂|, |λ_m|): mixing once reduces the distance to the mean by 1 − gap at least."""
        return float(np.maximum(0.0, 1 - np.maximum(abs(self.second), abs(self.least))))


def spectrum(W: Any, symmetry: tuple[int, ...]) -> Spectrum:
    """The spectrum of a matrix (m, m), the same in all cyclic shifts of a grid of this shape; (): without symmetry."""
    m = W.shape[0]
    parts = int(sp.csgraph.connected_components(W, directed=False)[0])
    if m == 1:
        return Spectrum(1, 0.0, 0.0)
    if symmetry:
        row = np.zeros(m)
        row[W.indices[: W.indptr[1]]] = W.data[: W.indptr[1]]
        values = np.sort(np.fft.fftn(row.reshape(symmetry)).real.ravel())
    elif m <= DENSE:
        values = np.linalg.eigvalsh(W.toarray())
    else:
        values = np.concatenate([extreme(W, "SA", 1), extreme(W, "LA", 2)])
    return Spectrum(parts, float(values[0]), float(values[-2]))


def extreme(W: Any, which: str, count: int) -> Array:
    """The smallest (SA) or largest (LA) eigenvalues, rising; NaN where Lanczos' method does not converge."""
    linalg = sp.linalg
    start = 1 + np.sin(np.arange(W.shape[0]))
    try:
        found = linalg.eigsh(W, count, which=which, v0=start, tol=1e-6, maxiter=ROUNDS, return_eigenvectors=False)
    except linalg.ArpackNoConvergence:
        return np.full(count, np.nan)
    return np.sort(found)
