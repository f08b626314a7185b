"""Pools of samples in one matrix, divided among clients, and the share of a client's samples kept for testing."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core import sparse as sp
from mpifed.core.arrays import starts_of
from mpifed.core.errors import UserError
from mpifed.core.promises import keeping
from mpifed.core.streams import stream, streams
from mpifed.core.typing import Array, Matrix
from mpifed.data.dataset import Data, Dataset, Generated, Test, Wrapped
from mpifed.data.labels import about_stated, about_texts, by_classes, classes_of, numbers_of_texts
from mpifed.data.partition import Iid, Partition

# Type of the field ``classes`` of sources whose labels a study may state.
Classes = Annotated[
    Annotated[int, Meta(ge=2, le=10**6)] | list[int | str] | None,
    Meta(description="number C of classes, whose labels are 0 … C−1, or their labels in order (default: those there)"),
]
AT_ONCE = 1 << 10  # clients whose streams are there at the same time
COUNTED = 1 << 20  # labels up to this one are found by counting, which is faster than sorting


class Samples(NamedTuple):
    """The training or test samples of m clients. Client i owns the next ``sizes[i]`` rows of ``order``."""

    X: Any  # (d, n): Array, CSR, or a matrix in a file that supports X[lo:hi] and X[row numbers]
    y: Array  # (d,)
    order: Array | None  # row numbers; None: the rows in the order of X
    sizes: Any  # (m,); None where a partition is to divide the rows


class Pool(Dataset):
    """Samples X (d, n), y (d,) of which client i owns the next ``sizes[i]`` rows of ``order``; see ``Samples``.

    Rows are converted to ``dtype`` when they are read. ``test``: the test samples (X, y, order, sizes), or None.
    ``source`` may be set to what error messages should call the data, such as the path of a file.

        >>> pool = mpifed.Pool(X, y, order=None, sizes=[20, 40])
        >>> pool.m, pool.n
        (2, 3)
    """

    source = "the data set"

    def __init__(
        self, X: Any, y: Array, order: Array | None, sizes: Array, dtype: str = "float64", test: Any = None
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.sparse = sp.issparse(X) or getattr(X, "sparse", False)
        self.m = len(sizes)
        self.n = int(X.shape[1])
        self.sizes = np.asarray(sizes, dtype=np.int64)
        self.train = Samples(X, y, order, self.sizes)
        self.starts = starts_of(self.sizes)
        self.test: Samples | None = None
        if test is not None:
            self.test = Samples(*test)
            self.sizes_test = np.asarray(test[3], dtype=np.int64)
            self.starts_test = starts_of(self.sizes_test)
        labels = self.labels()
        whole = len(labels) and np.all((labels >= 0) & (labels == np.floor(labels)) & (labels < np.inf))
        self.classes = 1 + int(labels.max()) if whole else 0

    def rows(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        return self._read(self.train, slice(self.starts[lo], self.starts[hi]), "")

    def rows_test(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        if self.test is None:
            raise UserError(f"{self.source} has no test samples: it needs X_test, y_test and sizes_test")
        own_file = self.test.X is not self.train.X
        return self._read(self.test, slice(self.starts_test[lo], self.starts_test[hi]), "_test" if own_file else "")

    def labels(self) -> Array:
        if self.test is None or self.test.y is self.train.y:
            return self.train.y
        return np.concatenate([self.train.y, self.test.y])

    def values(self) -> Array:
        y = self.labels()
        return np.flatnonzero(np.bincount(y.astype(np.int64))) if 0 < self.classes <= COUNTED else np.unique(y)

    def _read(self, samples: Samples, own: slice, suffix: str) -> tuple[Matrix, Array]:
        """The rows ``own`` of ``order``, as ``dtype`` and finite; errors name X and y with ``suffix``."""
        index: Any = own if samples.order is None else samples.order[own]
        numbers = range(own.start, own.stop) if samples.order is None else index
        with np.errstate(over="ignore"):
            X = samples.X[index].astype(self.dtype, copy=False)
            y = samples.y[index].astype(self.dtype, copy=False)
        check_finite(X, numbers, f"X{suffix} of {self.source}")
        check_finite(y, numbers, f"y{suffix} of {self.source}")
        return X, y


@dataclass(eq=False)
class WhenRead:
    """A matrix X (d, n) whose rows become a dense array of numbers when they are read, which saves memory."""

    X: Any
    convert: Callable[[Any], Array]

    sparse = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def __getitem__(self, index: Any) -> Array:
        return self.convert(self.X[index])


def check_finite(values: Matrix, numbers: Any, name: str) -> None:
    """UserError for the first NaN or infinity in ``values``; it names the row, ``numbers[i]``, counted from 0."""
    if sp.issparse(values):
        bad = np.flatnonzero(~np.isfinite(values.data))
        row = int(np.searchsorted(values.indptr, bad[0], side="right")) - 1 if bad.size else -1
    else:
        finite = np.isfinite(values)
        row = -1 if finite.all() else int(np.argmin(finite.reshape(len(values), -1).all(axis=1)))
    if row >= 0:
        raise UserError(
            f"row {numbers[row]} of {name} is not finite: it has a NaN, an infinity or a number too large for "
            f"{values.dtype.name} (rows are counted from 0)"
        )


class Pooled(Data):
    """Base of sources whose labelled samples are divided among the clients by ``partition``."""

    # A partition speaks for itself; which samples test follows from their numbers.
    options = keeping("partition", "test")

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
    notes: list[str] = []
    if sizes is None:
        rule = data.partition or data.usual
        order, sizes = rule.split(y, data.clients or 128, stream(seed, "partition"))
        division = rule.words()
        left = len(y) - int(sizes.sum())
        if left:
            notes.append(f"{left:,} of {len(y):,} rows belong to no client: the partition leaves them out")
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
        notes.append(about_texts(names))
    pool.notes = tuple(notes)
    return pool


def deal_stated(data: Any, train: Samples, test: Samples | None, seed: int, dtype: str, source: str) -> Pool:
    """The same where ``data.classes`` may say which labels there are, and in which order."""
    given = data.classes
    if given is None:
        return deal(data, train, test, seed, dtype, source)
    train = train._replace(y=by_classes(given, train.y, source))
    test = None if test is None else test._replace(y=by_classes(given, test.y, source))
    pool = deal(data, train, test, seed, dtype, source)
    pool.stated = True
    classes = classes_of(given)
    pool.classes = len(classes)
    if classes == list(range(len(classes))):
        return pool
    pool.names = tuple(map(str, classes)) if classes[0] == str(classes[0]) else ()
    pool.notes += (about_stated(classes),)
    return pool


def split_generated(generated: Generated, share: float) -> Dataset:
    """The same for a data set that is generated."""
    return Split(generated, share) if share else generated


class Split(Wrapped):
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
    # numpy rounds halves to even numbers: of 5 samples at half would be 2, of 7 be 4.
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
    # A stream for each client, by its number among all: whoever generates it draws the same samples for testing.
    some = np.flatnonzero(tests)
    for k in range(0, len(some), AT_ONCE):
        own = some[k : k + AT_ONCE]
        counts = zip(sizes[own].tolist(), tests[own].tolist(), streams(seed, "split", first + own + 1), strict=True)
        # a single number is chosen as choice does it, in a sixth of its time
        drawn = [rng.integers(d) if t == 1 else rng.choice(d, t, replace=False, shuffle=False) for d, t, rng in counts]
        mask[np.repeat(starts[own], tests[own]) + np.hstack(drawn)] = True
    return mask
