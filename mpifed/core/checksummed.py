"""Checkpoint files: written atomically, synchronised with the disk, and checked against a checksum when read."""

import io
import os
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpifed.core.errors import UserError, reason
from mpifed.core.files import atomic_file, open_file, sync_to_disk
from mpifed.core.memory import bytes_of_shape
from mpifed.core.typing import Array

ZIP_ERRORS = (zipfile.BadZipFile, zlib.error)
READ_ERRORS = (OSError, EOFError, KeyError, MemoryError, RuntimeError, SyntaxError, TypeError, ValueError, *ZIP_ERRORS)
CHUNK_BYTES = 1 << 20  # read at a time
LAST_LINE = b"\n%08x\n"  # of a file, with its checksum
LAST_LINE_LENGTH = len(LAST_LINE % 0)


class ChecksummedWriter(io.RawIOBase):
    """A file that is written from start to end; ``sum`` is the checksum of its name and content so far."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.file = file
        self.sum = zlib.crc32(name.encode())

    def write(self, data: Any) -> int:
        self.sum = zlib.crc32(data, self.sum)
        return self.file.write(data)


def write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Write arrays to an NPZ file with a checksum. OSError where the disk refuses."""
    with checksummed_file(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def write_text(path: Path, text: bytes) -> None:
    """Write text to a file with a checksum, then synchronise its folder: files that the text names are there too."""
    with checksummed_file(path) as file:
        file.write(text)
    sync_to_disk(path.parent)


def read(path: Path) -> dict[str, Array]:
    """Read the arrays of an NPZ file. UserError if it is missing, damaged or written by another program."""
    try:
        with open_file(path) as content:
            verify_checksum(content, path.name)
            # np.load unpacks any file. Ours are never compressed, so their sizes are the memory that they take.
            members = zipfile.ZipFile(content).infolist()
            if any(entry.file_size != entry.compress_size or not entry.filename.endswith(".npy") for entry in members):
                raise ValueError("it has something else than arrays, or these are compressed")
            content.seek(0)
            with np.load(content, allow_pickle=False) as file:
                return {
                    name: read_array(file, name, entry.file_size)
                    for name, entry in zip(file.files, members, strict=True)
                }
    except READ_ERRORS as error:
        raise UserError(f"checkpoint file {path} is damaged or missing ({reason(error)}): resume needs it") from None


def read_array(file: Any, name: str, stored: int) -> Array:
    """Read an array from an open NPZ file. ValueError if it declares more than ``stored`` bytes or no array."""
    # numpy allocates what the header declares before it reads, and so before it finds that bytes are missing.
    with file.zip.open(f"{name}.npy") as member:
        shape, _, dtype = npy_header(member)
    if min(shape, default=0) < 0 or bytes_of_shape(shape, dtype.itemsize) > stored or dtype.kind not in "biufcSU":
        raise ValueError(f"{name} declares the shape {shape} of {dtype}, but holds {stored:,} bytes")
    return np.asarray(file[name])


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of an NPY file: shape, whether the order is Fortran's, and dtype."""
    major, _ = np.lib.format.read_magic(file)
    # Version 3 differs only in the encoding of field names, and our arrays have no fields.
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    return read(file)


def check_array(what: str, array: Array, shape: tuple[int, ...], dtype: Any) -> None:
    """Raise ValueError if an array has another shape or dtype than required."""
    if array.shape != shape or array.dtype != dtype:
        raise ValueError(f"{what} has type {array.dtype} and shape {array.shape}, but must have {dtype} and {shape}")


def read_text(path: Path) -> bytes | None:
    """Read the text of a file; None if there is no file. UserError if its checksum is wrong."""
    try:
        with open_file(path) as file:
            verify_checksum(file, path.name)
            file.seek(0)
            return file.read()[:-LAST_LINE_LENGTH]
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"checkpoint {path} cannot be read: {reason(error)}") from None


def verify_checksum(file: IO[bytes], name: str) -> None:
    """Raise ValueError unless the last line of a file holds the checksum of its name and content."""
    # With its name: the files of a checkpoint have one form, and one in place of another would go unnoticed.
    left = os.fstat(file.fileno()).st_size - LAST_LINE_LENGTH
    total = zlib.crc32(name.encode())
    while left > 0 and (block := file.read(min(left, CHUNK_BYTES))):
        left -= len(block)
        total = zlib.crc32(block, total)
    if file.read(CHUNK_BYTES) != LAST_LINE % total:
        raise ValueError("its checksum is wrong")


@contextmanager
def checksummed_file(path: Path) -> Iterator[ChecksummedWriter]:
    """Yield a file to write; once complete it gets its checksum, is synchronised and renamed to ``path``."""
    with atomic_file(path) as part, open(part, "wb") as file:
        content = ChecksummedWriter(file, path.name)
        yield content
        file.write(LAST_LINE % content.sum)
        file.flush()
        # Before the file is renamed: file systems may write the folder first, so that a crash of the machine could
        # leave the new name without the content.
        os.fsync(file.fileno())
