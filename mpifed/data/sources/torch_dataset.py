"""Datasets of torch as federated data: one for each client, or one with the positions of each client's items."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core import plugins
from mpifed.core.arrays import count_masked, is_number
from mpifed.core.errors import UserError, error_line
from mpifed.core.memory import check_memory
from mpifed.core.promises import Supports, supporting
from mpifed.core.roles import HELD_OUT
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, PositiveInt
from mpifed.data.dataset import Data, Dataset
from mpifed.data.partition import Iid, Partition
from mpifed.data.pool import ClassesOption, make_pool_with_classes, refuse_contradiction
from mpifed.data.sources.arrays import arrays, held_samples, to_vector, train_samples
from mpifed.data.split import Stratify, TestAmount, ValidationAmount


class Items(NamedTuple):
    """Items of a dataset at some ``positions``, with a name for error messages."""

    dataset: Any
    positions: Sequence[int]
    name: str


def read_items(parts: Sequence[Items], first: Array) -> tuple[Array, Array]:
    """Return X (d, n) and y (d,) of all parts, with flat samples of the type and shape of the sample ``first``."""
    # Clients may share items, so that X may take more memory than the dataset.
    total = sum(len(part.positions) for part in parts)
    check_memory(total * first.nbytes, f"the {total:,} samples of the datasets")
    X = np.empty((total, first.size), first.dtype)
    y: list[Any] = []
    for part in parts:
        for j in part.positions:
            sample, label = read_item(part, j)
            if sample.shape != first.shape or sample.dtype != first.dtype:
                one, other = (f"{array.dtype} {toml_value(array.shape)}" for array in (sample, first))
                raise UserError(
                    f"item {j} of {part.name} is {one}, and the first sample {other}: all have one shape and type"
                )
            X[len(y)] = sample.ravel()
            y.append(label)
    return X, np.array(y)


def read_first(parts: Sequence[Items]) -> Array:
    """Return the first sample; UserError if there is none, or if it differs when it is read again."""
    for part in parts:
        for j in part.positions[:1]:
            sample, again = (read_item(part, j)[0] for _ in range(2))
            if again.shape != sample.shape or again.tobytes() != sample.tobytes():
                raise UserError(
                    f"item {j} of {part.name} is another one when it is read again, so ranks would have other data: "
                    "leave random transforms out"
                )
            return sample
    raise UserError("there is no sample")


def read_item(part: Items, j: Any) -> tuple[Array, Any]:
    """Return the sample and the label at position j; UserError if there are none."""
    try:
        if int(j) != j:
            raise ValueError("its position is no whole number")
        sample, label = part.dataset[int(j)]
        if count_masked([sample, label]):
            raise ValueError("it has masked entries, of which nothing is known")
        sample, label = np.asarray(sample), np.asarray(label)
    except Exception as error:  # the user's code may raise anything
        raise UserError(f"item {j} of {part.name} cannot be read as (sample, label): {error_line(error)}") from None
    if sample.dtype.kind not in "biuf" or label.size != 1:
        content = f"a sample of type {sample.dtype} and {label.size} labels"
        raise UserError(f"item {j} of {part.name} has {content}: it must be numbers and one label")
    return sample, label.item()


RIGHT = "a list of datasets, one for each client, or a tuple (dataset, index)"
Reference = Annotated[str, Meta(description="path.py:function or package.module:function")]


class TorchDataset(Data, kw_only=True, tag="torch-dataset"):
    """Items (sample, label) of datasets like torch.utils.data.Dataset, one dataset for each client or one for all.

    ``path`` names a function, which is called with ``arguments`` and returns a list of datasets, one for each client;
    or a tuple (dataset, index), where index has a list of positions for each client, or the client of each item; or one
    dataset, which ``partition`` divides among ``clients``. ``path_test`` and ``path_validation`` name functions for
    test and validation samples. Any object with len() and [position] is a dataset. Samples are flattened;
    ``problem.shape`` gives a network their shape. Every rank
    reads all items once, before the first round, so transforms must not be random.
    """

    # Samples as a function of the user returns them, which must not let samples depend on each other.
    supports = Supports.EVERYTHING
    options = supporting("path", "path_test", "path_validation", "arguments", "partition", "classes")
    options |= supporting("test", "validation", "stratify")

    objective: ClassVar[str] = "softmax"
    default_partition: ClassVar[Partition] = Iid()

    path: Reference
    path_test: Annotated[str | None, Meta(description="the same for test samples")] = None
    path_validation: Annotated[str | None, Meta(description="the same for validation samples")] = None
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments of these functions")] = {}  # noqa: RUF012
    clients: Annotated[
        PositiveInt | None, Meta(description="number of clients m (default: that of the datasets or index, else 128)")
    ] = None  # type: ignore[assignment]
    partition: Partition | None = None
    test: TestAmount = 0.0
    validation: ValidationAmount = 0.0
    stratify: Stratify = False
    classes: ClassesOption = None

    def locate(self) -> list[Path]:
        names = [
            plugins.FILE_REFERENCE.fullmatch(name) and name.rpartition(":")[0] for name in self.references().values()
        ]
        return [Path(name).expanduser() for name in names if name]

    def check(self) -> None:
        for key, reference in self.references().items():
            try:
                plugins.parse_reference(reference)
            except ValueError as error:
                raise UserError(f"data.{key} = {toml_value(reference)} is wrong: {error}") from None

    def references(self) -> dict[str, str]:
        return {"path": self.path, **{f"path_{role}": name for role, name in self.held_out().items()}}

    def held_out(self) -> dict[str, str]:
        """Return the functions for samples that are not for training, by role."""
        names = {role: getattr(self, f"path_{role}") for role in HELD_OUT}
        return {role: name for role, name in names.items() if name is not None}

    def load(self, seed: int, dtype: str) -> Dataset:
        self.check()
        X, y, clients, shape = self.call_function("path", self.path)
        has_owners = np.ndim(clients) > 0  # not the number of clients alone
        train, names, m = train_samples(X, y, clients)
        if has_owners:
            has = {role: f"data.path_{role}, which has the {role} samples" for role in self.held_out()}
            refuse_contradiction(self, m, "data.path", "has the samples", has)
        held = {}
        for role, reference in self.held_out().items():
            if not has_owners:
                raise UserError(f"data.path_{role} needs data.path to say whose samples are whose: {RIGHT}")
            held[role] = held_samples(self.call_function(f"path_{role}", reference)[:3], train, names, role)
        pool = make_pool_with_classes(self, train, held, seed, dtype, "the datasets")
        pool.division = pool.division or "by the datasets"
        if len(shape) > 1:
            pool.notes += (f"samples of shape {toml_value(shape)} are flat rows: problem.shape is for networks",)
        return pool

    def call_function(self, key: str, reference: str) -> tuple[Array, Array, Any, tuple[int, ...]]:
        """Call a function; return ``read_datasets`` of what it returns, with m if this names no clients."""
        wrong = f"data.{key} = {toml_value(reference)} is wrong:"
        try:
            result = plugins.load_class(reference, "function", Callable)(**self.arguments)
        except Exception as error:  # the user's code may raise anything
            raise UserError(f"{wrong} {error_line(error)}") from None
        try:
            X, y, clients, shape = read_datasets(result, empty=key != "path")
        except UserError as error:
            raise UserError(f"{wrong} {error}") from None
        return X, y, self.clients or 128 if clients is None else clients, shape


def datasets(
    train: Any,
    *,
    partition: Any = None,
    test: Any = 0.0,
    validation: Any = 0.0,
    stratify: bool = False,
    classes: Any = None,
) -> Data:
    """Return federated data from datasets of torch: ``mpifed.datasets(train, test=test)``.

    ``train``: a list of datasets, one for each client, or a tuple (dataset, index). Index has a list of positions for
    each client, as a list or a dictionary, whose keys are sorted; or the client of each item; or it is the number m of
    clients, among whom ``partition`` (default: iid) divides the items. ``test``: the share of each client's samples
    that is kept for testing, or test data like ``train``; ``validation`` likewise, for choosing by. ``stratify``: keep
    the proportions of a client's classes. Items are pairs (sample, label); samples are flattened, and
    ``problem.shape`` gives a network their shape. Any object with len() and [position] is a dataset. ``classes``: how
    many there are, or their labels in order (default: those of the items).

    All items are read now, once; the result has the shape and hash of their array. Raises UserError for what cannot be
    federated data.
    """
    X, y, clients, _ = read_datasets(train)
    if clients is None:
        raise UserError(f"these items belong to no client: train is {RIGHT}")
    tests, choosing = (
        given if is_number(given) else read_datasets(given, empty=True)[:3] for given in (test, validation)
    )
    held: dict[str, Any] = {"test": tests, "validation": choosing, "stratify": stratify}
    return arrays(X, y, clients, partition=partition, classes=classes, **held)


def read_datasets(value: Any, empty: bool = False) -> tuple[Array, Array, Any, tuple[int, ...]]:
    """Return X (d, n), y (d,) of all items, their clients as ``arrays`` takes them, or None, and a sample's shape.

    ``empty``: whether a client may have no items. Raises UserError for what are no datasets or samples.
    """
    parts, by_client, clients = parts_of(value)
    if by_client:
        clients = np.array([len(part.positions) for part in parts])
        if not empty and not clients.all():
            raise UserError(f"{parts[int(np.argmin(clients))].name} is empty: at least 1 sample is needed")
    sample = read_first(parts)
    X, y = read_items(parts, sample)
    return X, y, clients, sample.shape


def parts_of(value: Any) -> tuple[list[Items], bool, Any]:
    """Return the items in order, whether each part is one client's, and the user's index if not, or None."""
    if isinstance(value, list):
        return [all_items(one, f"the dataset of client {i}") for i, one in enumerate(value)], True, None
    if not isinstance(value, tuple):
        return [all_items(value, "the dataset")], False, None
    if len(value) != 2:
        raise UserError(f"it is a tuple of {len(value)}: it must be {RIGHT}")
    dataset, index = value
    every = all_items(dataset, "the dataset")
    if isinstance(index, Mapping):
        index = [index[key] for key in sorted(index)]
    if isinstance(index, list) and all(np.ndim(positions) == 1 for positions in index):
        parts = [Items(dataset, one, f"the list of positions of client {i}") for i, one in enumerate(index)]
        return parts, True, None
    return [every], False, index if index is None or is_number(index) else to_vector(index, "index")


def all_items(dataset: Any, name: str) -> Items:
    """Return all items of a dataset; UserError if it has no len() and [position]."""
    if not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
        raise UserError(f"{name} is a {type(dataset).__name__}, which has no len() and [position]: it must be {RIGHT}")
    return Items(dataset, range(len(dataset)), name)
