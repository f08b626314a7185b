"""A quadratic function with one tridiagonal matrix for all clients, as in studies of asynchronous methods."""

from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core import sparse as sp
from mpifed.core.promises import Supports, supporting
from mpifed.core.streams import stream
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import Data, Dataset, GeneratedDataset


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
