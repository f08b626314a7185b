"""Pools of samples in one matrix, divided among clients and into training and test samples."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core import sparse as sp
from mpifed.core.arrays import row_offsets
from mpifed.core.errors import UserError
from mpifed.core.promises import supporting
from mpifed.core.streams import stream, streams
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import Data, Dataset, DatasetWrapper, GeneratedDataset, TestFraction
from mpifed.data.labels import list_classes, note_stated_labels, note_text_labels, number_by_classes, number_texts
from mpifed.data.partition import Iid, Partition

# Type of the field ``classes`` of sources whose labels a study may state.
ClassesOption = Annotated[
    Annotated[int, Meta(ge=2, le=10**6)] | list[int | str] | None,
    Meta(description="number C of classes, whose labels are 0 … C−1, or their labels in order (default: those there)"),
]
AT_ONCE = 1 << 10  # clients whose streams are in memory at the same time
COUNTED = 1 << 20  # labels up to this one are found by counting, which is faster than sorting


class PoolSamples(NamedTuple):
    """The training or test samples of m clients. Client i owns the next ``sizes[i]`` rows of ``order``."""

    X: Any  # (d, n): Array, CSR, or a matrix in a file that supports X[lo:hi] and X[row numbers]
    y: Array  # (d,)
    order: Array | None  # row numbers; None: the rows in the order of X
    sizes: Any  # (m,); None where a partition is to divide the rows


class Pool(Dataset):
    """Samples X (d, n), y (d,) of which client i owns the next ``sizes[i]`` rows of ``order``; see ``PoolSamples``.

    Rows are converted to ``dtype`` when they are read. ``test``: the test samples (X, y, order, sizes), or None.
    ``source`` is the name of the data in error messages, such as the path of a file.

        >>> pool = mpifed.extend.Pool(X, y, order=None, sizes=[20, 40])
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
        self.train = PoolSamples(X, y, order, self.sizes)
        self.starts = row_offsets(self.sizes)
        self.test: PoolSamples | None = None
        if test is not None:
            self.test = PoolSamples(*test)
            self.sizes_test = np.asarray(test[3], dtype=np.int64)
            self.starts_test = row_offsets(self.sizes_test)
        labels = self.labels()
        are_classes = len(labels) and np.all((labels >= 0) & (labels == np.floor(labels)) & (labels < np.inf))
        self.classes = 1 + int(labels.max()) if are_classes else 0

    def rows(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        return self._read(self.train, slice(self.starts[lo], self.starts[hi]), "")

    def rows_test(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        if self.test is None:
            raise UserError(f"{self.source} has no test samples: it needs X_test, y_test and sizes_test")
        suffix = "" if self.test.X is self.train.X else "_test"
        return self._read(self.test, slice(self.starts_test[lo], self.starts_test[hi]), suffix)

    def labels(self) -> Array:
        """Return the labels of all training and test samples."""
        if self.test is None or self.test.y is self.train.y:
            return self.train.y
        return np.concatenate([self.train.y, self.test.y])

    def values(self) -> Array:
        y = self.labels()
        return np.flatnonzero(np.bincount(y.astype(np.int64))) if 0 < self.classes <= COUNTED else np.unique(y)

    def _read(self, samples: PoolSamples, entries: slice, suffix: str) -> tuple[SampleMatrix, Array]:
        """Return rows, by ``entries`` of ``order``, as ``dtype``; UserError, naming X + suffix, if not finite."""
        index: Any = entries if samples.order is None else samples.order[entries]
        numbers = range(entries.start, entries.stop) if samples.order is None else index
        with np.errstate(over="ignore"):
            X = samples.X[index].astype(self.dtype, copy=False)
            y = samples.y[index].astype(self.dtype, copy=False)
        check_finite(X, numbers, f"X{suffix} of {self.source}")
        check_finite(y, numbers, f"y{suffix} of {self.source}")
        return X, y


@dataclass(eq=False)
class LazyMatrix:
    """A matrix X (d, n) whose rows ``convert`` turns into dense numbers when they are read, which saves memory."""

    X: Any
    convert: Callable[[Any], Array]

    sparse = False

    @property
    def shape(self) -> tuple[int, int]:
        return self.X.shape

    def __getitem__(self, index: Any) -> Array:
        return self.convert(self.X[index])


def check_finite(values: SampleMatrix, numbers: Any, name: str) -> None:
    """Raise UserError for the first NaN or infinity in ``values``, with its row ``numbers[i]``, counted from 0."""
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


class PooledData(Data):
    """Base of sources whose labelled samples are divided among the clients by ``partition``."""

    # A partition has promises of its own; test samples are drawn by the numbers of rows.
    options = supporting("partition", "test")

    objective = "softmax"
    default_partition: ClassVar[Partition] = Iid()  # default partition

    partition: Partition | None = None
    test: TestFraction = 0.0

    def deal(self, X: Any, y: Array, seed: int, dtype: str, source: str) -> Dataset:
        """Divide the samples X (d, n), y (d,) among the clients and split off test samples; errors name ``source``."""
        return make_pool(self, PoolSamples(X, y, None, None), None, seed, dtype, source)


def make_pool(data: Any, train: PoolSamples, test: PoolSamples | None, seed: int, dtype: str, source: str) -> Pool:
    """Return a pool of samples; those of ``test``, or the share ``data.test`` of each client's, are for testing.

    If ``train`` has no sizes, the partition of ``data`` divides its samples among the clients. Labels that are texts
    become numbers. Errors name ``source``.
    """
    seed = seed if data.seed is None else data.seed
    (y, *y_test), names = number_texts([train.y] if test is None else [train.y, test.y], source)
    X, _, order, sizes = train
    division = ""
    notes: list[str] = []
    if sizes is None:
        rule = data.partition or data.default_partition
        order, sizes = rule.split(y, data.clients or 128, stream(seed, "partition"))
        division = rule.describe()
        left = len(y) - int(sizes.sum())
        if left:
            notes.append(f"{left:,} of {len(y):,} rows belong to no client: the partition leaves them out")
    if test is not None:
        test = test._replace(y=y_test[0])
    elif data.test:
        counts = count_tests(sizes, data.test)
        drawn = draw_tests(sizes, counts, seed, 0)
        order = np.arange(len(drawn)) if order is None else order
        test = PoolSamples(X, y, order[drawn], counts)
        order = order[~drawn]
        sizes = sizes - counts
    pool = Pool(X, y, order, sizes, dtype, test)
    pool.source = source
    pool.division = division
    if names:
        pool.names = names
        notes.append(note_text_labels(names))
    pool.notes = tuple(notes)
    return pool


def make_pool_with_classes(
    data: Any, train: PoolSamples, test: PoolSamples | None, seed: int, dtype: str, source: str
) -> Pool:
    """Return a pool as ``deal`` does, with the labels and their order as ``data.classes`` states them, if it does."""
    stated = data.classes
    if stated is None:
        return make_pool(data, train, test, seed, dtype, source)
    train = train._replace(y=number_by_classes(stated, train.y, source))
    test = None if test is None else test._replace(y=number_by_classes(stated, test.y, source))
    pool = make_pool(data, train, test, seed, dtype, source)
    pool.stated = True
    classes = list_classes(stated)
    pool.classes = len(classes)
    if classes == list(range(len(classes))):
        return pool
    pool.names = tuple(map(str, classes)) if classes[0] == str(classes[0]) else ()
    pool.notes += (note_stated_labels(classes),)
    return pool


def refuse_contradiction(options: Any, m: int, source: str, has: str, tests: str = "") -> None:
    """Raise UserError where options contradict a source that ``has`` samples of m clients, or ``tests`` of its own."""
    contradiction = ""
    if options.clients not in (None, m):
        contradiction = f"data.clients = {options.clients} contradicts {source}, which {has} of {m} clients"
    elif options.partition is not None:
        partition = toml_value(options.partition.label())
        contradiction = f"data.partition = {partition} contradicts {source}, which {has} of {m} clients and so "
        contradiction += "defines the rows of each"
    elif options.test and tests:
        contradiction = f"data.test = {options.test} contradicts {tests}"
    if contradiction:
        raise UserError(f"{contradiction}: leave it out")


def split_tests(generated: GeneratedDataset, fraction: float) -> Dataset:
    """Return a generated data set in which each client keeps a fraction of its samples for testing."""
    return TestSplit(generated, fraction) if fraction else generated


class TestSplit(DatasetWrapper):
    """A generated data set in which each client keeps a fraction of its samples for testing."""

    def __init__(self, generated: GeneratedDataset, fraction: float) -> None:
        self.tests = count_tests(generated.sizes, fraction)
        super().__init__(generated, sizes=generated.sizes - self.tests, sizes_test=self.tests)
        self.seed = generated.seed

    def read_clients(self, lo: int, hi: int, test: bool) -> tuple[SampleMatrix, Array]:
        X, y = self.inner.rows(lo, hi)
        rows = draw_tests(self.inner.sizes[lo:hi], self.tests[lo:hi], self.seed, lo) == test
        return X[rows], y[rows]


def count_tests(sizes: Array, fraction: float) -> Array:
    """Return the number of test samples of each client (m,): ``fraction`` of its samples, rounded, but never all."""
    # Not by rounding of numpy, which takes halves to even numbers: 2 of 2.5, but 4 of 3.5.
    tests = np.minimum(np.floor(fraction * sizes + 0.5).astype(np.int64), sizes - 1)
    if not tests.any():
        raise UserError(
            f"data.test = {fraction} leaves no client a test sample, because no client has more than {sizes.max()} "
            "samples: use fewer clients, or data.test = 0.0 to evaluate on the training samples"
        )
    return tests


def draw_tests(sizes: Array, tests: Array, seed: int, first: int) -> Array:
    """Draw a mask (Σ sizes,) of test samples: tests[i] random ones of the sizes[i] samples of client ``first`` + i."""
    mask = np.zeros(int(sizes.sum()), dtype=bool)
    starts = np.cumsum(sizes) - sizes
    # A stream for each client, by its number among all, so that every rank draws the same test samples for it.
    some = np.flatnonzero(tests)
    for k in range(0, len(some), AT_ONCE):
        ids = some[k : k + AT_ONCE]
        counts = zip(sizes[ids].tolist(), tests[ids].tolist(), streams(seed, "split", first + ids + 1), strict=True)
        # a single number is chosen as choice does it, in a sixth of its time
        drawn = [rng.integers(d) if t == 1 else rng.choice(d, t, replace=False, shuffle=False) for d, t, rng in counts]
        mask[np.repeat(starts[ids], tests[ids]) + np.hstack(drawn)] = True
    return mask
