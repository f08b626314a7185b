"""Training and test samples: a share of each client's own samples is kept for testing."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.typing import Array, Matrix
from mpifed.data.base import Data, Dataset, Test
from mpifed.data.partition import Iid, Partition
from mpifed.data.pool import Pool


class Pooled(Data):
    """Base of sources with one pool of labelled samples that ``partition`` deals to the clients."""

    objective = "softmax"
    usual: ClassVar[Partition] = Iid()  # how the samples are dealt when nothing is said

    partition: Partition | None = None
    test: Test = 0.0

    def deal(self, X: Any, y: Array, seed: int, dtype: str, source: str, sparse: bool | None = None) -> Dataset:
        """The samples X (d, n), y (d,) dealt to the clients and split; errors name ``source``."""
        seed = seed if self.seed is None else self.seed
        order, sizes = (self.partition or self.usual).split(y, self.clients, stream(seed, "partition"))
        return split_pool(X, y, order, sizes, self.test, seed, dtype, source, sparse)


def split_pool(
    X: Any,
    y: Array,
    order: Array | None,
    sizes: Array,
    share: float,
    seed: int,
    dtype: str,
    source: str,
    sparse: bool | None = None,
) -> Pool:
    """A pool of which each client keeps ``share`` of its rows for testing; arguments as of Pool."""
    if not share:
        return Pool(X, y, order, sizes, dtype, source, sparse)
    tests = tests_of(sizes, share)
    held = drawn(sizes, tests, seed, 0)
    order = np.arange(len(held)) if order is None else order
    return Pool(X, y, order[~held], sizes - tests, dtype, source, sparse, test=(X, y, order[held], tests))


def split_made(made: Dataset, share: float, seed: int) -> Dataset:
    """The same of data that are made client by client."""
    return Split(made, share, seed) if share else made


class Split(Dataset):
    """The data set ``whole`` with a share of each client's samples kept for testing; both parts keep their order."""

    def __init__(self, whole: Dataset, share: float, seed: int) -> None:
        self.whole, self.seed = whole, seed
        self.m, self.n, self.classes, self.sparse = whole.m, whole.n, whole.classes, whole.sparse
        self.tests = self.sizes_test = tests_of(whole.sizes, share)
        self.sizes = whole.sizes - self.tests

    def rows(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        return self.part(lo, hi, False)

    def rows_test(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        return self.part(lo, hi, True)

    def part(self, lo: int, hi: int, held: bool) -> tuple[Matrix, Array]:
        """The test or the training samples of the clients lo <= i < hi."""
        X, y = self.whole.rows(lo, hi)
        rows = drawn(self.whole.sizes[lo:hi], self.tests[lo:hi], self.seed, lo) == held
        return X[rows], y[rows]


def tests_of(sizes: Array, share: float) -> Array:
    """How many samples (m,) each client keeps for testing: ``share`` of its own, rounded, and never all of them."""
    tests = np.minimum(np.floor(share * sizes + 0.5).astype(np.int64), sizes - 1)
    if not tests.any():
        raise UserError(
            f"data.test = {share} leaves nobody a test sample, for no client has more than {sizes.max()} "
            "samples: take fewer clients, or data.test = 0.0 to test on the training samples"
        )
    return tests


def drawn(sizes: Array, tests: Array, seed: int, first: int) -> Array:
    """Which samples (Σ sizes,) of clients with numbers from ``first`` on are kept for testing: tests[i] of sizes[i]."""
    held = np.zeros(int(sizes.sum()), dtype=bool)
    starts = np.cumsum(sizes) - sizes
    for i in np.flatnonzero(tests):
        rng = stream(seed, "split", first + int(i) + 1)
        held[starts[i] + rng.choice(int(sizes[i]), int(tests[i]), replace=False, shuffle=False)] = True
    return held
