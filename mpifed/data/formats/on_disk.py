"""Arrays that stay in an HDF5 or NPZ file: a rank reads the rows of its own clients only."""

import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory, size_of
from mpifed.core.typing import Array, Matrix

Reader = Callable[[int, int], Any]  # (lo, hi) -> the rows lo <= i < hi

BLOCK_BYTES = 1 << 25  # read at a time
PACKED = (struct.error, zipfile.BadZipFile, zlib.error, lzma.LZMAError)
DAMAGE = (OSError, EOFError, ValueError, KeyError, RuntimeError, MemoryError, *PACKED)  # what damaged files raise


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn the errors that a damaged file causes into a UserError with its path; ``kind`` is the expected format."""
    try:
        yield
    except UserError:
        raise
    except DAMAGE as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise UserError(f"{path} cannot be read as {kind}: it is damaged or of another format ({reason})") from error


def at_most(file: IO[bytes], size: int) -> bytearray:
    """The next ``size`` bytes, or fewer at the end of the file."""
    data = bytearray()
    while len(data) < size and (block := file.read(min(1 << 20, size - len(data)))):
        data += block
    return data


@dataclass(eq=False)
class Stored:
    """An array in a file: ``[lo:hi]`` or ``[row numbers]`` reads those rows."""

    kind = ""
    sparse = False

    path: Path
    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    def open(self) -> AbstractContextManager[Reader]:
        """A reader of consecutive rows; fastest when row numbers increase from call to call."""
        raise NotImplementedError

    def size(self, rows: int) -> int:
        """Bytes of this number of rows."""
        return rows * size_of(self.shape[1:], self.dtype.itemsize)

    def check_memory(self, rows: int) -> None:
        """UserError where there is not enough memory for this number of rows."""
        check_memory(self.size(rows), f"reading {rows:,} of {self.shape[0]:,} rows of {self.name} of {self.path}")

    def block(self) -> int:
        """Number of rows to read at a time."""
        return max(1, BLOCK_BYTES // max(1, self.size(1)))

    def __getitem__(self, index: Any) -> Any:
        with reading(self.path, self.kind), self.open() as rows:
            if isinstance(index, slice):
                lo, hi, _ = index.indices(self.shape[0])
                return rows(lo, max(lo, hi))
            return self.gather(rows, np.asarray(index))

    def gather(self, rows: Reader, index: Array) -> Any:
        """The rows ``index``, in that order, from one pass over the file; HDF5 reads lists of rows far more slowly."""
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


class StoredCsr(Stored):
    """A CSR matrix whose ``data`` and ``indices`` stay in the file; ``indptr`` (d + 1,) is in memory."""

    sparse = True

    def __init__(self, data: Stored, indices: Stored, indptr: Array, shape: tuple[int, int]) -> None:
        super().__init__(data.path, data.name, shape, data.dtype)
        self.kind = data.kind
        self.data = data
        self.indices = indices
        self.indptr = indptr.astype(np.int64)

    def block(self) -> int:
        stored = (self.data.dtype.itemsize + self.indices.dtype.itemsize) * self.data.shape[0]
        return max(1, BLOCK_BYTES * self.shape[0] // max(1, stored))

    @contextmanager
    def open(self) -> Iterator[Reader]:
        exact = np.float32 if self.data.dtype == np.float32 else np.float64  # scipy has no half precision
        with self.data.open() as data, self.indices.open() as indices:

            def rows(lo: int, hi: int) -> Matrix:
                a = int(self.indptr[lo])
                b = int(self.indptr[hi])
                values = data(a, b).astype(exact, copy=False)
                part = sp.csr_array((values, indices(a, b), self.indptr[lo : hi + 1] - a), (hi - lo, self.shape[1]))
                part.check_format(full_check=True)
                return part

            yield rows
