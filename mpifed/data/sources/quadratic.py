"""Quadratic functions ½xᵀQ_i x − b_iᵀx: random ones, those of a lower bound, and one tridiagonal matrix for all."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core import sparse as sp
from mpifed.core.promises import Supports, supporting
from mpifed.core.streams import stream
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import ClientByClient, Data, Dataset, GeneratedDataset


class Matrices(ClientByClient):
    """Base of quadratic functions, whose ``draw`` returns a matrix Q_i (n, n) as X and a vector b_i (n,) as y."""

    def __init__(self, source: Any, seed: int, dtype: str) -> None:
        super().__init__(source, seed, dtype)
        self.n = source.features
        self.sizes = np.full(self.m, self.n, dtype=np.int64)


class Quadratics(Matrices):
    """Random matrices with eigenvalues in [mu, L] and random vectors; each client has its own random stream."""

    def draw(self, i: int) -> tuple[Array, Array]:
        rng = stream(self.seed, "data", i + 1)
        smallest = self.source.mu
        largest = self.largest(i)
        eigenvalues = rng.uniform(smallest, largest, size=self.n)
        eigenvalues[[0, -1]] = smallest, largest
        U, R = np.linalg.qr(rng.standard_normal((self.n, self.n)))
        # QR is unique up to signs, which LAPACK chooses; without the signs of R, U is uniform over all rotations.
        U = U * np.copysign(1.0, np.diagonal(R))
        Q = (U * eigenvalues) @ U.T
        return (Q + Q.T) / 2, rng.standard_normal(self.n)

    def largest(self, i: int) -> float:
        """Return the largest eigenvalue of Q_i."""
        return self.source.L


class RandomQuadratic(Data, tag="quadratic"):
    """Quadratic functions f_i(x) = ½xᵀQ_i x - b_iᵀx with random Q_i (n, n) and standard normal b_i (n,).

    Q_i = U diag(e) Uᵀ with a uniformly random rotation U, e_1 = mu, e_n = L, and the other eigenvalues uniform in
    [mu, L].
    """

    # Generated client by client from the seed: no private samples, and the same ones on every rank.
    supports = Supports.EVERYTHING
    options = supporting("features", "mu", "L")

    objective = "quadratic"

    features: Annotated[int, Meta(ge=1, le=10**8, description="number of unknowns n")] = 20
    mu: Annotated[float, Meta(gt=0, description="smallest eigenvalue of each Q_i")] = 0.1
    L: Annotated[float, Meta(gt=0, description="largest eigenvalue of each Q_i")] = 1.0

    def __post_init__(self) -> None:
        if self.mu > self.L:
            raise ValueError(f"mu = {self.mu} is more than L = {self.L}")

    def load(self, seed: int, dtype: str) -> Dataset:
        return Quadratics(self, seed, dtype)


class Chain(Matrices):
    """The matrices Q_i and vectors b_i of ``LowerBound``."""

    def draw(self, i: int) -> tuple[Array, Array]:
        alpha = self.source.alpha
        scale = (self.source.beta - self.m * alpha) / 4
        first = np.arange(i, self.n, self.m)
        second = first[first + 1 < self.n] + 1  # a block cut in two by the border keeps its entry inside
        M = np.zeros((self.n, self.n))
        M[first, first] = M[second, second] = 1
        M[second, second - 1] = M[second - 1, second] = -1
        b = np.zeros(self.n)
        if i == 0:
            M[0, 0] = 2
            b[0] = scale
        return scale * M + alpha * np.eye(self.n), b


class LowerBound(Data, tag="lower-bound"):
    """Quadratic functions (41)-(42) of feddcd, which are slow for every first-order method when few clients take part.

    f_i(w) = (β - Nα)/8 · (wᵀM⁽ⁱ⁾w - 1_{i=1} 2⟨e_1, w⟩) + (α/2)‖w‖² with N clients. This is ½wᵀQ_i w - b_iᵀw with
    Q_i = (β - Nα)/4 · M⁽ⁱ⁾ + αI, b_1 = (β - Nα)/4 · e_1 and b_i = 0 for i > 1. M⁽ⁱ⁾ (42) has a block [[1, -1], [-1, 1]]
    at (j, j) for j = i, i + N, i + 2N …; the first block of M⁽¹⁾ is [[2, -1], [-1, 1]]. The sum of all M⁽ⁱ⁾ is the
    tridiagonal matrix (-1, 2, -1). Each f_i is α-strongly convex and β-smooth. The paper's infinite matrices are cut to
    their leading ``features`` rows and columns; as ``features`` grows, the minimiser of Σ f_i approaches w_j = q^j,
    q = (√κ - 1)/(√κ + 1), κ = β/(Nα). The paper's second case, α >= β/N, is refused: its f_i are not α-strongly convex.
    The data are not random.
    Source: FedDCD (arXiv 2201.11183, 2022), Theorem 7.1 and appendix F.
    """

    # The matrices are constants, the same on every rank.
    supports = Supports.EVERYTHING
    options = supporting("features", "alpha", "beta")

    objective = "quadratic"

    features: Annotated[int, Meta(ge=2, le=10**8, description="number of unknowns n")] = 100
    alpha: Annotated[float, Meta(gt=0, description="strong convexity of each f_i, below beta/clients")] = 1e-3
    beta: Annotated[float, Meta(gt=0, description="smoothness of each f_i")] = 1.0

    def __post_init__(self) -> None:
        if self.clients < 2:
            raise ValueError("clients = 1 is too few: the blocks of (42) would overlap")
        if self.alpha * self.clients >= self.beta:
            raise ValueError(
                f"alpha = {self.alpha} must be below beta/clients = {self.beta / self.clients:g}, as (41) asks"
            )

    def load(self, seed: int, dtype: str) -> Dataset:
        return Chain(self, seed, dtype)


class TridiagonalClients(GeneratedDataset):
    """The sparse matrix that all clients share, and their vectors, which differ by ``spread``."""

    sparse = True

    def __init__(self, source: "Tridiagonal", seed: int, dtype: str) -> None:
        super().__init__(source, seed, dtype)
        self.n = source.features
        self.spread = source.spread
        self.sizes = np.full(self.m, self.n, dtype=np.int64)

    def rows(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        count = hi - lo
        one = sp.diags_array([-0.25, 0.5, -0.25], offsets=[-1, 0, 1], shape=(self.n, self.n)).tocsr()
        ends = np.cumsum([0, *np.tile(np.diff(one.indptr), count)])
        numbers = np.tile(one.data, count).astype(self.dtype)
        X = sp.csr_array((numbers, np.tile(one.indices, count), ends), (count * self.n, self.n))
        return X, np.concatenate([np.zeros(0), *map(self.vector, range(lo, hi))]).astype(self.dtype)

    def vector(self, i: int) -> Array:
        """Return b_i (n,): b plus or minus the draw of the pair i and m − 1 − i, or b for a client in the middle."""
        b = np.zeros(self.n)
        b[0] = -0.25
        other = self.m - 1 - i
        if not self.spread or other == i:
            return b
        drawn = self.spread * stream(self.seed, "data", min(i, other) + 1).standard_normal(self.n)
        return b + drawn if i < other else b - drawn


class Tridiagonal(Data, tag="tridiagonal"):
    """f_i(x) = ½xᵀAx − b_iᵀx with A = ¼ tridiag(−1, 2, −1), b = ¼(−1, 0, …, 0) and b_i = b ± spread·z, z ~ N(0, I).

    With spread = 0 all clients have the same f. Otherwise the k-th client and the k-th from the end have the same z
    with opposite signs, so that f is the same for every spread. λ_max(A) < 1, and f* = −n/(8(n + 1)). Noise of
    gradients is ``problem.noise``.
    Source: such a quadratic is in experiments of Ringmaster ASGD (arXiv 2501.16168, 2025), whose appendix was not at
    hand; its worst case for first-order methods is that of Nesterov.
    """

    # Generated from the seed: no private samples, and the same ones on every rank.
    supports = Supports.EVERYTHING
    options = supporting("features", "spread")

    objective = "quadratic"

    features: Annotated[int, Meta(ge=2, le=10**8, description="number of unknowns n")] = 100
    spread: Annotated[float, Meta(ge=0, description="how far the b_i are from b; 0: one f for all clients")] = 0.0

    def load(self, seed: int, dtype: str) -> Dataset:
        return TridiagonalClients(self, seed, dtype)
