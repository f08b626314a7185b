"""The matrix W of every round, computed on every rank from the seed alone, and its spectrum."""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.graphs.graph import Edges, Graph, sum_at_ends

GRAPH = 0  # streams of a round: of its edges
LOSS = 1  # and of the edges that are lost
DIGITS = 1 << 20
DENSE = 500  # nodes of the largest graph whose eigenvalues are all computed
ROUNDS = 100  # restarts of Lanczos' method at most; it takes a minute for a million nodes


class Mixing(NamedTuple):
    """The weights of one round."""

    W: Any  # (m, m) scipy.sparse.csr_array, columns of a row rising; its entries are the edges and the diagonal
    degrees: Array  # (m,) numbers of neighbours
    edges: int


class Spectrum(NamedTuple):
    """Number of connected components of a graph, and smallest and second largest eigenvalue of its W.

    Eigenvalues are NaN where they could not be computed in reasonable time.
    """

    components: int
    min_eigenvalue: float
    second_eigenvalue: float

    @property
    def gap(self) -> float:
        """The spectral gap 1 − max(|λ₂|, |λ_m|): mixing once reduces the distance to the mean by 1 − gap at least."""
        return float(np.maximum(0.0, 1 - np.maximum(abs(self.second_eigenvalue), abs(self.min_eigenvalue))))


class Weights:
    """The weights of all rounds; those of round 0 are of the graph as it was drawn first, without lost edges."""

    def __init__(self, graph: Graph, seed: int, m: int) -> None:
        self.graph = graph
        self.seed = seed
        self.m = m
        self._edges = complete_weights(graph.edges(m, stream(seed, "graph", 0, GRAPH)), m)
        self.first = make_mixing(self._edges, m)
        self._round = 0
        self._last = self.first

    @cached_property
    def spectrum(self) -> Spectrum:
        """The spectrum of the graph as it was drawn first."""
        return compute_spectrum(self.first.W, self.graph.symmetry(self.m))

    @cached_property
    def min_eigenvalue(self) -> float:
        """A lower bound of the eigenvalues of the first W, rounded to six digits, the same on every machine.

        If they are unknown, it is that of Gershgorin, 2 min W_ii − 1. Lost edges do not lower them where weights are
        not negative; a graph that is redrawn may have lower ones in later rounds.
        """
        # Steps of methods follow from it, so that its last bits change every model, and eigenvalues differ between
        # versions of LAPACK in the fifteenth digit. One unit less keeps it a bound.
        smallest = self.spectrum.min_eigenvalue
        if np.isnan(smallest):
            smallest = float(2 * self.first.W.diagonal().min() - 1)
        return (round(smallest * DIGITS) - 1) / DIGITS

    def at(self, number: int) -> Mixing:
        """Return the weights of round 0, 1, 2 …"""
        if not number or not self.graph.is_changing:
            return self.first
        # A round asks several times, for products, ledgers and weights of neighbours, so the last weights are cached.
        if number != self._round:
            edges = self._edges
            if self.graph.is_redrawn:
                edges = complete_weights(self.graph.edges(self.m, stream(self.seed, "graph", number, GRAPH)), self.m)
            lost = None
            if self.graph.loss:
                lost = stream(self.seed, "graph", number, LOSS).random(len(edges.ends)) < self.graph.loss
            self._round = number
            self._last = make_mixing(edges, self.m, lost)
        return self._last


def complete_weights(edges: Edges, m: int) -> Edges:
    """Return the edges with all their weights, which are those of Metropolis by default."""
    if edges.weights is not None:
        return edges
    degrees = np.bincount(edges.ends.ravel(), minlength=m)
    weights = 1 / (1 + degrees[edges.ends].max(axis=1))
    return Edges(edges.ends, weights, 1 - sum_at_ends(edges.ends, weights, m))


def make_mixing(edges: Edges, m: int, lost: Array | None = None) -> Mixing:
    """Return the matrix W of weighted edges; the weight of a lost edge is added to the diagonal at both its ends."""
    ends, weights, own = edges
    assert weights is not None
    assert own is not None
    if lost is not None:
        own = own + sum_at_ends(ends[lost], weights[lost], m)
        ends = ends[~lost]
        weights = weights[~lost]
    nodes = np.arange(m)
    rows = np.concatenate([ends[:, 0], ends[:, 1], nodes])
    columns = np.concatenate([ends[:, 1], ends[:, 0], nodes])
    W = sp.csr_array((np.concatenate([weights, weights, own]), (rows, columns)), shape=(m, m))
    W.sort_indices()
    return Mixing(W, np.diff(W.indptr) - 1, len(ends))


def compute_spectrum(W: Any, symmetry: tuple[int, ...]) -> Spectrum:
    """Compute the spectrum of W (m, m), which all cyclic shifts of a grid of shape ``symmetry``, if any, preserve."""
    m = W.shape[0]
    parts = int(sp.csgraph.connected_components(W, directed=False)[0])
    if m == 1:
        return Spectrum(1, 0.0, 0.0)
    # A matrix that all cyclic shifts preserve is diagonal in the Fourier basis: its eigenvalues are the transform
    # of its first row, which takes m log m steps. A million nodes take a second, where Lanczos takes a minute.
    if symmetry:
        row = np.zeros(m)
        row[W.indices[: W.indptr[1]]] = W.data[: W.indptr[1]]
        values = np.sort(np.fft.fftn(row.reshape(symmetry)).real.ravel())
    elif m <= DENSE:
        values = np.linalg.eigvalsh(W.toarray())
    else:
        values = np.concatenate([extreme_eigenvalues(W, "SA", 1), extreme_eigenvalues(W, "LA", 2)])
    return Spectrum(parts, float(values[0]), float(values[-2]))


def extreme_eigenvalues(W: Any, which: str, count: int) -> Array:
    """Compute the smallest (SA) or largest (LA) eigenvalues, rising; NaN if Lanczos' method does not converge."""
    # scipy would begin at random, with other bits in every run; a vector of ones is an eigenvector.
    linalg = sp.linalg
    start = 1 + np.sin(np.arange(W.shape[0]))
    try:
        values = linalg.eigsh(W, count, which=which, v0=start, tol=1e-6, maxiter=ROUNDS, return_eigenvectors=False)
    except linalg.ArpackNoConvergence:
        return np.full(count, np.nan)
    return np.sort(values)
