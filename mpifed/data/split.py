"""Training and test samples: a share of each client's own samples is kept for testing."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.typing import Array, Matrix
from mpifed.data.base import Data, Dataset, Test
from mpifed.data.partition import Iid, Partition
from mpifed.data.pool import Pool, Samples


class Pooled(Data):
    """Base of sources whose labelled samples are divided among the clients by ``partition``."""

    objective = "softmax"
    usual: ClassVar[Partition] = Iid()  # default partition

    partition: Partition | None = None
    test: Test = 0.0

    def deal(self, X: Any, y: Array, seed: int, dtype: str, source: str) -> Dataset:
        """Divide the samples X (d, n), y (d,) among the clients and split off test samples; errors name ``source``."""
        seed = seed if self.seed is None else self.seed
        rule = self.partition or self.usual
        order, sizes = rule.split(y, self.clients, stream(seed, "partition"))
        pool = split_pool(Samples(X, y, order, sizes), self.test, seed, dtype, source)
        pool.division = rule.words()
        return pool


def split_pool(samples: Samples, share: float, seed: int, dtype: str, source: str) -> Pool:
    """A pool in which each client keeps ``share`` of its samples for testing; errors name ``source``."""
    X, y, order, sizes = samples
    if share:
        tests = count_tests(sizes, share)
        test = draw_tests(sizes, tests, seed, 0)
        order = np.arange(len(test)) if order is None else order
        pool = Pool(X, y, order[~test], sizes - tests, dtype, (X, y, order[test], tests))
    else:
        pool = Pool(X, y, order, sizes, dtype)
    pool.source = source
    return pool


def split_generated(generated: Dataset, share: float, seed: int) -> Dataset:
    """The same for a data set that is generated client by client."""
    return Split(generated, share, seed) if share else generated


class Split(Dataset):
    """The data set ``whole`` with a share of each client's samples kept for testing; both parts keep their order."""

    def __init__(self, whole: Dataset, share: float, seed: int) -> None:
        self.whole, self.seed = whole, seed
        self.m, self.n, self.classes, self.sparse = whole.m, whole.n, whole.classes, whole.sparse
        self.tests = self.sizes_test = count_tests(whole.sizes, share)
        self.sizes = whole.sizes - self.tests

    def rows(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        return self._part(lo, hi, False)

    def rows_test(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        return self._part(lo, hi, True)

    def _part(self, lo: int, hi: int, test: bool) -> tuple[Matrix, Array]:
        """The test or the training samples of the clients lo <= i < hi."""
        X, y = self.whole.rows(lo, hi)
        rows = draw_tests(self.whole.sizes[lo:hi], self.tests[lo:hi], self.seed, lo) == test
        return X[rows], y[rows]


def count_tests(sizes: Array, share: float) -> Array:
    """Number of test samples of each client (m,): ``share`` of its samples, rounded, but never all of them."""
    tests = np.minimum(np.floor(share * sizes + 0.5).astype(np.int64), sizes - 1)
    if not tests.any():
        raise UserError(
            f"data.test = {share} leaves no client a test sample, because no client has more than {sizes.max()} "
            "samples: use fewer clients, or data.test = 0.0 to evaluate on the training samples"
        )
    return tests


def draw_tests(sizes: Array, tests: Array, seed: int, first: int) -> Array:
    """Which samples (Σ sizes,) are test samples: tests[i] random ones of the sizes[i] of client ``first`` + i."""
    mask = np.zeros(int(sizes.sum()), dtype=bool)
    starts = np.cumsum(sizes) - sizes
    for i in np.flatnonzero(tests):
        rng = stream(seed, "split", first + int(i) + 1)
        mask[starts[i] + rng.choice(int(sizes[i]), int(tests[i]), replace=False, shuffle=False)] = True
    return mask
