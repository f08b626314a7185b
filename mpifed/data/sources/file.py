"""Federated data from a file: HDF5, NPZ, MATLAB, LIBSVM or CSV."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import scipy.sparse as sp
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory
from mpifed.core.streams import stream
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, Count
from mpifed.data.base import Data, Dataset, Test
from mpifed.data.formats.h5 import open_h5
from mpifed.data.formats.mat import read_mat
from mpifed.data.formats.npz import open_npz
from mpifed.data.formats.on_disk import Stored, StoredCsr, reading
from mpifed.data.formats.svm_csv import read_csv, read_svm
from mpifed.data.partition import Iid, Partition
from mpifed.data.pool import Pool, Samples, check_finite
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

    def load(self, seed: int, dtype: str) -> Dataset:
        path = Path(os.path.expanduser(self.path))
        kind = kind_of(path)
        if not os.path.isfile(path):
            raise UserError(f'data.path = "{self.path}" is not a file: give an HDF5, NPZ, MATLAB, LIBSVM or CSV file')
        with reading(path, kind):
            arrays = self.read(path, kind)
            X, y = read_samples(arrays, path, "")
            sizes = sizes_of(arrays, "sizes", path, X, 1) if "sizes" in arrays else None
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


def read_samples(arrays: dict[str, Any], path: Path, part: str) -> tuple[Any, Array]:
    """X and y (d,) of the training (part "") or test ("_test") samples; UserError for wrong shapes and types."""
    X_name, y_name = f"X{part}", f"y{part}"
    X = arrays[X_name] if X_name in arrays else csr_of(arrays, path, X_name)
    check_real(X, X_name, path)
    if len(X.shape) != 2 or 0 in X.shape:
        raise UserError(f"{X_name} of {path} has the shape {tuple(X.shape)}: it must be (d, n) with d > 0 and n > 0")
    check_memory(8 * int(X.shape[1]), f"{X_name} of {path} has {X.shape[1]:,} columns: a model with as many parameters")
    y = read_vector(arrays, y_name, path)
    if len(y) != X.shape[0]:
        raise UserError(f"{y_name} of {path} has {len(y)} entries, but {X_name} has {X.shape[0]} rows")
    check_finite(y.astype(np.float64), range(len(y)), f"{y_name} of {path}")
    return X, y


def read_test_samples(arrays: dict[str, Any], path: Path, X: Any, sizes: Array | None) -> Samples:
    """X_test, y_test and sizes_test, checked against the training samples X and ``sizes``."""
    if sizes is None or "sizes_test" not in arrays:
        lacking = "sizes" if sizes is None else "sizes_test"
        raise UserError(f"{path} has test samples but no {lacking}: they need X_test, y_test, sizes and sizes_test")
    X_test, y_test = read_samples(arrays, path, "_test")
    sizes_test = sizes_of(arrays, "sizes_test", path, X_test, 0)
    if len(sizes_test) != len(sizes):
        raise UserError(f"sizes_test of {path} has {len(sizes_test)} entries, but sizes has {len(sizes)}")
    if X_test.shape[1] != X.shape[1]:
        raise UserError(f"X_test of {path} has {X_test.shape[1]} columns, but X has {X.shape[1]}")
    return Samples(X_test, y_test, None, sizes_test)


def csr_of(arrays: dict[str, Any], path: Path, name: str) -> StoredCsr:
    """The CSR matrix stored as name_data, name_indices, name_indptr and name_shape."""
    keys = [f"{name}_{key}" for key in ("data", "indices", "indptr", "shape")]
    missing = [key for key in keys if key not in arrays]
    if missing:
        what = f"no {name}" if len(missing) == 4 else f"no {missing[0]}"
        raise UserError(f"{path} has {what}: it needs {name}, or {', '.join(keys[:3])} and {keys[3]}")
    data, indices = arrays[keys[0]], arrays[keys[1]]
    if not isinstance(data, Stored):
        raise UserError(f"{keys[0]} of {path}: a MATLAB file holds a sparse matrix as {name} itself")
    indptr, shape = read_vector(arrays, keys[2], path), read_vector(arrays, keys[3], path)
    for array, key in ((data, keys[0]), (indices, keys[1])):
        check_real(array, key, path)
    if indices.dtype.kind not in "iu":
        raise UserError(f"{keys[1]} of {path} has the type {indices.dtype}: it must be an integer type")
    if len(shape) != 2 or not is_counts(shape):
        raise UserError(f"{keys[3]} of {path} must be two whole numbers >= 0, rows and columns")
    d, n = (int(length) for length in shape)
    if len(indptr) != d + 1 or not is_counts(indptr) or indptr[0] != 0 or np.any(np.diff(indptr.astype(np.int64)) < 0):
        raise UserError(f"{keys[2]} of {path} must be {d + 1} whole numbers that start at 0 and never decrease")
    for array, key in ((data, keys[0]), (indices, keys[1])):
        if array.shape != (int(indptr[-1]),):
            raise UserError(f"{key} of {path} has the shape {array.shape}, but {keys[2]} ends at {int(indptr[-1])}")
    return StoredCsr(data, indices, indptr, (d, n))


def check_real(array: Any, name: str, path: Path) -> None:
    """UserError where an array holds anything but real numbers, such as objects, text or complex numbers."""
    dtype = getattr(array, "dtype", np.dtype(object))
    if dtype.kind not in "biuf":
        never = "; pickled objects are never loaded" if dtype.hasobject else ""
        raise UserError(f"{name} of {path} has the type {dtype}: it must be an array of real numbers{never}")


def is_counts(values: Array) -> bool:
    """Whether all values are whole numbers >= 0 that fit into 64 bits."""
    return bool(np.all((values >= 0) & (values < 2.0**63) & (values == np.floor(values))))


def read_vector(arrays: dict[str, Any], name: str, path: Path) -> Array:
    """The array ``name`` as a vector (d,); in the file it may also be (d, 1) or (1, d)."""
    if name not in arrays:
        raise UserError(f"{path} has no {name}; it has {', '.join(arrays) or 'no arrays'}")
    check_real(arrays[name], name, path)
    shape = tuple(arrays[name].shape)
    if len(shape) == 0 or math.prod(shape) not in shape:
        raise UserError(f"{name} of {path} has the shape {shape}: it must be a vector")
    values = arrays[name][:]
    return np.asarray(values.toarray() if sp.issparse(values) else values).ravel()


def sizes_of(arrays: dict[str, Any], name: str, path: Path, X: Any, least: int) -> Array:
    """The number of rows of each client (m,), each at least ``least``; their sum must be the number of rows of X."""
    sizes = read_vector(arrays, name, path)
    if not len(sizes) or not is_counts(sizes) or sizes.min() < least:
        raise UserError(f"{name} of {path} must be whole numbers, the rows of each client, each at least {least}")
    total = sum(map(int, sizes)) if sizes.max() > X.shape[0] else int(sizes.sum())  # int64 may overflow
    if total != X.shape[0]:
        raise UserError(f"{name} of {path} add up to {total}, but X{name.removeprefix('sizes')} has {X.shape[0]} rows")
    return sizes.astype(np.int64)
