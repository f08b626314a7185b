"""Arrays that stay in their HDF5 or NPZ file: a rank reads the rows of its own clients and no others."""
from __future__ import annotations

import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from mpifed.component import UserError
from mpifed.data.clients import Array, Matrix

Reader = Callable[[int, int], Any]  # (lo, hi) -> those rows

BLOCK_BYTES = 1 << 25


@contextmanager
def reading(path: Path, kind: str) -> Iterator[None]:
    """Turn what a damaged file raises into a UserError that names it."""
    try:
        yield
    except UserError:
        raise
    except (OSError, EOFError, ValueError, KeyError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise UserError(f"{path} cannot be read as {kind}: it is damaged or something else ({reason})") from error


class Stored:
    """An array in a file: ``[lo:hi]`` or ``[row numbers]`` reads those rows."""

    path: Path
    name: str
    kind: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    sparse = False

    def open(self) -> AbstractContextManager[Reader]:
        """A reader of consecutive rows, which is best asked for rising row numbers."""
        raise NotImplementedError

    def block(self) -> int:
        """Rows that are read at a time."""
        return max(1, BLOCK_BYTES // max(1, self.dtype.itemsize * int(np.prod(self.shape[1:]))))

    def __getitem__(self, index: Any) -> Any:
        with reading(self.path, self.kind), self.open() as rows:
            if isinstance(index, slice):
                lo, hi, _ = index.indices(self.shape[0])
                return rows(lo, max(lo, hi))
            return self.gather(rows, np.asarray(index))

    def gather(self, rows: Reader, index: Array) -> Any:
        """The rows ``index``, in that order, by one pass over the file: HDF5 reads lists of rows far slower."""
        at = np.argsort(index, kind="stable")
        wanted, found, step = index[at], [], self.block()
        for lo in range(int(wanted[0]), int(wanted[-1]) + 1, step) if len(wanted) else ():
            here = wanted[np.searchsorted(wanted, lo) : np.searchsorted(wanted, lo + step)]
            if here.size:
                found.append(rows(lo, min(lo + step, self.shape[0]))[here - lo])
        stacked = (sp.vstack if self.sparse else np.concatenate)(found or [rows(0, 0)])
        back = np.empty_like(at)
        back[at] = np.arange(len(at))
        return stacked[back]


class H5Array(Stored):
    """A dataset of an HDF5 file."""

    kind = "HDF5"

    def __init__(self, path: Path, name: str, shape: tuple[int, ...], dtype: Any) -> None:
        self.path, self.name, self.shape, self.dtype = path, name, shape, np.dtype(dtype)

    @contextmanager
    def open(self) -> Iterator[Reader]:
        import h5py

        with h5py.File(self.path, "r", locking="best-effort") as file:
            dataset = file[self.name]
            yield lambda lo, hi: dataset[lo:hi]


class NpzArray(Stored):
    """An array of an NPZ file, read through the archive without unpacking the rest of it; never unpickled."""

    kind = "NPZ"

    def __init__(self, path: Path, name: str) -> None:
        self.path, self.name = path, name
        with zipfile.ZipFile(path) as archive, archive.open(f"{name}.npy") as file:
            major, _ = np.lib.format.read_magic(file)
            read_header = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
            self.shape, self.columns_first, self.dtype = read_header(file)
            self.offset = file.tell()

    @contextmanager
    def open(self) -> Iterator[Reader]:
        if self.columns_first:  # the rows lie scattered
            with np.load(self.path, allow_pickle=False) as archive:
                whole = archive[self.name]
            yield lambda lo, hi: whole[lo:hi]
            return
        shape, width = self.shape[1:], self.dtype.itemsize * int(np.prod(self.shape[1:]))
        with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.name}.npy") as file:

            def rows(lo: int, hi: int) -> Array:
                file.seek(self.offset + lo * width, os.SEEK_SET)
                data = bytearray((hi - lo) * width)
                view, got = memoryview(data), 0
                while got < len(data):
                    more = file.readinto(view[got:])  # type: ignore[attr-defined]
                    if not more:
                        raise EOFError(f"{self.name} ends early")
                    got += more
                return np.frombuffer(data, dtype=self.dtype).reshape(hi - lo, *shape)

            yield rows


class StoredCsr(Stored):
    """A CSR matrix whose ``data`` and ``indices`` stay in the file; ``indptr`` (d + 1,) is held."""

    sparse = True

    def __init__(self, data: Stored, indices: Stored, indptr: Array, shape: tuple[int, int]) -> None:
        self.path, self.name, self.kind = data.path, data.name, data.kind
        self.data, self.indices, self.indptr = data, indices, indptr.astype(np.int64)
        self.shape, self.dtype = shape, data.dtype

    def block(self) -> int:
        stored = (self.data.dtype.itemsize + self.indices.dtype.itemsize) * self.data.shape[0]
        return max(1, BLOCK_BYTES * self.shape[0] // max(1, stored))

    @contextmanager
    def open(self) -> Iterator[Reader]:
        exact = np.float32 if self.data.dtype == np.float32 else np.float64  # scipy knows no half precision
        with self.data.open() as data, self.indices.open() as indices:

            def rows(lo: int, hi: int) -> Matrix:
                a, b = int(self.indptr[lo]), int(self.indptr[hi])
                arrays = data(a, b).astype(exact, copy=False), indices(a, b), self.indptr[lo : hi + 1] - a
                part = sp.csr_array(arrays, (hi - lo, self.shape[1]))
                part.check_format(full_check=True)
                return part

            yield rows


def open_h5(path: Path) -> dict[str, Any]:
    """The arrays at the root of an HDF5 file."""
    import h5py

    with h5py.File(path, "r", locking="best-effort") as file:
        return {name: H5Array(path, name, entry.shape, entry.dtype)
                for name, entry in file.items() if isinstance(entry, h5py.Dataset) and entry.shape is not None}


def open_npz(path: Path) -> dict[str, Any]:
    """The arrays of an NPZ file."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
    return {name: NpzArray(path, name) for name in names}
