"""Arrays in HDF5 files, of h5py and of MATLAB 7.3, and files with a group for each client.

A group has /name/X and /name/y, for testing also X_test and y_test, for validation X_validation and y_validation.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.arrays import row_offsets
from mpifed.core.errors import UserError
from mpifed.core.hdf5 import check_heaps, get_entry, iterate_datasets, read_dataset
from mpifed.core.memory import check_memory, check_text_length
from mpifed.core.roles import HELD_OUT, TRAINING, suffix
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.formats.on_disk import BLOCK_BYTES, Reader, StoredArray

# Classes of MATLAB whose variables are arrays of numbers.
NUMBERS = re.compile("double|single|logical|u?int(8|16|32|64)")
OWNERS = "/"  # key of the names of the groups among the arrays: no array has this name


@dataclass(eq=False)
class H5Array(StoredArray):
    """An array in an HDF5 file; ``columns_first``: whether rows of the file are columns, as MATLAB writes them."""

    form = "HDF5"

    columns_first: bool = False

    @contextmanager
    def open(self) -> Iterator[Reader]:
        import h5py

        with h5py.File(self.path, "r", locking="best-effort") as file, self.within(file) as rows:
            yield rows

    @contextmanager
    def within(self, file: Any) -> Iterator[Reader]:
        """Return a reader of rows in the open ``file``."""
        longest = max(1, check_heaps(self.path)) if self.dtype.kind == "U" else 0
        dataset = file[self.name]

        def rows(lo: int, hi: int) -> Array:
            self.check_memory(hi - lo)
            if self.columns_first:
                return dataset[..., lo:hi].T
            return read_texts(dataset, lo, hi, longest, f"{self.name} of {self.path}") if longest else dataset[lo:hi]

        yield rows


def read_texts(dataset: Any, lo: int, hi: int, longest: int, label: str) -> Array:
    """Read the texts lo <= i < hi of a file whose longest has ``longest`` bytes; UserError if they are too long.

    They are read a few at a time, because all of them may refer to one text that the file holds once.
    """
    step = max(1, BLOCK_BYTES // longest)
    parts = []
    for first in range(lo, hi, step):
        parts.append(dataset.asstr()[first : min(first + step, hi)])
        check_text_length(max(map(len, parts[-1].ravel())), label)
    texts = np.concatenate([np.zeros((0, *dataset.shape[1:]), object), *parts])
    check_memory(4 * texts.size * max(map(len, texts.ravel()), default=0), f"the texts of {label}")
    return texts.astype(str)


def is_h5(path: Path) -> bool:
    import h5py

    return bool(h5py.is_hdf5(path))


def open_h5(path: Path) -> dict[str, Any]:
    """Return the arrays of an HDF5 file by name; sparse ones that MATLAB wrote are read into memory, as CSR."""
    import h5py

    with h5py.File(path, "r", locking="best-effort") as file:
        arrays = {name: h5_array(path, name, one) for name, one in iterate_datasets(file, str(path))}
        return arrays | dict(sparse_groups(file, path))


def h5_array(path: Path, name: str, entry: Any) -> H5Array:
    """Return the array of a dataset in an HDF5 file, which is not read."""
    import h5py

    if variable_class := matlab_class(entry):
        # An empty array holds its shape instead of numbers.
        shape = (0, 0) if "MATLAB_empty" in entry.attrs else entry.shape[::-1]
        dtype = entry.dtype if NUMBERS.fullmatch(variable_class) else np.dtype(object)
        return H5Array(path, name, shape, dtype, columns_first=True)
    string_type = h5py.check_string_dtype(entry.dtype)
    text = string_type is not None and string_type.length is None  # strings of any length are text in numpy, too
    return H5Array(path, name, entry.shape, np.dtype(str if text else entry.dtype))


def matlab_class(entry: Any) -> str:
    """Return the class of a variable in a file that MATLAB 7.3 wrote; empty elsewhere."""
    if "MATLAB_class" not in entry.attrs:
        return ""
    # MATLAB writes a text of fixed length; one of any length lies in a heap of the file, which may be damaged.
    if entry.attrs.get_id("MATLAB_class").dtype.kind != "S":
        check_heaps(entry.file.filename)
    return str(np.asarray(entry.attrs["MATLAB_class"]).astype(str))


def sparse_groups(file: Any, path: Path) -> Iterator[tuple[str, SampleMatrix]]:
    """Yield names and CSR matrices of sparse variables of MATLAB: groups of columns, with an attribute for the rows."""
    for name in file:
        group = get_entry(file, name, str(path))
        if not (hasattr(group, "keys") and matlab_class(group) and "MATLAB_sparse" in group.attrs):
            continue
        parts = {key: read_dataset(data, f"{name} of {path}") for key, data in iterate_datasets(group, str(path))}
        shape = (int(group.attrs["MATLAB_sparse"]), len(parts["jc"]) - 1)
        empty = np.zeros(0)
        yield name, csr_from_columns(name, parts.get("data", empty), parts.get("ir", empty), parts["jc"], shape)


def csr_from_columns(name: str, values: Array, rows: Array, starts: Array, shape: tuple[int, ...]) -> SampleMatrix:
    """Return the CSR matrix with the entries of CSC arrays; ValueError where these are no matrix."""
    with np.errstate(invalid="ignore"):
        rows = rows.astype(np.int64)
        starts = starts.astype(np.int64)
    columns = shape[-1]
    if len(starts) != columns + 1 or np.any(np.diff(starts) < 0):  # which scipy does not check for an empty matrix
        raise ValueError(f"the column pointers of {name} must be {columns + 1} numbers that never decrease")
    matrix = sp.csc_array((values[: starts[-1]].astype(np.float64), rows[: starts[-1]], starts), shape)
    matrix.check_format(full_check=True)
    return sp.csr_array(matrix)


class StackedArray(StoredArray):
    """Arrays of one file, one below the other; rows are read from those that have them."""

    form = "HDF5"

    def __init__(self, parts: list[H5Array], name: str) -> None:
        first = parts[0]
        for part in parts:
            if part.shape[1:] != first.shape[1:] or len(part.shape) != len(first.shape):
                raise UserError(
                    f"{part.name} of {part.path} has the shape {part.shape}, but {first.name} has {first.shape}: "
                    "they differ in the number of rows alone"
                )
        self.parts = parts
        self.starts = row_offsets(np.array([part.shape[0] for part in parts]))
        shape = (int(self.starts[-1]), *first.shape[1:])
        super().__init__(first.path, name, shape, np.result_type(*{part.dtype for part in parts}))

    @contextmanager
    def open(self) -> Iterator[Reader]:
        import h5py

        with h5py.File(self.path, "r", locking="best-effort") as file:

            def rows(lo: int, hi: int) -> Array:
                self.check_memory(hi - lo)
                # Parts without rows make starts equal. side="right" for lo: the last of the parts that begin there
                # has the row; side="left" for hi: no part that begins there.
                first = int(np.searchsorted(self.starts, lo, side="right")) - 1
                last = int(np.searchsorted(self.starts, hi, side="left"))
                pieces = [np.zeros((0, *self.shape[1:]), self.dtype)]
                for k in range(max(0, first), min(last, len(self.parts))):
                    begin = int(self.starts[k])
                    with self.parts[k].within(file) as read:
                        pieces.append(read(max(lo - begin, 0), min(hi - begin, self.parts[k].shape[0])))
                return np.concatenate(pieces)

            yield rows


def read_groups(path: Path, more: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the arrays of a file whose groups are clients, in the order of their names; none if it has no groups.

    ``more``: names of arrays with a number for each sample. Raises UserError where a group lacks X, y or one of these,
    or some of the arrays for testing or validation.
    """
    import h5py

    training = ("X", "y", *more)
    names = {f"{key}{suffix(role)}" for role in (TRAINING, *HELD_OUT) for key in training}
    groups: dict[str, dict[str, H5Array]] = {}
    with h5py.File(path, "r", locking="best-effort") as file:
        for name in (name for name in file if name[0] != "#"):  # "#…" are MATLAB's own, beside variables
            group = get_entry(file, name, str(path))
            if isinstance(group, h5py.Group):
                arrays = {
                    key: h5_array(path, f"{name}/{key}", data) for key, data in iterate_datasets(group, str(path))
                }
                groups[name] = {key: array for key, array in arrays.items() if key in names}
    # If groups hold other things they are no clients; an error then says that the file has no arrays.
    return stack_groups(path, groups, training) if any(groups.values()) else {}


def stack_groups(path: Path, groups: dict[str, dict[str, H5Array]], training: tuple[str, ...]) -> dict[str, Any]:
    """Return the arrays of all groups, one below the other, and sizes; UserError where a group lacks an array."""
    parts = [suffix(role) for role in (TRAINING, *HELD_OUT)]
    for name, arrays in groups.items():
        own = [part for part in parts if not part or f"X{part}" in arrays or f"y{part}" in arrays]
        missing = [f"{key}{part}" for part in own for key in training if f"{key}{part}" not in arrays]
        if missing:
            needs = f"{', '.join(training[:-1])} and {training[-1]}"
            raise UserError(f"the group {name} of {path} has no {missing[0]}: each group is a client with {needs}")
        for key, array in arrays.items():
            if not array.shape:
                raise UserError(f"{array.name} of {path} is one number: {key} has a row for each sample")
    result: dict[str, Any] = {OWNERS: tuple(groups)}
    for part in parts:
        members = [arrays for arrays in groups.values() if f"X{part}" in arrays]
        if not members:
            continue
        for key in (f"{key}{part}" for key in training):
            result[key] = StackedArray([arrays[key] for arrays in members], key)
        sizes = {name: arrays[f"y{part}"].shape[0] for name, arrays in groups.items() if f"y{part}" in arrays}
        result[f"sizes{part}"] = np.array([sizes.get(name, 0) for name in groups])
    return result
