"""Arrays in the memory of a Python program as federated data."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, TypedDict, Unpack

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike

from mpifed.core import sparse as sp
from mpifed.core.arrays import count_masked, is_number
from mpifed.core.errors import UserError, format_count, raise_unknown
from mpifed.core.objects import to_plain
from mpifed.core.promises import Supports, supporting
from mpifed.core.roles import TEST, VALIDATION
from mpifed.core.typing import Array, PositiveInt, SampleMatrix
from mpifed.data.dataset import Data, Dataset
from mpifed.data.formats.arrays import read_samples
from mpifed.data.partition import Iid, Partition
from mpifed.data.pool import ClassesOption, PoolSamples, check_finite, make_pool_with_classes
from mpifed.data.sample_columns import COLUMNS, attach_columns, columns_of_pool, combine_columns, refuse_both_weights
from mpifed.data.sources.held import find_held, keep
from mpifed.data.split import Amount, Stratify, TestAmount, ValidationAmount

CHUNK_BYTES = 1 << 24  # of a matrix that are hashed at a time


@dataclass(eq=False)
class HeldArrays:
    """Samples X (d, n), y (d,) in memory, divided among clients where they have sizes; else a partition divides them.

    ``columns``: weights and offsets (d,) by name.
    """

    train: PoolSamples
    held: dict[str, PoolSamples]  # test and validation samples of their own
    columns: dict[str, Array]

    def digest(self) -> str:
        """Return the hash of all arrays."""
        sha256 = hashlib.sha256()
        if VALIDATION in self.held:  # the same arrays for testing are other data
            sha256.update(VALIDATION.encode())
        for X, *others in (self.train, *self.held.values()):
            arrays = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
            for array in (array for array in [*arrays, *others] if array is not None):
                sha256.update(f"{array.dtype.str} {array.shape};".encode())
                step = max(1, CHUNK_BYTES // max(1, array[:1].nbytes))
                for first in range(0, len(array), step):
                    sha256.update(np.ascontiguousarray(array[first : first + step]).data)
        for name, column in self.columns.items():
            sha256.update(f"{name} {column.dtype.str};".encode())
            sha256.update(np.ascontiguousarray(column).data)
        return sha256.hexdigest()


class Arrays(Data, kw_only=True, tag="arrays", dict=True):
    """Arrays of a Python program, as `mpifed.arrays(X, y, clients)` gives them; recorded by shape and hash.

    Only a Python program that holds the same arrays can run and resume such an experiment.
    """

    # Samples as they are; every rank has the arrays of the program.
    supports = Supports.EVERYTHING
    held = True
    call: ClassVar[str] = "mpifed.arrays(X, y, clients)"
    noun: ClassVar[str] = "arrays"
    options = supporting("shape", "sha256", "partition", "test", "validation", "stratify", "classes")

    shape: Annotated[list[int] | None, Meta(description="samples d and features n")] = None
    sha256: Annotated[str, Meta(description="hash of the arrays, of whose they are, and of other roles' samples")] = ""
    clients: Annotated[PositiveInt | None, Meta(description="number of clients m")] = None  # type: ignore[assignment]
    default_partition: ClassVar[Partition] = Iid()
    partition: Partition | None = None
    test: TestAmount = 0.0
    validation: ValidationAmount = 0.0
    stratify: Stratify = False
    classes: ClassesOption = None

    def check(self) -> None:
        find_held(self)

    def load(self, seed: int, dtype: str) -> Dataset:
        held: HeldArrays = find_held(self)
        pool = make_pool_with_classes(self, held.train, held.held, seed, dtype, "the arrays")
        pool.division = pool.division or "by the arrays"
        if held.columns:
            values = combine_columns(held.columns, str, entry)
            attach_columns(pool, columns_of_pool(tuple(held.columns), values, {}, pool))
        return pool


class ArrayOptions(TypedDict, total=False):
    """Further options of ``arrays``: samples to choose by, and columns (d,) of samples."""

    validation: Amount | tuple[Any, ArrayLike, Sequence[Any] | Array]
    stratify: bool
    weight: ArrayLike
    frequency: ArrayLike
    offset: ArrayLike
    exposure: ArrayLike


def arrays(
    X: Any,
    y: ArrayLike,
    clients: int | Sequence[Any] | Array,
    *,
    partition: Any = None,
    test: Amount | tuple[Any, ArrayLike, Sequence[Any] | Array] = 0.0,
    classes: int | Sequence[int | str] | None = None,
    **options: Unpack[ArrayOptions],
) -> Data:
    """Return federated data from arrays in memory: ``mpifed.arrays(X, y, clients)``.

    ``X`` (d, n): an array of numbers, or a sparse matrix of scipy, read as CSR. ``y`` (d,): labels or targets.
    ``clients``: the number of samples of each client, (m,), client i owning the next clients[i] rows; or the client of
    each sample, (d,) numbers or texts, clients in sorted order; or the number m of clients, among whom ``partition``
    (default: iid) divides the samples. ``test``: share or number of each client's samples that is kept for testing,
    or (X_test, y_test, clients_test) with ``clients_test`` as ``clients``; ``validation`` likewise, for choosing by.
    ``stratify``: keep the proportions of a client's classes. ``classes``: how many there are, or their labels in order
    (default: those of y). Columns, (d,) numbers each: ``weight`` (prior weights) or ``frequency``
    (how many samples a row stands for), ``offset`` (added to scores), ``exposure``.

    The arrays are not copied; results have their shape and hash. Under mpirun every rank needs the same ones.
    Raises UserError for what cannot be federated data.
    """
    train, names, m = train_samples(X, y, clients)
    if train.sizes is not None and partition is not None:
        raise UserError("partition contradicts clients, which say already whose each sample is: give their number")
    columns: dict[str, Any] = {**options}
    others = {"partition": partition, "classes": classes, "stratify": columns.pop("stratify", None)}
    amounts: dict[str, Any] = {TEST: test, VALIDATION: columns.pop(VALIDATION, 0.0)}
    own = {role: given for role, given in amounts.items() if not is_number(given)}
    parts = {role: held_samples(given, train, names, role) for role, given in own.items()}
    held = HeldArrays(train, parts, check_columns(columns, len(train.y), parts))
    table = {"shape": list(train.X.shape), "sha256": held.digest(), "clients": m}
    table |= {role: 0.0 if role in parts else amount for role, amount in amounts.items()}
    table |= {key: to_plain(value, key) for key, value in others.items() if value is not None}
    return keep(Arrays.fill(table, "data"), held)


def train_samples(X: Any, y: ArrayLike, clients: Any) -> tuple[PoolSamples, Array | None, int]:
    """Return the training samples, with ``sizes`` None if a partition divides them; names and number of clients."""
    X, y = check_samples(X, y, "")
    if is_number(clients, int | np.integer):
        if not 1 <= clients <= len(y):
            raise UserError(f"clients = {clients} is wrong: {len(y)} samples are for 1 to {len(y)} clients")
        return PoolSamples(X, y, None, None), None, int(clients)
    # Whole numbers may be sizes or names. Only d ones could be both, a client for each sample or one client of the
    # name 1: they are taken as sizes, which the docstring names first.
    entries = to_vector(clients, "clients")
    if entries.dtype.kind in "iu" and entries.min() >= 1 and entries.sum() == len(y):
        return PoolSamples(X, y, None, entries.astype(np.int64)), None, len(entries)
    if len(entries) != len(y):
        raise UserError(
            f"clients is neither the sizes of the clients, at least 1 each and {len(y)} in all, nor one client for "
            f"each of the {len(y)} samples: it has {len(entries)} entries"
        )
    names, index = np.unique(entries, return_inverse=True)
    order = np.argsort(index, kind="stable")
    return PoolSamples(X, y, order, np.bincount(index)), names, len(names)


def held_samples(given: tuple[Any, ...], train: PoolSamples, names: Array | None, role: str) -> PoolSamples:
    """Return the samples of (X_test, y_test, clients_test) in a role, checked against those for training."""
    if train.sizes is None:
        raise UserError(f"{role} samples of clients need clients that say whose each training sample is, too")
    whose = f"clients_{role}"
    if len(given) != 3:
        raise UserError(f"{role} has {len(given)} parts: it must be a share, or (X_{role}, y_{role}, {whose})")
    X, y = check_samples(given[0], given[1], f"_{role}")
    if X.shape[1] != train.X.shape[1]:
        raise UserError(f"X_{role} has {X.shape[1]} columns, but X has {train.X.shape[1]}")
    entries = to_vector(given[2], whose)
    m = len(train.sizes)
    if names is None:
        if entries.dtype.kind not in "iu" or len(entries) != m or entries.min() < 0 or entries.sum() != len(y):
            raise UserError(f"{whose} must be the sizes of the {m} clients, {len(y)} in all")
        return PoolSamples(X, y, None, entries.astype(np.int64))
    if len(entries) != len(y) or not np.isin(entries, names).all():
        raise UserError(f"{whose} must be one client for each of the {len(y)} {role} samples, all of them in clients")
    index = np.searchsorted(names, entries)
    return PoolSamples(X, y, np.argsort(index, kind="stable"), np.bincount(index, minlength=m))


def check_columns(columns: Mapping[str, ArrayLike], d: int, held: Mapping[str, PoolSamples]) -> dict[str, Array]:
    """Return weights and offsets of the d samples by name; UserError for other names, lengths and numbers."""
    for name in columns:
        if name not in COLUMNS:
            raise_unknown("argument", name, COLUMNS, "mpifed.arrays")
    vectors = {name: to_vector(values, name) for name, values in columns.items()}
    if not vectors:
        return vectors
    refuse_both_weights(vectors)
    for name, values in vectors.items():
        if len(values) != d:
            raise UserError(f"{name} has {len(values)} entries, but X has {d} rows")
    if held:
        role = next(iter(held))
        plural = COLUMNS[next(iter(vectors))]
        raise UserError(
            f"{role} samples of their own have no {plural}: give {role} a share, or mpifed.table a frame with a column "
            "test"
        )
    combine_columns(vectors, str, entry)
    return vectors


def entry(k: int) -> str:
    return f"entry {k}"


def check_samples(X: Any, y: ArrayLike, part: str) -> tuple[SampleMatrix, Array]:
    """Return X (d, n) and y (d,) as arrays or CSR; UserError for wrong types and shapes, which names X + part."""
    original = X
    X = X.tocsr() if sp.issparse(X) else to_array(X, f"X{part}")
    if X.dtype.kind not in "biuf" and hasattr(original, "columns"):
        right = "it must be an array of real numbers; mpifed.table takes a data frame"
        raise UserError(f"X{part} has the type {X.dtype}: {right}")
    X, y = read_samples({f"X{part}": X, f"y{part}": to_vector(y, f"y{part}")}, "", part, texts=True)
    check_finite(X, range(len(y)), f"X{part}")
    return X, y


def to_vector(values: Any, name: str) -> Array:
    """Return finite real numbers, or texts, as an array with one axis; UserError for others."""
    array = to_array(values, name)
    if array.ndim != 1 or not len(array):
        raise UserError(f"{name} has the shape {array.shape}: it must have one axis and at least one entry")
    if array.dtype == object and all(isinstance(value, str) for value in array):  # such as those of pandas
        array = array.astype(str)
    if array.dtype.kind not in "biufSU":
        raise UserError(f"{name} has the type {array.dtype}: it must be an array of real numbers, or of texts")
    if array.dtype.kind == "f":
        check_finite(array, range(len(array)), name)
    return array


def to_array(values: Any, name: str) -> Array:
    """Return values as an array of numpy; UserError for masks, uneven lengths, and types that numpy cannot convert."""
    if count := count_masked(values):
        raise UserError(
            f"{name} has a mask over {format_count(count, 'number')}, of which nothing is known: "
            'leave their rows out, or give mpifed.table a data frame and missing="drop"'
        )
    try:
        return np.asarray(values)
    except ValueError:
        raise UserError(f"{name} has parts of different lengths: it must be an array") from None
    except (TypeError, RuntimeError) as error:  # of tensors that are no arrays of numpy, such as those with gradients
        raise UserError(f"{name} cannot be made an array of numpy: {error}") from None
