"""Federated data from a file: HDF5, NPZ, MATLAB, LIBSVM or CSV."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.toml import toml_value
from mpifed.core.typing import Count
from mpifed.data.base import Data, Dataset, Test
from mpifed.data.formats.arrays import read_samples, read_sizes, read_test_samples
from mpifed.data.formats.h5 import open_h5
from mpifed.data.formats.mat import read_mat
from mpifed.data.formats.npz import open_npz
from mpifed.data.formats.on_disk import reading
from mpifed.data.formats.svm_csv import read_csv, read_svm
from mpifed.data.partition import Iid, Partition
from mpifed.data.pool import Pool, Samples
from mpifed.data.split import split_pool

KINDS = {
    ".h5": "HDF5",
    ".hdf5": "HDF5",
    ".npz": "NPZ",
    ".mat": "MATLAB",
    ".svm": "LIBSVM",
    ".libsvm": "LIBSVM",
    ".svmlight": "LIBSVM",
    ".csv": "CSV",
}
TEST = ("X_test", "X_test_data", "y_test", "sizes_test")


class File(Data, kw_only=True, tag="file"):
    """Samples from a file: X (d, n) or CSR, y (d,), sizes (m,); also X_test, y_test, sizes_test (HDF5, NPZ, MATLAB).

    With ``sizes``, client i owns the next sizes[i] rows; without, ``partition`` divides the rows among ``clients``.
    Without X_test, ``test`` keeps a share of each client's rows for testing.
    """

    path: Annotated[str, Meta(description="file: .h5 .npz .mat .svm .csv; the text formats also .gz or .bz2")]
    clients: Annotated[
        Count | None,
        Meta(description="number of clients m (default: that of the file's sizes, else 128)"),
    ] = None  # type: ignore[assignment]
    partition: Partition | None = None
    test: Test = 0.0
    target: Annotated[
        int | str | None, Meta(description="CSV column of y by name or number from 0 (default: the last)")
    ] = None
    zero_based: Annotated[
        bool | None, Meta(description="whether LIBSVM indices count from 0 (default: if an index 0 is there)")
    ] = None

    def locate(self) -> list[Path]:
        path = Path(os.path.expanduser(self.path))
        kind_of(path)
        if not os.path.isfile(path):
            raise UserError(f'data.path = "{self.path}" is not a file: give an HDF5, NPZ, MATLAB, LIBSVM or CSV file')
        return [path]

    def load(self, seed: int, dtype: str) -> Dataset:
        self.check()
        (path,) = self.locate()
        kind = kind_of(path)
        with reading(path, kind):
            arrays = self.read(path, kind)
            X, y = read_samples(arrays, path, "")
            sizes = read_sizes(arrays, "sizes", path, X, 1) if "sizes" in arrays else None
            test = read_test_samples(arrays, path, X, sizes) if any(name in arrays for name in TEST) else None
        seed = seed if self.seed is None else self.seed
        if sizes is not None:
            self.check_agreement(path, len(sizes), test is not None)
            if test is not None:
                pool = Pool(X, y, None, sizes, dtype, test)
                pool.source = str(path)
                return pool
            return split_pool(Samples(X, y, None, sizes), self.test, seed, dtype, str(path))
        m = 128 if self.clients is None else self.clients
        order, sizes = (self.partition or Iid()).split(y, m, stream(seed, "partition"))
        return split_pool(Samples(X, y, order, sizes), self.test, seed, dtype, str(path))

    def read(self, path: Path, kind: str) -> dict[str, Any]:
        """The arrays of the file by name; those of HDF5 and NPZ are read later, by rows."""
        for key, value, only in (("target", self.target, "CSV"), ("zero_based", self.zero_based, "LIBSVM")):
            if value is not None and kind != only:
                raise UserError(
                    f"data.{key} = {toml_value(value)} is for {only} files only, but {path} is {kind}: leave it out"
                )
        if kind == "LIBSVM":
            return dict(zip("Xy", read_svm(path, self.zero_based), strict=True))
        if kind == "CSV":
            return dict(zip("Xy", read_csv(path, self.target), strict=True))
        return {"HDF5": open_h5, "NPZ": open_npz, "MATLAB": read_mat}[kind](path)

    def check_agreement(self, path: Path, m: int, tested: bool) -> None:
        """UserError for options that contradict a file with sizes of m clients and, if ``tested``, test samples."""
        if self.clients not in (None, m):
            raise UserError(
                f"data.clients = {self.clients} contradicts {path}, which has sizes of {m} clients: leave it out"
            )
        if self.partition is not None:
            raise UserError(
                f'data.partition = "{self.partition.label()}" contradicts {path}, '
                "whose sizes already define the rows of each client: leave it out"
            )
        if tested and self.test:
            raise UserError(
                f"data.test = {self.test} contradicts {path}, which has its own test samples X_test: leave it out"
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
