"""The clients of a data set in another order, or one of them in the place of all."""

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from mpifed.core.typing import Array, Matrix
from mpifed.data.base import Data, Dataset, Wrapped
from mpifed.data.cache import Cache

Order = Callable[[int], Array]  # m -> the m clients, as their numbers in the data set


class Arranged(Wrapped):
    """The data set ``whole`` with client order[i] as its client i."""

    def __init__(self, whole: Dataset, order: Array) -> None:
        tests = whole.sizes_test
        columns = None if whole.columns is None else whole.columns.arranged(order)
        tests = None if tests is None else tests[order]
        super().__init__(whole, sizes=whole.sizes[order], sizes_test=tests, columns=columns)
        self.order = order

    def part(self, lo: int, hi: int, test: bool) -> tuple[Matrix, Array]:
        parts = [super(Arranged, self).part(i, i + 1, test) for i in self.order[lo:hi].tolist()]
        X = [X for X, _ in parts]
        return sp.vstack(X, "csr") if self.sparse else np.concatenate(X), np.concatenate([y for _, y in parts])


class Rearranged(Cache):
    """Data sets of the seed ``seed``, whatever that of the run, with their clients in an order."""

    def __init__(self, seed: int, order: Order = np.arange) -> None:
        super().__init__()
        self.seed = seed
        self.order = order

    def load(self, data: Data, seed: int, dtype: str) -> Dataset:
        found = data.load(self.seed, dtype)
        return Arranged(found, self.order(found.m))
