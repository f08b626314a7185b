"""Arrays in the memory of a Python program as federated data."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta
from numpy.typing import ArrayLike

from mpifed.core import sparse as sp
from mpifed.core.arrays import is_number, masked
from mpifed.core.errors import UserError, counted, unknown
from mpifed.core.objects import plain
from mpifed.core.promises import Keeps, keeping
from mpifed.core.typing import Array, Count, Matrix
from mpifed.data.dataset import Data, Dataset, Test
from mpifed.data.partition import Iid, Partition
from mpifed.data.pool import Classes, Samples, check_finite, deal_stated
from mpifed.data.sample_columns import COLUMNS, added, combined, in_order
from mpifed.data.sources.held import Words, found, kept

CHUNK_BYTES = 1 << 24  # of a matrix that are hashed at a time


@dataclass(eq=False)
class Held:
    """Samples X (d, n), y (d,) and, where given, whose they are; without sizes a partition divides the rows.

    ``columns``: weights and offsets (d,) by name.
    """

    train: Samples
    test: Samples | None
    columns: dict[str, Array]

    def digest(self) -> str:
        found = hashlib.sha256()
        for X, *others in filter(None, (self.train, self.test)):
            own = [X.data, X.indices, X.indptr] if sp.issparse(X) else [X]
            for array in (array for array in [*own, *others] if array is not None):
                found.update(f"{array.dtype.str} {array.shape};".encode())
                step = max(1, CHUNK_BYTES // max(1, array[:1].nbytes))
                for first in range(0, len(array), step):
                    found.update(np.ascontiguousarray(array[first : first + step]).data)
        for name, column in self.columns.items():
            found.update(f"{name} {column.dtype.str};".encode())
            found.update(np.ascontiguousarray(column).data)
        return found.hexdigest()


WORDS = Words(
    call="mpifed.arrays(X, y, clients)",
    again="mpifed.arrays(X, y, clients)",
    what="arrays",
    same="arrays",
    changed="the arrays have changed since mpifed.arrays(…) took them",
)


class Arrays(Data, kw_only=True, tag="arrays", dict=True):
    """Arrays of a Python program, as `mpifed.arrays(X, y, clients)` gives them; recorded by shape and hash.

    Only a Python program that holds the same arrays can run and resume such an experiment.
    """

    # Samples as they are; every rank has the arrays of the program.
    keeps = Keeps.EVERYTHING
    held = True
    options = keeping("shape", "sha256", "partition", "test", "classes")

    shape: Annotated[list[int] | None, Meta(description="samples d and features n")] = None
    sha256: Annotated[str, Meta(description="hash of the arrays, of whose they are, and of test samples")] = ""
    clients: Annotated[Count | None, Meta(description="number of clients m")] = None  # type: ignore[assignment]
    usual: ClassVar[Partition] = Iid()
    partition: Partition | None = None
    test: Test = 0.0
    classes: Classes = None

    def check(self) -> None:
        found(self, WORDS)

    def load(self, seed: int, dtype: str) -> Dataset:
        held: Held = found(self, WORDS)
        pool = deal_stated(self, held.train, held.test, seed, dtype, "the arrays")
        pool.division = pool.division or "by the arrays"
        if held.columns:
            values = combined(held.columns, str, entry)
            added(pool, in_order(tuple(held.columns), values, None, pool))
        return pool


def arrays(
    X: Any,
    y: ArrayLike,
    clients: int | Sequence[Any] | Array,
    *,
    partition: Any = None,
    test: float | tuple[Any, ArrayLike, Sequence[Any] | Array] = 0.0,
    classes: int | Sequence[int | str] | None = None,
    **columns: ArrayLike,
) -> Data:
    """Federated data from arrays in memory: ``mpifed.arrays(X, y, clients)``.

    ``X`` (d, n): an array of numbers, or a sparse matrix of scipy, read as CSR. ``y`` (d,): labels or targets.
    ``clients``: the number of samples of each client, (m,), client i owning the next clients[i] rows; or whose each
    sample is, (d,) numbers or texts, clients in sorted order; or the number m of clients, among whom ``partition``
    (default: iid) divides the samples. ``test``: share of each client's samples that is kept for testing, or
    (X_test, y_test, clients_test) with ``clients_test`` as ``clients``. ``classes``: how many there are, or their
    labels in order (default: those of y). ``columns``, (d,) numbers each: ``weight`` (prior weights) or ``frequency``
    (how many samples a row stands for), ``offset`` (added to scores), ``exposure``.

    The arrays are not copied; results have their shape and hash. Under mpirun every rank needs the same ones.
    Raises UserError for what cannot be federated data.
    """
    train, names, m = samples_of(X, y, clients)
    if train.sizes is not None and partition is not None:
        raise UserError("partition contradicts clients, which say already whose each sample is: give their number")
    tests = None
    if isinstance(test, tuple):
        if train.sizes is None:
            raise UserError("test samples of clients need clients that say whose each training sample is, too")
        tests = test_samples(test, train, names)
        test = 0.0
    held = Held(train, tests, checked_columns(columns, len(train.y), tests))
    sha256 = held.digest()
    given = {"partition": partition, "classes": classes}
    table = {"shape": list(train.X.shape), "sha256": sha256, "clients": m, "test": test}
    table |= {key: plain(value, key) for key, value in given.items() if value is not None}
    made = Arrays.fill(table, "data")
    return kept(made, held)


def samples_of(X: Any, y: ArrayLike, clients: Any) -> tuple[Samples, Array | None, int]:
    """The training samples, ``sizes`` None where they are to be divided; the names of clients; their number."""
    X, y = checked(X, y, "")
    if is_number(clients, int | np.integer):
        if not 1 <= clients <= len(y):
            raise UserError(f"clients = {clients} is wrong: {len(y)} samples are for 1 to {len(y)} clients")
        return Samples(X, y, None, None), None, int(clients)
    # Whole numbers may be sizes or names. Of d names that add up to d, all are 1, and all samples are one client's in
    # the one meaning and each is a client in the other: that sizes are meant is what the docstring says first.
    given = vector(clients, "clients")
    if given.dtype.kind in "iu" and given.min() >= 1 and given.sum() == len(y):
        return Samples(X, y, None, given.astype(np.int64)), None, len(given)
    if len(given) != len(y):
        raise UserError(
            f"clients is neither the sizes of the clients, at least 1 each and {len(y)} in all, nor one client for "
            f"each of the {len(y)} samples: it has {len(given)} entries"
        )
    names, index = np.unique(given, return_inverse=True)
    order = np.argsort(index, kind="stable")
    return Samples(X, y, order, np.bincount(index)), names, len(names)


def test_samples(test: tuple[Any, ...], train: Samples, names: Array | None) -> Samples:
    """The test samples of (X_test, y_test, clients_test), checked against those for training."""
    if len(test) != 3:
        raise UserError(f"test has {len(test)} parts: it must be a share, or (X_test, y_test, clients_test)")
    X, y = checked(test[0], test[1], "_test")
    if X.shape[1] != train.X.shape[1]:
        raise UserError(f"X_test has {X.shape[1]} columns, but X has {train.X.shape[1]}")
    given = vector(test[2], "clients_test")
    m = len(train.sizes)
    if names is None:
        if given.dtype.kind not in "iu" or len(given) != m or given.min() < 0 or given.sum() != len(y):
            raise UserError(f"clients_test must be the sizes of the {m} clients, {len(y)} in all")
        return Samples(X, y, None, given.astype(np.int64))
    if len(given) != len(y) or not np.isin(given, names).all():
        raise UserError(
            f"clients_test must be one client for each of the {len(y)} test samples, all of them in clients"
        )
    index = np.searchsorted(names, given)
    return Samples(X, y, np.argsort(index, kind="stable"), np.bincount(index, minlength=m))


def checked_columns(columns: Mapping[str, ArrayLike], d: int, tests: Samples | None) -> dict[str, Array]:
    """Weights and offsets of the d samples by name. UserError for other names, lengths and numbers."""
    for name in columns:
        if name not in COLUMNS:
            unknown("argument", name, COLUMNS, "mpifed.arrays")
    given = {name: vector(values, name) for name, values in columns.items()}
    if not given:
        return given
    if "weight" in given and "frequency" in given:
        raise UserError("weight and frequency are both weights of samples: give one of them")
    for name, values in given.items():
        if len(values) != d:
            raise UserError(f"{name} has {len(values)} entries, but X has {d} rows")
    if tests is not None:
        what = COLUMNS[next(iter(given))]
        raise UserError(
            f"test samples of their own have no {what}: give test a share, or mpifed.table a frame with a column test"
        )
    combined(given, str, entry)
    return given


def entry(k: int) -> str:
    return f"entry {k}"


def checked(X: Any, y: ArrayLike, part: str) -> tuple[Matrix, Array]:
    given = X
    X = X.tocsr() if sp.issparse(X) else even(X, f"X{part}")
    if len(X.shape) != 2 or 0 in X.shape:
        raise UserError(f"X{part} has the shape {tuple(X.shape)}: it must be (d, n) with d > 0 and n > 0")
    y = vector(y, f"y{part}")
    if X.dtype.kind not in "biuf":
        frame = "; mpifed.table takes a data frame" if hasattr(given, "columns") else ""
        raise UserError(f"X{part} has the type {X.dtype}: it must be an array of real numbers{frame}")
    if len(y) != X.shape[0]:
        raise UserError(f"y{part} has {len(y)} entries, but X{part} has {X.shape[0]} rows")
    check_finite(X, range(len(y)), f"X{part}")
    return X, y


def vector(values: Any, name: str) -> Array:
    """Real numbers, finite ones, or texts, as an array with one axis."""
    found = even(values, name)
    if found.ndim != 1 or not len(found):
        raise UserError(f"{name} has the shape {found.shape}: it must have one axis and at least one entry")
    if found.dtype == object and all(isinstance(value, str) for value in found):  # as those of pandas
        found = found.astype(str)
    if found.dtype.kind not in "biufSU":
        raise UserError(f"{name} has the type {found.dtype}: it must be an array of real numbers, or of texts")
    if found.dtype.kind == "f":
        check_finite(found, range(len(found)), name)
    return found


def even(values: Any, name: str) -> Array:
    if count := masked(values):
        raise UserError(
            f"{name} has a mask over {counted(count, 'number')}, of which nothing is known: "
            'leave their rows out, or give mpifed.table a data frame and missing="drop"'
        )
    try:
        return np.asarray(values)
    except ValueError:
        raise UserError(f"{name} has parts of different lengths: it must be an array") from None
    except (TypeError, RuntimeError) as error:  # of tensors that are no arrays of numpy, such as those with gradients
        raise UserError(f"{name} cannot be made an array of numpy: {error}") from None
