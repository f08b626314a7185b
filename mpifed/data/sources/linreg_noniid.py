"""Linear regression with non-i.i.d. data, generated from a seed; a rank generates the rows of its own clients only."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core.arrays import starts_of
from mpifed.core.promises import Keeps, keeping
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.dataset import Data, Dataset, Generated

BLOCK = 1000  # clients sorted in one call: limits the number of calls and the memory


class ThreeDistributions(Generated):
    """Rows that are standard normal, Student t(5) or uniform in [-5, 5], shuffled over all clients.

    Every rank draws the distribution of every row, ``kinds`` (d,); each client draws its rows from its own stream.
    """

    def __init__(self, source: Any, seed: int, dtype: str) -> None:
        super().__init__(source, seed, dtype)
        rng = stream(self.seed, "data")
        self.n = source.features
        self.sizes = rng.integers(source.least, source.most, size=self.m, endpoint=True)
        self.starts = starts_of(self.sizes)
        third, rest = divmod(int(self.starts[-1]), 3)
        self.kinds = np.repeat(np.arange(3, dtype=np.int8), [third, third, third + rest])
        rng.shuffle(self.kinds)

    def rows(self, lo: int, hi: int) -> tuple[Array, Array]:
        base = self.starts[lo]
        X = np.empty((self.starts[hi] - base, self.n), self.dtype)
        y = np.empty(len(X), self.dtype)
        for first in range(lo, hi, BLOCK):
            last = min(first + BLOCK, hi)
            drawn = np.concatenate([self.draw(i) for i in range(first, last)])
            client = np.repeat(np.arange(last - first), self.sizes[first:last])
            kinds = self.kinds[self.starts[first] : self.starts[last]]
            # A client draws its rows kind by kind. One sort of all clients together puts them where ``kinds`` has them:
            # with the kinds 1 0 1 of a client, its drawn rows n, s, s go to the places 1, 0 and 2.
            position = np.argsort(3 * client + kinds, kind="stable") + (self.starts[first] - base)
            X[position], y[position] = drawn[:, :-1], drawn[:, -1]
        return X, y

    def draw(self, i: int) -> Array:
        normal, student, uniform = np.bincount(self.kinds[self.starts[i] : self.starts[i + 1]], minlength=3)
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

    # Generated client by client from the seed: nobody's samples, and the same on every rank.
    keeps = Keeps.EVERYTHING
    options = keeping("features", "least", "most")

    features: Annotated[int, Meta(ge=1, le=10**8, description="number of features n")] = 100
    least: Annotated[int, Meta(ge=1, le=10**9, description="fewest samples of a client")] = 50
    most: Annotated[int, Meta(ge=1, le=10**9, description="most samples of a client")] = 150

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError(f"least = {self.least} is more than most = {self.most}")

    def load(self, seed: int, dtype: str) -> Dataset:
        return ThreeDistributions(self, seed, dtype)
