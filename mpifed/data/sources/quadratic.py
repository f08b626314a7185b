"""Random quadratic functions, a matrix and a vector a client."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.base import Data, Dataset

BLOCK = 1000  # clients whose rows are put in order at a time: few calls for small clients, little memory for large ones


class Matrices(Dataset):
    """Client i has a matrix Q_i (n, n), in the place of X, and a vector b_i (n,), in the place of y."""

    def __init__(self, m: int, n: int, dtype: str) -> None:
        self.m, self.n, self.sizes, self.dtype = m, n, np.full(m, n, dtype=np.int64), dtype

    def draw(self, i: int) -> tuple[Array, Array]:
        """Q_i and b_i of client i."""
        raise NotImplementedError

    def rows(self, lo: int, hi: int) -> tuple[Array, Array]:
        X, y = np.empty((hi - lo, self.n, self.n), self.dtype), np.empty((hi - lo, self.n), self.dtype)
        for i in range(lo, hi):
            X[i - lo], y[i - lo] = self.draw(i)
        return X.reshape(-1, self.n), y.ravel()


class Quadratics(Matrices):
    """Random matrices and vectors; the numbers of client i come from a stream of its own."""

    def __init__(self, m: int, n: int, mu: float, L: float, seed: int, dtype: str) -> None:
        super().__init__(m, n, dtype)
        self.mu, self.L, self.seed = mu, L, seed

    def draw(self, i: int) -> tuple[Array, Array]:
        rng = stream(self.seed, "data", i + 1)
        eigenvalues = rng.uniform(self.mu, self.L, size=self.n)
        eigenvalues[0], eigenvalues[-1] = self.mu, self.L
        U, R = np.linalg.qr(rng.standard_normal((self.n, self.n)))
        U = U * np.copysign(1.0, np.diagonal(R))  # without the signs the rotation is not uniform
        Q = (U * eigenvalues) @ U.T
        return (Q + Q.T) / 2, rng.standard_normal(self.n)


class RandomQuadratic(Data, tag="quadratic"):
    """Quadratic functions ½xᵀQ_i x - b_iᵀx of client i with random Q_i and standard normal b_i.

    Q_i = U diag(e) Uᵀ, U a uniform rotation, e_1 = mu, e_n = L, the other eigenvalues uniform in [mu, L].
    """

    objective = "quadratic"

    features: Annotated[int, Meta(ge=1, le=10**8, description="number of unknowns n")] = 20
    mu: Annotated[float, Meta(gt=0, description="smallest eigenvalue of each Q_i")] = 0.1
    L: Annotated[float, Meta(gt=0, description="largest eigenvalue of each Q_i")] = 1.0

    def __post_init__(self) -> None:
        if self.mu > self.L:
            raise ValueError(f"mu = {self.mu} is more than L = {self.L}")

    def load(self, seed: int, dtype: str) -> Dataset:
        seed = seed if self.seed is None else self.seed
        return Quadratics(self.clients, self.features, self.mu, self.L, seed, dtype)
