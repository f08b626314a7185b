"""Linear regression with non-i.i.d. data, generated from a seed; a rank generates the rows of its own clients only."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core.arrays import row_offsets
from mpifed.core.promises import Supports, supporting
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.dataset import Data, Dataset, GeneratedDataset

BLOCK = 1000  # clients sorted in one call: limits the number of calls and the memory


class ThreeDistributions(GeneratedDataset):
    """Rows that are standard normal, Student t(5) or uniform in [-5, 5], shuffled over all clients.

    Every rank draws the distribution of every row, ``distributions`` (d,), and each client its rows from its own
    stream.
    """

    def __init__(self, source: Any, seed: int, dtype: str) -> None:
        super().__init__(source, seed, dtype)
        rng = stream(self.seed, "data")
        self.n = source.features
        self.sizes = rng.integers(source.least, source.most, size=self.m, endpoint=True)
        self.starts = row_offsets(self.sizes)
        third, rest = divmod(int(self.starts[-1]), 3)
        self.distributions = np.repeat(np.arange(3, dtype=np.int8), [third, third, third + rest])
        rng.shuffle(self.distributions)

    def rows(self, lo: int, hi: int) -> tuple[Array, Array]:
        base = self.starts[lo]
        X = np.empty((self.starts[hi] - base, self.n), self.dtype)
        y = np.empty(len(X), self.dtype)
        for first in range(lo, hi, BLOCK):
            last = min(first + BLOCK, hi)
            drawn = np.concatenate([self.draw(i) for i in range(first, last)])
            client = np.repeat(np.arange(last - first), self.sizes[first:last])
            which = self.distributions[self.starts[first] : self.starts[last]]
            # A client draws its rows by distribution, and one sort for all clients puts them into the shuffled order:
            # if this is 1 0 1 for a client, its drawn rows n, s, s go to positions 1, 0 and 2.
            position = np.argsort(3 * client + which, kind="stable") + (self.starts[first] - base)
            X[position], y[position] = drawn[:, :-1], drawn[:, -1]
        return X, y

    def draw(self, i: int) -> Array:
        """Return the rows (d_i, n + 1) of client i, features and label, by distribution."""
        normal, student, uniform = np.bincount(self.distributions[self.starts[i] : self.starts[i + 1]], minlength=3)
        rng = stream(self.seed, "data", i + 1)
        width = self.n + 1
        first = rng.standard_normal((normal, width))
        second = rng.standard_t(5, size=(student, width))
        return np.concatenate([first, second, rng.uniform(-5, 5, size=(uniform, width))])


class LinregNoniid(Data, tag="linreg-noniid"):
    """Linear regression with non-i.i.d. data: Example V.1 of fedgia, Example 5.1 of fedadmm.

    Of all d samples (a, b), floor(d/3) are standard normal, floor(d/3) Student t(5) and the rest uniform in [-5, 5],
    both a and b. The samples are then shuffled among the clients (thirds of the samples, not of the clients: errata).
    Sources: FedGiA, 2022, arXiv 2205.01438; FedADMM, 2022, arXiv 2204.10607.
    """

    # Generated client by client from the seed: no private samples, and the same ones on every rank.
    supports = Supports.EVERYTHING
    options = supporting("features", "least", "most")

    features: Annotated[int, Meta(ge=1, le=10**8, description="number of features n")] = 100
    least: Annotated[int, Meta(ge=1, le=10**9, description="fewest samples of a client")] = 50
    most: Annotated[int, Meta(ge=1, le=10**9, description="most samples of a client")] = 150

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError(f"least = {self.least} is more than most = {self.most}")

    def load(self, seed: int, dtype: str) -> Dataset:
        return ThreeDistributions(self, seed, dtype)
