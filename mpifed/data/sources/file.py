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
from mpifed.core.promises import Supports, supporting
from mpifed.core.roles import HELD_OUT
from mpifed.core.toml import as_list, toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import SUFFIXES, Dataset
from mpifed.data.formats.arrays import read_held_out, read_samples, read_sizes, read_vector
from mpifed.data.formats.hdf5 import OWNERS, is_h5, open_h5, read_groups
from mpifed.data.formats.mat import read_mat
from mpifed.data.formats.on_disk import open_npz, reading
from mpifed.data.formats.svm import infer_indices, read_svm
from mpifed.data.pool import Pool, PoolSamples, check_finite, make_pool_with_classes, refuse_contradiction
from mpifed.data.sample_columns import (
    COLUMNS,
    attach_columns,
    check_weights,
    columns_of_pool,
    combine_columns,
    refuse_both_weights,
)
from mpifed.data.sources.tabular import Tabular
from mpifed.data.tables.table import DataTable, JoinedTable, StackedTable

FORMATS = {suffix: form for form, suffixes in SUFFIXES.items() for suffix in suffixes}
TABLES = ("CSV", "Parquet")
ANY = {"path", "join", "clients", "seed", "partition", "test", "classes", "standardise", "standardise_levels", "ones"}
UTF8 = ("utf-8", "utf-8-sig")  # the default, with or without a mark at its start
ANY |= {*COLUMNS, "client_weights", "validation", "stratify"}
OF_CSV = ("header", "decimal", "thousands", "missing_texts", "encoding", "comment")
SOME = {"zero_based": ["LIBSVM"], "columns": ["LIBSVM"], **{key: ["CSV"] for key in OF_CSV}}  # others: for tables
MISSING = ("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "?")


class File(Tabular, kw_only=True, tag="file"):
    """Samples from a file: X (d, n) or CSR, y (d,), sizes (m,); for testing also X_test, y_test, sizes_test.

    With ``sizes``, client i owns the next sizes[i] rows; an HDF5 file may have a group for each client instead, with X,
    y, X_test and y_test. Validation samples have arrays X_validation … likewise. In a table (CSV, Parquet) the column
    ``client`` may say which client each row belongs to, elsewhere an array of the name client; clients are numbered in
    the sorted order of its values. Several tables are one, in which each file is a client. Else ``partition`` divides
    the rows among ``clients``. Without X_test, ``test`` keeps a share of each client's rows for testing; likewise for
    validation. Labels that are text are numbered from 0 in sorted order; features that are text become columns of zeros
    and ones.
    """

    # Samples as they are in the file; options that change them have promises of their own.
    supports = Supports.EVERYTHING
    # These say how the file is read, cell by cell.
    options = supporting("path", "join", "zero_based", "columns", *OF_CSV)

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
        return [Path(os.path.expanduser(path)) for path in as_list(self.path)]

    def locate(self) -> list[Path]:
        if not self.path:
            raise UserError("data.path is empty: give a file, or a list of tables")
        paths = self.paths()
        joined = [] if self.join is None else [Path(os.path.expanduser(self.join))]
        for path in paths + joined:
            key = "join" if path in joined else "path"
            form = format_of(path, key)
            if not os.path.isfile(path):
                raise UserError(
                    f'data.{key} = "{path}" is not a file: give an HDF5, NPZ, MATLAB, LIBSVM, CSV or Parquet file'
                )
            if form not in TABLES and len(paths) > 1:
                raise UserError(f"several files of data.path are tables, CSV or Parquet, but {path} is {form}")
            if joined and (form in TABLES) != (format_of(paths[0]) in TABLES):
                raise UserError(f"data.join adds columns to a table, or arrays to arrays: {path} is {form}")
        return paths + joined

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
            if format_of(path) == "Parquet" and find_spec("pyarrow") is None:
                raise UserError(f'data.path = "{path}" needs pyarrow to be read: pip install "mpifed[data]"')

    def load(self, seed: int, dtype: str) -> Dataset:
        self.check()
        path = self.paths()[0]
        form = format_of(path)
        self.check_options(path, form)
        with reading(path, form):
            if form in TABLES:
                return self.load_table(self.table(), seed, dtype)
            arrays = self.read(path, form)
            if self.join is not None:
                more = Path(os.path.expanduser(self.join))
                arrays = self.read(more, format_of(more, "join")) | arrays
            return self.transform_features(self.load_arrays(arrays, path, seed, dtype))

    def table(self) -> DataTable:
        """Return the table of all files."""
        parts = [self.open(path) for path in self.paths()]
        table = StackedTable(parts) if len(parts) > 1 else parts[0]
        return table if self.join is None else JoinedTable(table, self.open(Path(os.path.expanduser(self.join))))

    def open(self, path: Path) -> DataTable:
        """Return the table in a file; only the reader in use is imported."""
        form = format_of(path)
        with reading(path, form):
            if form == "Parquet":
                from mpifed.data.formats.parquet import ParquetTable

                return ParquetTable(path)
            from mpifed.data.formats.csv import CsvFormat, CsvTable

            missing = MISSING if self.missing_texts is None else self.missing_texts
            encoding = None if self.encoding is None or codecs.lookup(self.encoding).name in UTF8 else self.encoding
            how = CsvFormat(frozenset(missing), self.decimal, self.thousands, self.header, encoding, self.comment)
            return CsvTable(path, how)

    def load_arrays(self, arrays: dict[str, Any], path: Path, seed: int, dtype: str) -> Dataset:
        """Return the data set of the arrays in a file; UserError where they do not fit together."""
        X, y = read_samples(arrays, path, "", texts=True)
        sizes = read_sizes(arrays, "sizes", path, X, 1) if "sizes" in arrays else None
        read = {role: read_held_out(arrays, path, X, sizes, role) for role in HELD_OUT}
        held = {role: part for role, part in read.items() if part is not None}
        has = {role: f"{path}, which has its own {role} samples X_{role}" for role in held}
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
            refuse_contradiction(self, len(values), str(path), "has a column", has)
            if sizes is not None and not np.array_equal(np.repeat(np.arange(len(sizes)), sizes), owner):
                raise UserError(f"client of {path} says otherwise than sizes whose the rows are: leave one of them out")
            order = np.argsort(owner, kind="stable")
            sizes = np.bincount(owner)
            division = 'by the column "client"'
            owners = tuple(map(str, values.tolist()))
        elif sizes is not None:
            refuse_contradiction(self, len(sizes), str(path), "has sizes", has)
            division = "by the groups of the file" if owners else "by the sizes in the file"
        pool = make_pool_with_classes(self, PoolSamples(X, y, order, sizes), held, seed, dtype, str(path))
        pool.inferred = infer_indices(self.zero_based, self.columns) if format_of(path) == "LIBSVM" else ()
        pool.division = pool.division or division
        pool.owners = owners
        self.add_arrays(pool, arrays, path)
        return pool

    def add_arrays(self, pool: Pool, arrays: dict[str, Any], path: Path) -> None:
        """Give a pool weights and offsets of samples and weights of clients, where options name their arrays."""
        names = self.arrays_of_samples()

        def values(part: str, d: int) -> Array:
            vectors = {name: read_vector(arrays, f"{key}{part}", path) for name, key in names.items()}
            for name, vector in vectors.items():
                if len(vector) != d:
                    raise UserError(
                        f"{names[name]}{part} of {path} has {len(vector)} entries, but X{part} has {d} rows"
                    )
            return combine_columns(vectors, lambda name: f"{names[name]}{part} of {path}", lambda k: f"entry {k}")

        if names:
            separate = {role: part for role, part in pool.samples.items() if part.X is not pool.train.X}
            others = {role: values(f"_{role}", len(part.y)) for role, part in separate.items()}
            attach_columns(pool, columns_of_pool(tuple(names), values("", len(pool.train.y)), others, pool))
        if self.client_weights is not None:
            key = str(self.client_weights)
            weights = read_vector(arrays, key, path).astype(float)
            if len(weights) != pool.m:
                entries = f"{len(weights)} entries, and there are {pool.m} clients"
                raise UserError(f"{key} of {path} has {entries}: one for each")
            check_weights(weights, f"{key} of {path}")
            pool.client_weights = weights

    def arrays_of_samples(self) -> dict[str, str]:
        """Return the names of arrays of weights and offsets, by their names in COLUMNS."""
        names = {name: str(key) for name in COLUMNS if (key := getattr(self, name)) is not None}
        refuse_both_weights(names, "data.")
        return names

    def read(self, path: Path, form: str) -> dict[str, Any]:
        """Return the arrays in a file by name."""
        with reading(path, form):
            if form == "LIBSVM":
                return read_svm(path, self.zero_based, self.columns)
            arrays = {"HDF5": open_h5, "NPZ": open_npz, "MATLAB": read_mat}[form](path)
            if arrays or not (form == "HDF5" or (form == "MATLAB" and is_h5(path))):
                return arrays
            return read_groups(path, tuple(self.arrays_of_samples().values()))

    def check_options(self, path: Path, form: str) -> None:
        """Raise UserError for options that are for files of other formats."""
        for key, field in fields_of(type(self)).items():
            value = getattr(self, key)
            forms = SOME.get(key, TABLES)
            if key not in ANY and value != field.default and form not in forms:
                raise UserError(
                    f"data.{key} = {toml_value(value)} is for {' and '.join(forms)} files only, but {path} is {form}: "
                    "leave it out"
                )
        if self.test_column() is not None and form not in TABLES:
            raise UserError(
                f"data.test = {toml_value(self.test)} names a column of a table, but {path} is {form}: give a share"
            )


def format_of(path: Path, key: str = "path") -> str:
    """Return the format of a file by its suffix; UserError, which names data.``key``, if it is unknown."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = bool(suffixes) and suffixes[-1] in (".gz", ".bz2")
    suffix = suffixes[-1 - packed] if len(suffixes) > packed else ""
    form = FORMATS.get(suffix, "")
    if not form or (packed and form not in ("LIBSVM", "CSV")):
        raise UserError(
            f'data.{key} = "{path}" has an unknown suffix: it must be one of {", ".join(FORMATS)}, '
            "for text formats also with .gz or .bz2"
        )
    return form


def is_encoding(name: str) -> bool:
    try:
        "a".encode(name)
    except (LookupError, ValueError):
        return False
    return True
