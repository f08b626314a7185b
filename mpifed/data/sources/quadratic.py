"""Random quadratic functions ½xᵀQ_i x − b_iᵀx: each client has a matrix and a vector."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.base import ClientByClient, Data, Dataset


class Matrices(ClientByClient):
    """Quadratic functions: ``draw`` gives a matrix Q_i (n, n) in place of X and a vector b_i (n,) in place of y."""

    def __init__(self, source: Any, seed: int, dtype: str) -> None:
        super().__init__(source, seed, dtype)
        self.n = source.features
        self.sizes = np.full(self.m, self.n, dtype=np.int64)


class Quadratics(Matrices):
    """Random matrices with eigenvalues in [mu, L] and random vectors; each client has its own random stream."""

    def draw(self, i: int) -> tuple[Array, Array]:
        rng = stream(self.seed, "data", i + 1)
        least = self.source.mu
        largest = self.largest(i)
        eigenvalues = rng.uniform(least, largest, size=self.n)
        eigenvalues[[0, -1]] = least, largest
        U, R = np.linalg.qr(rng.standard_normal((self.n, self.n)))
        U = U * np.copysign(1.0, np.diagonal(R))  # without the signs, U is not uniformly distributed
        Q = (U * eigenvalues) @ U.T
        return (Q + Q.T) / 2, rng.standard_normal(self.n)

    def largest(self, i: int) -> float:
        """The largest eigenvalue of Q_i."""
        return self.source.L


class RandomQuadratic(Data, tag="quadratic"):
    """Quadratic functions f_i(x) = ½xᵀQ_i x - b_iᵀx with random Q_i (n, n) and standard normal b_i (n,).

    Q_i = U diag(e) Uᵀ with a uniformly random rotation U, e_1 = mu, e_n = L, and the other eigenvalues uniform in
    [mu, L].
    """

    objective = "quadratic"

    features: Annotated[int, Meta(ge=1, le=10**8, description="number of unknowns n")] = 20
    mu: Annotated[float, Meta(gt=0, description="smallest eigenvalue of each Q_i")] = 0.1
    L: Annotated[float, Meta(gt=0, description="largest eigenvalue of each Q_i")] = 1.0

    def __post_init__(self) -> None:
        if self.mu > self.L:
            raise ValueError(f"mu = {self.mu} is more than L = {self.L}")

    def load(self, seed: int, dtype: str) -> Dataset:
        return Quadratics(self, seed, dtype)
