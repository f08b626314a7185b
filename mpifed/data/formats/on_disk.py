"""Arrays that stay in HDF5 or NPZ files: a rank reads the rows of its own clients only, and no pickled objects."""

import io
import lzma
import os
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
from mpifed.core.memory import bytes_of_shape, check_declared_size, check_memory
from mpifed.core.typing import Array, SampleMatrix

Reader = Callable[[int, int], Any]  # (lo, hi) -> the rows lo <= i < hi

BLOCK_BYTES = 1 << 25  # read at a time
HEADER = 1 << 14  # bytes of an array in an NPZ file; numpy itself reads no longer headers
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
