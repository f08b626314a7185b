"""Training and test samples: a share of each client's own samples is kept for testing."""

from typing import Any, ClassVar

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.typing import Array, Matrix
from mpifed.data.base import Data, Dataset, Generated, Test, Wrapped
from mpifed.data.labels import numbers_of_texts, text_note
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
        return deal(self, Samples(X, y, None, None), None, seed, dtype, source)


def deal(data: Any, train: Samples, test: Samples | None, seed: int, dtype: str, source: str) -> Pool:
    """A pool of samples whose clients have those of ``test``, or keep the share ``data.test`` of theirs, for testing.

    Where ``train`` does not say whose its samples are the partition of ``data`` divides them. Labels that are texts
    become numbers. Errors name ``source``.
    """
    seed = seed if data.seed is None else data.seed
    (y, *y_test), names = numbers_of_texts([train.y] if test is None else [train.y, test.y], source)
    X, _, order, sizes = train
    division = ""
    if sizes is None:
        rule = data.partition or data.usual
        order, sizes = rule.split(y, data.clients or 128, stream(seed, "partition"))
        division = rule.words()
    if test is not None:
        test = test._replace(y=y_test[0])
    elif data.test:
        counts = count_tests(sizes, data.test)
        drawn = draw_tests(sizes, counts, seed, 0)
        order = np.arange(len(drawn)) if order is None else order
        test = Samples(X, y, order[drawn], counts)
        order = order[~drawn]
        sizes = sizes - counts
    pool = Pool(X, y, order, sizes, dtype, test)
    pool.source = source
    pool.division = division
    if names:
        pool.names = names
        pool.notes = (text_note(names),)
    return pool


def split_generated(generated: Generated, share: float) -> Dataset:
    """The same for a data set that is generated."""
    return Split(generated, share) if share else generated


class Split(Wrapped):
    """The data set ``whole`` with a share of each client's samples kept for testing; both parts keep their order."""

    def __init__(self, whole: Generated, share: float) -> None:
        self.tests = count_tests(whole.sizes, share)
        super().__init__(whole, sizes=whole.sizes - self.tests, sizes_test=self.tests)
        self.seed = whole.seed

    def part(self, lo: int, hi: int, test: bool) -> tuple[Matrix, Array]:
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
