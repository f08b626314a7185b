"""The clients of a data set in another order, or one of them in the place of all."""

from collections.abc import Callable

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.base import Data, Dataset
from mpifed.data.cache import Cache
from mpifed.data.reordered import Reordered

Order = Callable[[int], Array]  # m -> the m clients, as their numbers in the data set


class Rearranged(Cache):
    """Data sets of the seed ``seed``, whatever that of the run, with their clients in an order."""

    def __init__(self, seed: int, order: Order = np.arange) -> None:
        super().__init__()
        self.seed = seed
        self.order = order

    def load(self, data: Data, seed: int, dtype: str) -> Dataset:
        found = data.load(self.seed, dtype)
        return Reordered(found, self.order(found.m))
