"""Linear regression with non-i.i.d. data, generated from a seed; a rank generates the rows of its own clients only."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.base import Data, Dataset

BLOCK = 1000  # clients sorted in one call: limits the number of calls and the memory


class ThreeDistributions(Dataset):
    """Rows that are standard normal, Student t(5) or uniform in [-5, 5], shuffled over all clients.

    Every rank draws the distribution of every row, ``kinds`` (d,); each client draws its rows from its own stream.
    """

    def __init__(self, sizes: Array, n: int, seed: int, rng: np.random.Generator, dtype: str) -> None:
        self.m, self.n, self.sizes = len(sizes), n, sizes
        self.seed, self.dtype = seed, dtype
        self.starts = np.concatenate([[0], np.cumsum(sizes)])
        d = int(self.starts[-1])
        self.kinds = np.full(d, 2, dtype=np.int8)
        self.kinds[: d // 3] = 0
        self.kinds[d // 3 : 2 * (d // 3)] = 1
        rng.shuffle(self.kinds)

    def rows(self, lo: int, hi: int) -> tuple[Array, Array]:
        base, end = self.starts[lo], self.starts[hi]
        X, y = np.empty((end - base, self.n), self.dtype), np.empty(end - base, self.dtype)
        for first in range(lo, hi, BLOCK):
            last = min(first + BLOCK, hi)
            a, b = self.starts[first], self.starts[last]
            drawn = np.concatenate([self.draw(i) for i in range(first, last)])
            kinds, client = self.kinds[a:b], np.repeat(np.arange(last - first), self.sizes[first:last])
            position = np.argsort(3 * client + kinds, kind="stable") + (a - base)
            X[position], y[position] = drawn[:, :-1], drawn[:, -1]
        return X, y

    def draw(self, i: int) -> Array:
        """The samples (d_i, n + 1) of client i with b in the last column, sorted by distribution."""
        normal, student, uniform = np.bincount(self.kinds[self.starts[i] : self.starts[i + 1]], minlength=3)
        rng, width = stream(self.seed, "data", i + 1), self.n + 1
        return np.concatenate(
            [
                rng.standard_normal((normal, width)),
                rng.standard_t(5, size=(student, width)),
                rng.uniform(-5, 5, size=(uniform, width)),
            ]
        )


class LinregNoniid(Data, tag="linreg-noniid"):
    """Linear regression with non-i.i.d. data: Example V.1 of fedgia, Example 5.1 of fedadmm.

    Of all d samples (a, b), floor(d/3) are standard normal, floor(d/3) Student t(5) and the rest uniform in [-5, 5],
    both a and b. The samples are then shuffled among the clients (thirds of the samples, not of the clients: errata).
    Sources: FedGiA, 2022, arXiv 2205.01438; FedADMM, 2022, arXiv 2204.10607.
    """

    features: Annotated[int, Meta(ge=1, le=10**8, description="number of features n")] = 100
    least: Annotated[int, Meta(ge=1, le=10**9, description="fewest samples of a client")] = 50
    most: Annotated[int, Meta(ge=1, le=10**9, description="most samples of a client")] = 150

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError(f"least = {self.least} is more than most = {self.most}")

    def load(self, seed: int, dtype: str) -> Dataset:
        seed = seed if self.seed is None else self.seed
        rng = stream(seed, "data")
        sizes = rng.integers(self.least, self.most, size=self.clients, endpoint=True)
        return ThreeDistributions(sizes, self.features, seed, rng, dtype)
