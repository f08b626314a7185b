"""Federated data from a file: HDF5, NPZ, MATLAB, LIBSVM, CSV or Parquet."""

import codecs
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.component import fields_of
from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps, keeping
from mpifed.core.toml import listed, toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import SUFFIXES, Dataset
from mpifed.data.formats.arrays import read_samples, read_sizes, read_test_samples, read_vector
from mpifed.data.formats.h5_groups import OWNERS, by_groups
from mpifed.data.formats.mat import read_mat
from mpifed.data.formats.on_disk import is_h5, open_h5, open_npz, reading
from mpifed.data.formats.svm import about_indices, read_svm
from mpifed.data.pool import Pool, Samples, check_finite, deal_stated
from mpifed.data.sample_columns import COLUMNS, added, check_weights, combined, in_order
from mpifed.data.sources.tabular import Tabular
from mpifed.data.tables.samples import contradiction
from mpifed.data.tables.table import Matched, Stacked, Table

KINDS = {suffix: kind for kind, suffixes in SUFFIXES.items() for suffix in suffixes}
TABLES = ("CSV", "Parquet")
ANY = {"path", "join", "clients", "seed", "partition", "test", "classes", "standardise", "standardise_levels", "ones"}
UTF8 = ("utf-8", "utf-8-sig")  # the default, with or without a mark at its start
ANY |= {*COLUMNS, "client_weights"}
OF_CSV = ("header", "decimal", "thousands", "missing_texts", "encoding", "comment")
SOME = {"zero_based": ["LIBSVM"], "columns": ["LIBSVM"], **{key: ["CSV"] for key in OF_CSV}}  # others: of tables
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?")
TEST = ("X_test", "X_test_data", "y_test", "sizes_test")


class File(Tabular, kw_only=True, tag="file"):
    """Samples from a file: X (d, n) or CSR, y (d,), sizes (m,); also X_test, y_test, sizes_test (HDF5, NPZ, MATLAB).

    With ``sizes``, client i owns the next sizes[i] rows; an HDF5 file may have a group for each client instead, with X,
    y, X_test and y_test. In a table (CSV, Parquet) the column ``client`` may say which client each row belongs to,
    elsewhere an array of the name client; clients are numbered in the sorted order of its values. Several tables are
    one, in which each file is a client. Else ``partition`` divides the rows among ``clients``. Without X_test,
    ``test`` keeps a share of each client's rows for testing. Labels that are text are numbered from 0 in sorted order;
    features that are text become columns of zeros and ones.
    """

    # Samples as they are in the file; what options change of them, each says itself.
    keeps = Keeps.EVERYTHING
    # How the file is read, cell by cell.
    options = keeping("path", "join", "zero_based", "columns", *OF_CSV)

    path: Annotated[
        str | list[str],
        Meta(description="file: .h5 .npz .mat .svm .csv .parquet; .svm and .csv also .gz or .bz2; or a list of tables"),
    ]
    join: Annotated[
        str | None,
        Meta(description="a second table, matched by the one column of the same name; or a file with more arrays"),
    ] = None
    header: Annotated[
        bool | None, Meta(description="whether the first line of a CSV file has names (default: if it has words)")
    ] = None
    decimal: Annotated[Literal[".", ","], Meta(description="decimal mark of a CSV file")] = "."
    thousands: Annotated[
        Literal[",", ".", " ", "'"] | None,
        Meta(description="mark between groups of three digits in numbers of a CSV file (default: none)"),
    ] = None
    encoding: Annotated[
        str | None, Meta(description="encoding of a CSV file, such as latin-1, cp1252 or utf-16 (default: utf-8)")
    ] = None
    comment: Annotated[
        str | None, Meta(description="lines of a CSV file that begin with this text are left out (default: none)")
    ] = None
    missing_texts: Annotated[
        list[str] | None,
        Meta(description="missing cells of a CSV file (default: empty, NA, N/A, NaN, nan, null, NULL, None, ?)"),
    ] = None
    zero_based: Annotated[
        bool | None, Meta(description="whether LIBSVM indices count from 0 (default: if an index 0 is there)")
    ] = None

    columns: Annotated[
        Annotated[int, Meta(ge=1, le=10**9)] | None,
        Meta(description="number of features of a LIBSVM file (default: the largest index that is there)"),
    ] = None

    def paths(self) -> list[Path]:
        return [Path(os.path.expanduser(path)) for path in listed(self.path)]

    def locate(self) -> list[Path]:
        if not self.path:
            raise UserError("data.path is empty: give a file, or a list of tables")
        found = self.paths()
        joined = [] if self.join is None else [Path(os.path.expanduser(self.join))]
        for path in found + joined:
            key = "join" if path in joined else "path"
            kind = kind_of(path, key)
            if not os.path.isfile(path):
                raise UserError(
                    f'data.{key} = "{path}" is not a file: give an HDF5, NPZ, MATLAB, LIBSVM, CSV or Parquet file'
                )
            if kind not in TABLES and len(found) > 1:
                raise UserError(f"several files of data.path are tables, CSV or Parquet, but {path} is {kind}")
            if joined and (kind in TABLES) != (kind_of(found[0]) in TABLES):
                raise UserError(f"data.join adds columns to a table, or arrays to arrays: {path} is {kind}")
        return found + joined

    def check(self) -> None:
        super().check()
        if self.thousands == self.decimal:
            raise UserError(f'data.thousands = "{self.thousands}" is the decimal mark, too: data.decimal says another')
        if self.encoding is not None and not is_encoding(self.encoding):
            raise UserError(
                f"data.encoding = {toml_value(self.encoding)} is no encoding of texts that Python knows: it must be "
                "one such as utf-8, latin-1, cp1252 or utf-16"
            )
        if self.comment == "":
            raise UserError('data.comment = "" is wrong: it must be what lines of comments begin with, such as #')
        for path in self.locate():
            if kind_of(path) == "Parquet" and find_spec("pyarrow") is None:
                raise UserError(f'data.path = "{path}" needs pyarrow to be read: pip install "mpifed[data]"')

    def load(self, seed: int, dtype: str) -> Dataset:
        self.check()
        path = self.paths()[0]
        kind = kind_of(path)
        self.check_options(path, kind)
        with reading(path, kind):
            if kind in TABLES:
                return self.of_table(self.table(), seed, dtype)
            arrays = self.read(path, kind)
            if self.join is not None:
                more = Path(os.path.expanduser(self.join))
                arrays = self.read(more, kind_of(more, "join")) | arrays
            return self.prepared(self.of_arrays(arrays, path, seed, dtype))

    def table(self) -> Table:
        parts = [self.open(path) for path in self.paths()]
        table = Stacked(parts) if len(parts) > 1 else parts[0]
        return table if self.join is None else Matched(table, self.open(Path(os.path.expanduser(self.join))))

    def open(self, path: Path) -> Table:
        """The table in a file; readers are imported where they are used."""
        kind = kind_of(path)
        with reading(path, kind):
            if kind == "Parquet":
                from mpifed.data.formats.parquet import ParquetTable

                return ParquetTable(path)
            from mpifed.data.formats.cells import Writing
            from mpifed.data.formats.csv import CsvTable

            missing = MISSING if self.missing_texts is None else self.missing_texts
            encoding = None if self.encoding is None or codecs.lookup(self.encoding).name in UTF8 else self.encoding
            how = Writing(frozenset(missing), self.decimal, self.thousands, self.header, encoding, self.comment)
            return CsvTable(path, how)

    def of_arrays(self, arrays: dict[str, Any], path: Path, seed: int, dtype: str) -> Dataset:
        X, y = read_samples(arrays, path, "", texts=True)
        sizes = read_sizes(arrays, "sizes", path, X, 1) if "sizes" in arrays else None
        test = read_test_samples(arrays, path, X, sizes) if any(name in arrays for name in TEST) else None
        order = None
        division = ""
        owners = arrays.get(OWNERS, ())
        if "client" in arrays:
            client = read_vector(arrays, "client", path, texts=True)
            if len(client) != X.shape[0]:
                raise UserError(f"client of {path} has {len(client)} entries, but X has {X.shape[0]} rows")
            if client.dtype.kind == "f":
                check_finite(client, range(len(client)), f"client of {path}")
            values, owner = np.unique(client, return_inverse=True)
            self.check_agreement("has a column", len(values), test is not None)
            if sizes is not None and not np.array_equal(np.repeat(np.arange(len(sizes)), sizes), owner):
                raise UserError(f"client of {path} says otherwise than sizes whose the rows are: leave one of them out")
            order = np.argsort(owner, kind="stable")
            sizes = np.bincount(owner)
            division = 'by the column "client"'
            owners = tuple(map(str, values.tolist()))
        elif sizes is not None:
            self.check_agreement("has sizes", len(sizes), test is not None)
            division = "by the groups of the file" if owners else "by the sizes in the file"
        pool = deal_stated(self, Samples(X, y, order, sizes), test, seed, dtype, str(path))
        pool.inferred = about_indices(self.zero_based, self.columns) if kind_of(path) == "LIBSVM" else ()
        pool.division = pool.division or division
        pool.owners = owners
        self.add_arrays(pool, arrays, path)
        return pool

    def add_arrays(self, pool: Pool, arrays: dict[str, Any], path: Path) -> None:
        """Weights and offsets of samples and weights of clients, where options name their arrays."""
        names = self.arrays_of_samples()

        def values(part: str, d: int) -> Array:
            given = {name: read_vector(arrays, f"{key}{part}", path) for name, key in names.items()}
            for name, vector in given.items():
                if len(vector) != d:
                    raise UserError(
                        f"{names[name]}{part} of {path} has {len(vector)} entries, but X{part} has {d} rows"
                    )
            return combined(given, lambda name: f"{names[name]}{part} of {path}", lambda k: f"entry {k}")

        if names:
            apart = pool.test is not None and pool.test.X is not pool.train.X
            test = values("_test", len(pool.test.y)) if apart and pool.test is not None else None
            added(pool, in_order(tuple(names), values("", len(pool.train.y)), test, pool))
        if self.client_weights is not None:
            key = str(self.client_weights)
            own = read_vector(arrays, key, path).astype(float)
            if len(own) != pool.m:
                raise UserError(f"{key} of {path} has {len(own)} entries, and there are {pool.m} clients: one for each")
            check_weights(own, f"{key} of {path}")
            pool.client_weights = own

    def arrays_of_samples(self) -> dict[str, str]:
        """The arrays that options name, by what they are."""
        if self.weight is not None and self.frequency is not None:
            raise UserError("data.weight and data.frequency are both weights of samples: give one of them")
        return {name: str(key) for name in COLUMNS if (key := getattr(self, name)) is not None}

    def read(self, path: Path, kind: str) -> dict[str, Any]:
        with reading(path, kind):
            if kind == "LIBSVM":
                return read_svm(path, self.zero_based, self.columns)
            found = {"HDF5": open_h5, "NPZ": open_npz, "MATLAB": read_mat}[kind](path)
            if found or not (kind == "HDF5" or (kind == "MATLAB" and is_h5(path))):
                return found
            return by_groups(path, tuple(self.arrays_of_samples().values()))

    def check_options(self, path: Path, kind: str) -> None:
        for key, field in fields_of(type(self)).items():
            value = getattr(self, key)
            kinds = SOME.get(key, TABLES)
            if key not in ANY and value != field.default and kind not in kinds:
                raise UserError(
                    f"data.{key} = {toml_value(value)} is for {' and '.join(kinds)} files only, but {path} is {kind}: "
                    "leave it out"
                )
        if self.test_column() is not None and kind not in TABLES:
            raise UserError(
                f"data.test = {toml_value(self.test)} names a column of a table, but {path} is {kind}: give a share"
            )

    def check_agreement(self, has: str, m: int, tested: bool) -> None:
        """UserError for options that contradict a file that has sizes or a column of m clients, or is ``tested``."""
        contradiction(m, self, str(self.paths()[0]), has)
        if tested and self.test:
            raise UserError(
                f"data.test = {self.test} contradicts {self.path}, which has its own test samples X_test: leave it out"
            )


def kind_of(path: Path, key: str = "path") -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in (".gz", ".bz2")
    suffix = suffixes[-1 - packed] if len(suffixes) > packed else ""
    kind = KINDS.get(suffix, "")
    if not kind or (packed and kind not in ("LIBSVM", "CSV")):
        raise UserError(
            f'data.{key} = "{path}" has an unknown suffix: it must be one of {", ".join(KINDS)}, '
            "for text formats also with .gz or .bz2"
        )
    return kind


def is_encoding(name: str) -> bool:
    try:
        "a".encode(name)
    except (LookupError, ValueError):
        return False
    return True
