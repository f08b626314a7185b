"""Datasets of torch as federated data: one for each client, or one and which of its items each client has."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core import plugins
from mpifed.core.arrays import is_number, masked
from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory
from mpifed.core.promises import Keeps, keeping
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, Count
from mpifed.data.dataset import Data, Dataset, Test
from mpifed.data.partition import Iid, Partition
from mpifed.data.pool import Classes, deal_stated
from mpifed.data.sources.arrays import arrays, samples_of, test_samples, vector


class Part(NamedTuple):
    """Items of a dataset, at ``positions``; ``name`` is what messages call it."""

    dataset: Any
    positions: Sequence[int]
    name: str


def read(parts: Sequence[Part], first: Array) -> tuple[Array, Array]:
    """X (d, n) and y (d,): the samples of all parts, flattened, of the type and shape of the sample ``first``."""
    # A client may have one item of two, so that X may take more memory than the dataset.
    total = sum(len(part.positions) for part in parts)
    check_memory(total * first.nbytes, f"the {total:,} samples of the datasets")
    X = np.empty((total, first.size), first.dtype)
    y: list[Any] = []
    for part in parts:
        for j in part.positions:
            sample, label = item(part, j)
            if sample.shape != first.shape or sample.dtype != first.dtype:
                one, other = (f"{found.dtype} {toml_value(found.shape)}" for found in (sample, first))
                raise UserError(
                    f"item {j} of {part.name} is {one}, and the first sample {other}: all have one shape and type"
                )
            X[len(y)] = sample.ravel()
            y.append(label)
    return X, np.array(y)


def first(parts: Sequence[Part]) -> Array:
    for part in parts:
        for j in part.positions[:1]:
            sample, again = (item(part, j)[0] for _ in range(2))
            if again.shape != sample.shape or again.tobytes() != sample.tobytes():
                raise UserError(
                    f"item {j} of {part.name} is another one when it is read again, so ranks would have other data: "
                    "leave random transforms out"
                )
            return sample
    raise UserError("there is no sample")


def item(part: Part, j: Any) -> tuple[Array, Any]:
    try:
        if int(j) != j:
            raise ValueError("its position is no whole number")
        sample, label = part.dataset[int(j)]
        if masked([sample, label]):
            raise ValueError("it has masked entries, of which nothing is known")
        sample, label = np.asarray(sample), np.asarray(label)
    except Exception as error:  # the user's code may raise anything
        raise UserError(f"item {j} of {part.name} cannot be read as (sample, label): {error_text(error)}") from None
    if sample.dtype.kind not in "biuf" or label.size != 1:
        found = f"a sample of type {sample.dtype} and {label.size} labels"
        raise UserError(f"item {j} of {part.name} has {found}: it must be numbers and one label")
    return sample, label.item()


def error_text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")


RIGHT = "a list of datasets, one for each client, or a tuple (dataset, index)"
Reference = Annotated[str, Meta(description="path.py:function or package.module:function")]


class TorchDataset(Data, kw_only=True, tag="torch-dataset"):
    """Items (sample, label) of torch.utils.data.Dataset, of one dataset for each client or of one for all.

    ``path`` names a function, which is called with ``arguments`` and returns a list of datasets, one for each client;
    or a tuple (dataset, index), where index has a list of positions for each client, or the client of each item; or one
    dataset, which ``partition`` divides among ``clients``. ``path_test`` names one for test samples. Any object with
    len() and [position] is a dataset. Samples are flattened; ``problem.shape`` gives a network their shape. Every rank
    reads all items once, before the first round, so transforms must not be random.
    """

    # Samples as the function gives them, which must not depend on those of others.
    keeps = Keeps.EVERYTHING
    options = keeping("path", "path_test", "arguments", "partition", "test", "classes")

    objective: ClassVar[str] = "softmax"
    usual: ClassVar[Partition] = Iid()

    path: Reference
    path_test: Annotated[str | None, Meta(description="the same for test samples")] = None
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments of both functions")] = {}  # noqa: RUF012
    clients: Annotated[
        Count | None, Meta(description="number of clients m (default: that of the datasets or index, else 128)")
    ] = None  # type: ignore[assignment]
    partition: Partition | None = None
    test: Test = 0.0
    classes: Classes = None

    def locate(self) -> list[Path]:
        found = [plugins.FILE.fullmatch(name) and name.rpartition(":")[0] for name in self.references().values()]
        return [Path(name).expanduser() for name in found if name]

    def check(self) -> None:
        for key, reference in self.references().items():
            try:
                plugins.parse(reference)
            except ValueError as error:
                raise UserError(f"data.{key} = {toml_value(reference)} is wrong: {error}") from None

    def references(self) -> dict[str, str]:
        return {"path": self.path} | ({} if self.path_test is None else {"path_test": self.path_test})

    def load(self, seed: int, dtype: str) -> Dataset:
        self.check()
        X, y, clients, shape = self.made("path", self.path)
        owned = np.ndim(clients) > 0  # not the number of clients alone
        if owned:
            self.refuse_options()
        train, names, m = samples_of(X, y, clients)
        if owned and self.clients not in (None, m):
            raise UserError(f"data.clients = {self.clients} contradicts data.path, which makes {m}: leave it out")
        test = None
        if self.path_test is not None:
            if not owned:
                raise UserError(f"data.path_test needs data.path to say whose samples are whose: {RIGHT}")
            test = test_samples(self.made("path_test", self.path_test)[:3], train, names)
        pool = deal_stated(self, train, test, seed, dtype, "the datasets")
        pool.division = pool.division or "by the datasets"
        if len(shape) > 1:
            pool.notes += (f"samples of shape {toml_value(shape)} are flat rows: problem.shape is for networks",)
        return pool

    def made(self, key: str, reference: str) -> tuple[Array, Array, Any, tuple[int, ...]]:
        """What ``gathered`` makes of the datasets that a function returns; ``clients`` is m where it does not tell."""
        wrong = f"data.{key} = {toml_value(reference)} is wrong:"
        try:
            found = plugins.load(reference, "function", Callable)(**self.arguments)
        except Exception as error:  # the user's code may raise anything
            raise UserError(f"{wrong} {error_text(error)}") from None
        try:
            X, y, clients, shape = gathered(found, empty=key == "path_test")
        except UserError as error:
            raise UserError(f"{wrong} {error}") from None
        return X, y, self.clients or 128 if clients is None else clients, shape

    def refuse_options(self) -> None:
        if self.partition is not None:
            raise UserError("data.partition cannot be set: data.path says whose samples are whose, so leave it out")
        if self.test and self.path_test is not None:
            raise UserError("data.test cannot be set: data.path_test says what is tested, so leave it out")


def datasets(train: Any, *, partition: Any = None, test: Any = 0.0, classes: Any = None) -> Data:
    """Federated data from datasets of torch: ``mpifed.datasets(train, test=test)``.

    ``train``: a list of datasets, one for each client, or a tuple (dataset, index). Index has a list of positions for
    each client, as a list or a dictionary, whose keys are sorted; or the client of each item; or it is the number m of
    clients, among whom ``partition`` (default: iid) divides the items. ``test``: the share of each client's samples
    that is kept for testing, or the same for test samples. Items are pairs (sample, label); samples are flattened, and
    ``problem.shape`` gives a network their shape. Any object with len() and [position] is a dataset. ``classes``: how
    many there are, or their labels in order (default: those of the items).

    All items are read now, once; the result has the shape and hash of their array. Raises UserError for what cannot be
    federated data.
    """
    X, y, clients, _ = gathered(train)
    if clients is None:
        raise UserError(f"these items belong to no client: train is {RIGHT}")
    tests = test if is_number(test) else gathered(test, empty=True)[:3]
    return arrays(X, y, clients, partition=partition, test=tests, classes=classes)


def gathered(given: Any, empty: bool = False) -> tuple[Array, Array, Any, tuple[int, ...]]:
    """X (d, n), y (d,) of all items, whose they are as ``arrays`` takes it, or None; and the shape of a sample.

    ``empty``: whether a client may have none. UserError where they are no samples.
    """
    parts, owned, clients = parts_of(given)
    if owned:
        clients = np.array([len(part.positions) for part in parts])
        if not empty and not clients.all():
            raise UserError(f"{parts[int(np.argmin(clients))].name} is empty: at least 1 sample is needed")
    sample = first(parts)
    X, y = read(parts, sample)
    return X, y, clients, sample.shape


def parts_of(given: Any) -> tuple[list[Part], bool, Any]:
    """The items in order, whether each part is one client's, and else whose they are: the user's index, or None."""
    if isinstance(given, list):
        return [whole(one, f"the dataset of client {i}") for i, one in enumerate(given)], True, None
    if not isinstance(given, tuple):
        return [whole(given, "the dataset")], False, None
    if len(given) != 2:
        raise UserError(f"it is a tuple of {len(given)}: it must be {RIGHT}")
    dataset, index = given
    every = whole(dataset, "the dataset")
    if isinstance(index, Mapping):
        index = [index[key] for key in sorted(index)]
    if isinstance(index, list) and all(np.ndim(own) == 1 for own in index):
        return [Part(dataset, own, f"the list of positions of client {i}") for i, own in enumerate(index)], True, None
    return [every], False, index if index is None or is_number(index) else vector(index, "index")


def whole(dataset: Any, name: str) -> Part:
    """All items of a dataset."""
    if not (hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__")):
        raise UserError(f"{name} is a {type(dataset).__name__}, which has no len() and [position]: it must be {RIGHT}")
    return Part(dataset, range(len(dataset)), name)
