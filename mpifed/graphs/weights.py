"""The matrix W of every round, made on every rank from the seed alone, and what its eigenvalues say of the graph."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.graphs.graph import Edges, Graph, at_ends

GRAPH = 0  # the streams of a round: of its edges
LOSS = 1  # and of those that are lost
DIGITS = 1 << 20
DENSE = 500  # nodes of the largest graph whose eigenvalues are all computed
ROUNDS = 100  # restarts of Lanczos' method at most; it takes a minute for a million nodes


class Mixing(NamedTuple):
    """The weights of a round."""

    W: Any  # (m, m) scipy.sparse.csr_array, columns of a row rising; its entries are the edges and the diagonal
    degrees: Array  # (m,) numbers of neighbours
    edges: int


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


class Weights:
    """The weights of all rounds. ``at(0)`` are those of the graph as it was drawn first, without lost edges."""

    def __init__(self, graph: Graph, seed: int, m: int) -> None:
        self.graph = graph
        self.seed = seed
        self.m = m
        self._edges = completed(graph.edges(m, stream(seed, "graph", 0, GRAPH)), m)
        self.first = mixing(self._edges, m)
        self._round = 0
        self._last = self.first

    @cached_property
    def spectrum(self) -> Spectrum:
        """The spectrum of the graph as it was drawn first."""
        return spectrum(self.first.W, self.graph.symmetry(self.m))

    @cached_property
    def least(self) -> float:
        """A lower bound of the eigenvalues of the first W, rounded to six digits, the same on every machine.

        Where they are not known, it is that of Gershgorin, 2 min W_ii − 1. Lost edges do not lower them where weights
        are not negative; a graph that is redrawn may have lower ones in later rounds.
        """
        # Steps of methods follow from it, so that its last bits would be those of every model: eigenvalues differ
        # between versions of LAPACK in the fifteenth digit. One unit less keeps it a bound.
        least = self.spectrum.least
        if np.isnan(least):
            least = float(2 * self.first.W.diagonal().min() - 1)
        return (round(least * DIGITS) - 1) / DIGITS

    def at(self, number: int) -> Mixing:
        """The weights of round 0, 1, 2 …"""
        if not number or not self.graph.changing:
            return self.first
        # A round asks several times, for products, ledgers and weights of neighbours; the last answer is kept.
        if number != self._round:
            edges = self._edges
            if self.graph.drawn_anew:
                edges = completed(self.graph.edges(self.m, stream(self.seed, "graph", number, GRAPH)), self.m)
            lost = None
            if self.graph.loss:
                lost = stream(self.seed, "graph", number, LOSS).random(len(edges.ends)) < self.graph.loss
            self._round = number
            self._last = mixing(edges, self.m, lost)
        return self._last


def completed(edges: Edges, m: int) -> Edges:
    """The edges with all their weights: those of Metropolis where none are given."""
    if edges.weights is not None:
        return edges
    degrees = np.bincount(edges.ends.ravel(), minlength=m)
    weights = 1 / (1 + degrees[edges.ends].max(axis=1))
    return Edges(edges.ends, weights, 1 - at_ends(edges.ends, weights, m))


def mixing(edges: Edges, m: int, lost: Array | None = None) -> Mixing:
    """The matrix of edges with their weights; the weight of a lost one goes to the diagonal at both its ends."""
    ends, weights, own = edges
    assert weights is not None
    assert own is not None
    if lost is not None:
        own = own + at_ends(ends[lost], weights[lost], m)
        ends = ends[~lost]
        weights = weights[~lost]
    nodes = np.arange(m)
    rows = np.concatenate([ends[:, 0], ends[:, 1], nodes])
    columns = np.concatenate([ends[:, 1], ends[:, 0], nodes])
    W = sp.csr_array((np.concatenate([weights, weights, own]), (rows, columns)), shape=(m, m))
    W.sort_indices()
    return Mixing(W, np.diff(W.indptr) - 1, len(ends))


def spectrum(W: Any, symmetry: tuple[int, ...]) -> Spectrum:
    """The spectrum of a matrix (m, m), the same in all cyclic shifts of a grid of this shape; (): without symmetry."""
    m = W.shape[0]
    parts = int(sp.csgraph.connected_components(W, directed=False)[0])
    if m == 1:
        return Spectrum(1, 0.0, 0.0)
    # A matrix that is the same in all cyclic shifts is diagonal in the Fourier basis: its eigenvalues are the transform
    # of its first row, which takes m log m steps. A million nodes take a second, where Lanczos takes a minute.
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
    # scipy begins at random, with other bits in every run. A vector of ones would not do, for it is an eigenvector.
    linalg = sp.linalg
    start = 1 + np.sin(np.arange(W.shape[0]))
    try:
        found = linalg.eigsh(W, count, which=which, v0=start, tol=1e-6, maxiter=ROUNDS, return_eigenvectors=False)
    except linalg.ArpackNoConvergence:
        return np.full(count, np.nan)
    return np.sort(found)
