"""Arrays that stay in HDF5 or NPZ files: a rank reads the rows of its own clients only, and no pickled objects."""

import io
import lzma
import os
import re
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.checksummed import npy_header
from mpifed.core.errors import UserError, reason
from mpifed.core.hdf5 import check_heaps, get_entry, iterate_datasets, read_dataset
from mpifed.core.memory import bytes_of_shape, check_declared_size, check_memory, check_text_length
from mpifed.core.typing import Array, SampleMatrix

Reader = Callable[[int, int], Any]  # (lo, hi) -> the rows lo <= i < hi

BLOCK_BYTES = 1 << 25  # read at a time
HEADER = 1 << 14  # bytes of an array in an NPZ file; numpy itself reads no longer headers
# Classes of MATLAB whose variables are arrays of numbers.
NUMBERS = re.compile("double|single|logical|u?int(8|16|32|64)")
PACKED = (struct.error, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
DAMAGE = (OSError, EOFError, ValueError, KeyError, RuntimeError, MemoryError, *PACKED)  # what damaged files raise


@contextmanager
def reading(path: Path, form: str) -> Iterator[None]:
    """Turn the errors that a damaged file causes into a UserError with its path; ``form`` is the expected format."""
    try:
        yield
    except UserError:
        raise
    except MemoryError as error:
        # A file that declares wrong sizes raises it, too.
        raise UserError(f"{path} does not fit in memory, unless it is damaged: {reason(error)}") from error
    except DAMAGE as error:
        why = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise UserError(f"{path} cannot be read as {form}: it is damaged or of another format ({why})") from error


def at_most(file: IO[bytes], size: int) -> bytearray:
    """Read the next ``size`` bytes, or fewer at the end of the file."""
    data = bytearray()
    while len(data) < size and (block := file.read(min(1 << 20, size - len(data)))):
        data += block
    return data


@dataclass(eq=False)
class StoredArray:
    """An array in a file: ``[lo:hi]`` or ``[row numbers]`` reads those rows."""

    form = ""
    sparse = False

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def open(self) -> AbstractContextManager[Reader]:
        """Return a reader of consecutive rows, which is fastest when row numbers increase from call to call."""
        raise NotImplementedError

    def size(self, rows: int) -> int:
        """Return the bytes of this number of rows."""
        return rows * bytes_of_shape(self.shape[1:], self.dtype.itemsize)

    def check_memory(self, rows: int) -> None:
        """Raise UserError if there is not enough memory for this number of rows."""
        check_memory(self.size(rows), f"reading {rows:,} of {self.shape[0]:,} rows of {self.name} of {self.path}")

    def block(self) -> int:
        """Return the number of rows to read at a time."""
        return max(1, BLOCK_BYTES // max(1, self.size(1)))

    def __getitem__(self, index: Any) -> Any:
        with reading(self.path, self.form), self.open() as rows:
            if isinstance(index, slice):
                lo, hi, _ = index.indices(self.shape[0])
                return rows(lo, max(lo, hi))
            return self.gather(rows, np.asarray(index))

    def gather(self, rows: Reader, index: Array) -> Any:
        """Read the rows ``index`` in one pass over the file, because HDF5 reads lists of rows far more slowly."""
        # Rows are read in rising order, by blocks, and then put in the order of ``index``: for [5, 2, 9] rows 2, 5 and
        # 9 are read, and argsort of at = [1, 0, 2] puts them back.
        if not self.sparse:
            # Memory for two copies: in the order of the file, and in that of ``index``.
            size = 2 * self.size(len(index))
            check_memory(size, f"reading {len(index):,} of {self.shape[0]:,} rows of {self.name} of {self.path}")
        at = np.argsort(index, kind="stable")
        rising = index[at]
        step = self.block()
        parts = []
        for lo in range(int(rising[0]), int(rising[-1]) + 1, step) if len(rising) else ():
            here = rising[np.searchsorted(rising, lo) : np.searchsorted(rising, lo + step)]
            if here.size:
                parts.append(rows(lo, min(lo + step, self.shape[0]))[here - lo])
        stacked = (sp.vstack if self.sparse else np.concatenate)(parts or [rows(0, 0)])
        return stacked[np.argsort(at)]


class StoredCsr(StoredArray):
    """A CSR matrix whose ``data`` and ``indices`` stay in the file; ``indptr`` (d + 1,) is in memory."""

    sparse = True

    def __init__(self, data: StoredArray, indices: StoredArray, indptr: Array, shape: tuple[int, int]) -> None:
        super().__init__(data.path, data.name, shape, data.dtype)
        self.form = data.form
        self.data = data
        self.indices = indices
        self.indptr = indptr.astype(np.int64)

    def block(self) -> int:
        stored = (self.data.dtype.itemsize + self.indices.dtype.itemsize) * self.data.shape[0]
        return max(1, BLOCK_BYTES * self.shape[0] // max(1, stored))

    @contextmanager
    def open(self) -> Iterator[Reader]:
        # scipy has no half precision, and products of integers would overflow.
        dtype = np.float32 if self.data.dtype == np.float32 else np.float64
        with self.data.open() as data, self.indices.open() as indices:

            def rows(lo: int, hi: int) -> SampleMatrix:
                a = int(self.indptr[lo])
                b = int(self.indptr[hi])
                values = data(a, b).astype(dtype, copy=False)
                columns = indices(a, b)
                # scipy wants both index arrays of one type, and copies them to 64 bits where they differ.
                small = columns.dtype == np.int32 and b - a < 2**31
                ends = (self.indptr[lo : hi + 1] - a).astype(np.int32 if small else np.int64)
                part = sp.csr_array((values, columns, ends), (hi - lo, self.shape[1]))
                part.check_format(full_check=True)
                return part

            yield rows


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


class NpzArray(StoredArray):
    """An array in an NPZ file."""

    form = "NPZ"

    def __init__(self, path: Path, name: str, archive: zipfile.ZipFile) -> None:
        member = archive.getinfo(f"{name}.npy")
        check_declared_size(member.file_size, min(member.compress_size, path.stat().st_size), f"{name} of {path}")
        with archive.open(member) as file:
            start = io.BytesIO(file.read(HEADER))
        shape, self.columns_first, dtype = read_header(start)
        super().__init__(path, name, shape, dtype)
        self.offset = start.tell()
        size = bytes_of_shape(self.shape, self.dtype.itemsize)
        if min(self.shape, default=0) < 0 or (size > member.file_size - self.offset and not self.dtype.hasobject):
            declared = f"{name} of {path} declares the shape {self.shape} of {self.dtype}, {size:,} bytes"
            raise UserError(f"{declared}, but holds {member.file_size - self.offset:,}")

    @contextmanager
    def open(self) -> Iterator[Reader]:
        with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.name}.npy") as file:

            def values(first: int, size: int) -> Array:
                file.seek(self.offset + first, os.SEEK_SET)
                data = at_most(file, size)
                if len(data) < size:
                    raise EOFError(f"{self.name} ends early")
                return np.frombuffer(data, dtype=self.dtype)

            def rows(lo: int, hi: int) -> Array:
                self.check_memory(hi - lo)
                return values(self.size(lo), self.size(hi - lo)).reshape(hi - lo, *self.shape[1:])

            # In Fortran order a row is scattered over the file, and it is faster to read everything once.
            if self.columns_first:
                self.check_memory(self.shape[0])
                array = values(0, self.size(self.shape[0])).reshape(self.shape, order="F")
                yield lambda lo, hi: array[lo:hi]
            else:
                yield rows


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of an array: shape, whether in Fortran order, and type; ValueError if it is invalid."""
    try:
        # numpy warns of headers that Python 2 wrote, but reads them.
        with warnings.catch_warnings(action="ignore"):
            return npy_header(file)
    except (TypeError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError) as error:  # of ast.literal_eval
        raise ValueError(f"{type(error).__name__} in its header") from None


def open_npz(path: Path) -> dict[str, Any]:
    """Return the arrays of an NPZ file by name, which are not read."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        return {name: NpzArray(path, name, archive) for name in names}
