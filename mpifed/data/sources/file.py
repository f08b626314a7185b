"""Federated data from a file: HDF5, NPZ, MATLAB, LIBSVM, CSV or Parquet."""

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, Count
from mpifed.data.base import SUFFIXES, Data, Dataset, Test
from mpifed.data.formats.arrays import read_samples, read_sizes, read_test_samples, read_vector
from mpifed.data.formats.csv import read_csv
from mpifed.data.formats.mat import read_mat
from mpifed.data.formats.on_disk import open_h5, open_npz, reading
from mpifed.data.formats.parquet import read_parquet
from mpifed.data.formats.svm import read_svm
from mpifed.data.partition import Iid, Partition
from mpifed.data.pool import Samples, deal

KINDS = {suffix: kind for kind, suffixes in SUFFIXES.items() for suffix in suffixes}
TABLES = {"CSV": read_csv, "Parquet": read_parquet}
TEST = ("X_test", "X_test_data", "y_test", "sizes_test")


class File(Data, kw_only=True, tag="file"):
    """Samples from a file: X (d, n) or CSR, y (d,), sizes (m,); also X_test, y_test, sizes_test (HDF5, NPZ, MATLAB).

    With ``sizes``, client i owns the next sizes[i] rows. In a table (CSV, Parquet) the column ``client`` may say which
    client each row belongs to, elsewhere an array of the name client; clients are numbered in the sorted order of its
    values. Else ``partition`` divides the
    rows among ``clients``. Without X_test, ``test`` keeps a share of each client's rows for testing.
    Labels that are text are numbered from 0 in sorted order.
    """

    path: Annotated[str, Meta(description="file: .h5 .npz .mat .svm .csv .parquet; .svm and .csv also .gz or .bz2")]
    clients: Annotated[
        Count | None,
        Meta(description="number of clients m (default: that of the file's sizes or client column, else 128)"),
    ] = None  # type: ignore[assignment]
    usual: ClassVar[Partition] = Iid()
    partition: Partition | None = None
    test: Test = 0.0
    target: Annotated[
        int | str | None, Meta(description="column of y in a table, by name or number from 0 (default: the last)")
    ] = None
    client: Annotated[
        int | str | None, Meta(description="column of a table that says which client a row belongs to")
    ] = None
    zero_based: Annotated[
        bool | None, Meta(description="whether LIBSVM indices count from 0 (default: if an index 0 is there)")
    ] = None

    def locate(self) -> list[Path]:
        path = Path(os.path.expanduser(self.path))
        kind_of(path)
        if not os.path.isfile(path):
            raise UserError(
                f'data.path = "{self.path}" is not a file: give an HDF5, NPZ, MATLAB, LIBSVM, CSV or Parquet file'
            )
        return [path]

    def check(self) -> None:
        super().check()
        if kind_of(Path(self.path)) == "Parquet" and find_spec("pyarrow") is None:
            raise UserError(f'data.path = "{self.path}" needs pyarrow to be read: pip install "mpifed[data]"')

    def load(self, seed: int, dtype: str) -> Dataset:
        self.check()
        (path,) = self.locate()
        kind = kind_of(path)
        with reading(path, kind):
            arrays = self.read(path, kind)
            X, y = read_samples(arrays, path, "", texts=True)
            sizes = read_sizes(arrays, "sizes", path, X, 1) if "sizes" in arrays else None
            test = read_test_samples(arrays, path, X, sizes) if any(name in arrays for name in TEST) else None
        order = None
        division = ""
        if "client" in arrays:
            client = read_vector(arrays, "client", path, texts=True)
            if len(client) != X.shape[0]:
                raise UserError(f"client of {path} has {len(client)} entries, but X has {X.shape[0]} rows")
            values, owner = np.unique(client, return_inverse=True)
            self.check_agreement("has a column", len(values), test is not None)
            order = np.argsort(owner, kind="stable")
            sizes = np.bincount(owner)
            division = f"by the column {toml_value('client' if self.client is None else self.client)}"
        elif sizes is not None:
            self.check_agreement("has sizes", len(sizes), test is not None)
            division = "by the sizes in the file"
        pool = deal(self, Samples(X, y, order, sizes), test, seed, dtype, str(path))
        pool.division = pool.division or division
        if kind in ("CSV", "Parquet"):
            pool.notes += counting(X, path)
        return pool

    def read(self, path: Path, kind: str) -> dict[str, Any]:
        """The arrays of the file by name; those of HDF5 and NPZ are read later, by rows."""
        only = {"target": [*TABLES], "client": [*TABLES], "zero_based": ["LIBSVM"]}
        for key, kinds in only.items():
            value = getattr(self, key)
            if value is not None and kind not in kinds:
                raise UserError(
                    f"data.{key} = {toml_value(value)} is for {' and '.join(kinds)} files only, but {path} is {kind}: "
                    "leave it out"
                )
        if kind == "LIBSVM":
            return read_svm(path, self.zero_based)
        if kind in TABLES:
            return TABLES[kind](path, self.target, self.client)
        return {"HDF5": open_h5, "NPZ": open_npz, "MATLAB": read_mat}[kind](path)

    def check_agreement(self, has: str, m: int, tested: bool) -> None:
        """UserError for options that contradict a file that has sizes or a column of m clients, or is ``tested``."""
        (path,) = self.locate()
        if self.clients not in (None, m):
            raise UserError(
                f"data.clients = {self.clients} contradicts {path}, which {has} of {m} clients: leave it out"
            )
        if self.partition is not None:
            raise UserError(
                f'data.partition = "{self.partition.label()}" contradicts {path}, which {has} of {m} clients and so '
                "defines the rows of each: leave it out"
            )
        if tested and self.test:
            raise UserError(
                f"data.test = {self.test} contradicts {path}, which has its own test samples X_test: leave it out"
            )


def counting(X: Array, path: Path) -> tuple[str, ...]:
    """A sentence for each feature of a table that counts its rows, as the number of a record does."""
    rows = np.arange(len(X))
    found = [j for j in range(X.shape[1]) if len(X) > 2 and np.array_equal(X[:, j] - X[0, j], rows)]
    return tuple(
        f"feature {j} of {path} (counted from 0) numbers the rows: take the column out of the file if it is no feature"
        for j in found
    )


def kind_of(path: Path) -> str:
    """The format of a file by its suffix; UserError for an unknown one."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in (".gz", ".bz2")
    suffix = suffixes[-1 - packed] if len(suffixes) > packed else ""
    kind = KINDS.get(suffix, "")
    if not kind or (packed and kind not in ("LIBSVM", "CSV")):
        raise UserError(
            f'data.path = "{path}" has an unknown suffix: it must be one of {", ".join(KINDS)}, '
            "for text formats also with .gz or .bz2"
        )
    return kind
