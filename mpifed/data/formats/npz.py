"""Arrays in NPZ files, read by rows without unpacking the rest of the archive; pickled objects are refused."""

import io
import os
import tokenize
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import check_declared, size_of
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import Reader, Stored, at_most

HEADER = 1 << 14  # bytes; numpy itself reads no longer headers


class NpzArray(Stored):
    """An array of an NPZ file."""

    kind = "NPZ"

    def __init__(self, path: Path, name: str, archive: zipfile.ZipFile) -> None:
        member = archive.getinfo(f"{name}.npy")
        check_declared(member.file_size, min(member.compress_size, path.stat().st_size), f"{name} of {path}")
        with archive.open(member) as file:
            start = io.BytesIO(file.read(HEADER))
        shape, self.columns_first, dtype = read_header(start)
        super().__init__(path, name, shape, dtype)
        self.offset = start.tell()
        size = size_of(self.shape, self.dtype.itemsize)
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

            if self.columns_first:  # a row is not contiguous
                self.check_memory(self.shape[0])
                whole = values(0, self.size(self.shape[0])).reshape(self.shape, order="F")
                yield lambda lo, hi: whole[lo:hi]
            else:
                yield rows


def read_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in Fortran order, and type of an array; ValueError for an invalid header."""
    major, _ = np.lib.format.read_magic(file)
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    try:
        with warnings.catch_warnings(action="ignore"):  # about headers written by Python 2
            return read(file)
    except (TypeError, SyntaxError, MemoryError, RecursionError, tokenize.TokenError) as error:  # of ast.literal_eval
        raise ValueError(f"{type(error).__name__} in its header") from None


def open_npz(path: Path) -> dict[str, Any]:
    """The arrays of an NPZ file."""
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist() if name.endswith(".npy")]
        return {name: NpzArray(path, name, archive) for name in names}
