"""Pools of samples in one matrix, divided among clients and into training, validation and test samples."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, NamedTuple, TypedDict, Unpack

import numpy as np
from msgspec import Meta

from mpifed.core import sparse as sp
from mpifed.core.arrays import row_offsets
from mpifed.core.errors import UserError
from mpifed.core.promises import supporting
from mpifed.core.roles import TEST, TRAINING, VALIDATION, suffix
from mpifed.core.streams import stream
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import Data, Dataset
from mpifed.data.labels import list_classes, note_stated_labels, note_text_labels, number_by_classes, number_texts
from mpifed.data.partition import Iid, Partition
from mpifed.data.split import Stratify, TestAmount, ValidationAmount, amounts_of, count_samples_held_out, draw_roles

# Type of the field ``classes`` of sources whose labels a study may state.
ClassesOption = Annotated[
    Annotated[int, Meta(ge=2, le=10**6)] | list[int | str] | None,
    Meta(description="number C of classes, whose labels are 0 … C−1, or their labels in order (default: those there)"),
]
COUNTED = 1 << 20  # labels up to this one are found by counting, which is faster than sorting


class PoolSamples(NamedTuple):
    """The samples of m clients in one role. Client i owns the next ``sizes[i]`` rows of ``order``."""

    X: Any  # (d, n): Array, CSR, or a matrix in a file that supports X[lo:hi] and X[row numbers]
    y: Array  # (d,)
    order: Array | None  # row numbers; None: the rows in the order of X
    sizes: Any  # (m,); None where a partition is to divide the rows


class HeldSamples(TypedDict, total=False):
    """Samples of a pool for further roles, as (X, y, order, sizes)."""

    validation: Any


class Pool(Dataset):
    """Samples X (d, n), y (d,) of which client i owns the next ``sizes[i]`` rows of ``order``; see ``PoolSamples``.

    Rows are converted to ``dtype`` when they are read. ``test``, ``validation``: such samples as (X, y, order, sizes),
    or None. ``samples``: those of each role.
    ``source`` is the name of the data in error messages, such as the path of a file.

        >>> pool = mpifed.extend.Pool(X, y, order=None, sizes=[20, 40])
        >>> pool.m, pool.n
        (2, 3)
    """

    source = "the data set"

    def __init__(
        self,
        X: Any,
        y: Array,
        order: Array | None,
        sizes: Array,
        dtype: str = "float64",
        test: Any = None,
        **others: Unpack[HeldSamples],
    ) -> None:
        self.dtype = np.dtype(dtype)
        self.sparse = sp.issparse(X) or getattr(X, "sparse", False)
        self.m = len(sizes)
        self.n = int(X.shape[1])
        self.sizes = np.asarray(sizes, dtype=np.int64)
        self.samples = {TRAINING: PoolSamples(X, y, order, self.sizes)}
        held: dict[str, Any] = {TEST: test, **others}
        self.samples |= {role: PoolSamples(*part) for role, part in held.items() if part is not None}
        self.starts: dict[str, Array] = {}
        for role, part in self.samples.items():
            sizes = np.asarray(part.sizes, dtype=np.int64)
            setattr(self, f"sizes{suffix(role)}", sizes)
            self.starts[role] = row_offsets(sizes)
        labels = self.labels()
        are_classes = len(labels) and np.all((labels >= 0) & (labels == np.floor(labels)) & (labels < np.inf))
        self.classes = 1 + int(labels.max()) if are_classes else 0

    @property
    def train(self) -> PoolSamples:
        """The training samples."""
        return self.samples[TRAINING]

    def rows(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        return self._read(TRAINING, lo, hi)

    def rows_test(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        return self._read(TEST, lo, hi)

    def rows_validation(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        return self._read(VALIDATION, lo, hi)

    def labels(self) -> Array:
        """Return the labels of all samples, of every role."""
        arrays = {id(part.y): part.y for part in self.samples.values()}
        return next(iter(arrays.values())) if len(arrays) == 1 else np.concatenate([*arrays.values()])

    def values(self) -> Array:
        y = self.labels()
        return np.flatnonzero(np.bincount(y.astype(np.int64))) if 0 < self.classes <= COUNTED else np.unique(y)

    def _read(self, role: str, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        """Return the rows of clients lo <= i < hi as ``dtype``; UserError if there are none, or if not finite."""
        part = self.samples.get(role)
        if part is None:
            raise UserError(f"{self.source} has no {role} samples: it needs X_{role}, y_{role} and sizes_{role}")
        own = "" if part.X is self.train.X else suffix(role)
        starts = self.starts[role]
        entries = slice(starts[lo], starts[hi])
        index: Any = entries if part.order is None else part.order[entries]
        numbers = range(entries.start, entries.stop) if part.order is None else index
        with np.errstate(over="ignore"):
            X = part.X[index].astype(self.dtype, copy=False)
            y = part.y[index].astype(self.dtype, copy=False)
        check_finite(X, numbers, f"X{own} of {self.source}")
        check_finite(y, numbers, f"y{own} of {self.source}")
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

    # A partition has promises of its own; other roles are drawn by numbers of rows, and by classes of a client alone.
    options = supporting("partition", "test", "validation", "stratify")

    objective = "softmax"
    default_partition: ClassVar[Partition] = Iid()  # default partition

    partition: Partition | None = None
    test: TestAmount = 0.0
    validation: ValidationAmount = 0.0
    stratify: Stratify = False

    def deal(self, X: Any, y: Array, seed: int, dtype: str, source: str) -> Dataset:
        """Divide the samples X (d, n), y (d,) among the clients and into roles; errors name ``source``."""
        return make_pool(self, PoolSamples(X, y, None, None), {}, seed, dtype, source)


Held = Mapping[str, PoolSamples]  # test and validation samples that a source brings, by role


def make_pool(data: Any, train: PoolSamples, held: Held, seed: int, dtype: str, source: str) -> Pool:
    """Return a pool of samples with those ``held`` out by role, and shares of each client's that ``data`` holds out.

    If ``train`` has no sizes, the partition of ``data`` divides its samples among the clients. Labels that are texts
    become numbers. Errors name ``source``.
    """
    seed = seed if data.seed is None else data.seed
    (y, *others), names = number_texts([train.y, *(part.y for part in held.values())], source)
    held = {role: part._replace(y=labels) for (role, part), labels in zip(held.items(), others, strict=True)}
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
    samples = PoolSamples(X, y, order, sizes)
    if amounts := amounts_of(data, held):
        samples, drawn = hold_out(samples, count_samples_held_out(sizes, amounts), seed, data.stratify)
        held |= drawn
    pool = Pool(*samples, dtype, test=held.get(TEST), validation=held.get(VALIDATION))
    pool.source = source
    pool.division = division
    if names:
        pool.names = names
        notes.append(note_text_labels(names))
    pool.notes = tuple(notes)
    return pool


def hold_out(
    samples: PoolSamples, counts: Mapping[str, Array], seed: int, stratify: bool
) -> tuple[PoolSamples, dict[str, PoolSamples]]:
    """Return the training samples that are left, and those drawn for other roles, ``counts`` of each client."""
    X, y, order, sizes = samples
    order = np.arange(int(sizes.sum())) if order is None else order
    roles = draw_roles(sizes, counts, seed, 0, y[order] if stratify else None)
    owner = np.repeat(np.arange(len(sizes)), sizes)

    def part(code: int) -> PoolSamples:
        mine = roles == code
        return PoolSamples(X, y, order[mine], np.bincount(owner[mine], minlength=len(sizes)))

    return part(0), {role: part(code) for code, role in enumerate(counts, 1)}


def make_pool_with_classes(data: Any, train: PoolSamples, held: Held, seed: int, dtype: str, source: str) -> Pool:
    """Return a pool as ``deal`` does, with the labels and their order as ``data.classes`` states them, if it does."""
    stated = data.classes
    if stated is None:
        return make_pool(data, train, held, seed, dtype, source)
    train = train._replace(y=number_by_classes(stated, train.y, source))
    held = {role: part._replace(y=number_by_classes(stated, part.y, source)) for role, part in held.items()}
    pool = make_pool(data, train, held, seed, dtype, source)
    pool.stated = True
    classes = list_classes(stated)
    pool.classes = len(classes)
    if classes == list(range(len(classes))):
        return pool
    pool.names = tuple(map(str, classes)) if classes[0] == str(classes[0]) else ()
    pool.notes += (note_stated_labels(classes),)
    return pool


def refuse_contradiction(options: Any, m: int, source: str, has: str, held: Mapping[str, str] | None = None) -> None:
    """Raise UserError where options contradict a source that ``has`` samples of m clients, or ``held`` out by role."""
    contradiction = ""
    if options.clients not in (None, m):
        contradiction = f"data.clients = {options.clients} contradicts {source}, which {has} of {m} clients"
    elif options.partition is not None:
        partition = toml_value(options.partition.label())
        contradiction = f"data.partition = {partition} contradicts {source}, which {has} of {m} clients and so "
        contradiction += "defines the rows of each"
    for role, words in (held or {}).items():
        if amount := getattr(options, role):
            contradiction = contradiction or f"data.{role} = {toml_value(amount)} contradicts {words}"
    if contradiction:
        raise UserError(f"{contradiction}: leave it out")
