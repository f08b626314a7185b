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
from mpifed.core.files import atomic_file, open_file, synchronise
from mpifed.core.memory import size_of
from mpifed.core.typing import Array

PACKED = (zipfile.BadZipFile, zlib.error)
DAMAGE = (OSError, EOFError, KeyError, MemoryError, RuntimeError, SyntaxError, TypeError, ValueError, *PACKED)
BLOCK = 1 << 20  # bytes read at a time
LAST_LINE = b"\n%08x\n"  # of a file, with its checksum
LENGTH = len(LAST_LINE % 0)


class Checksummed(io.RawIOBase):
    """A file written from start to end; ``sum`` is the checksum of its name and content so far."""

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
    """Write text to a file with a checksum, then synchronise the folder: files that the text names are there too."""
    with checksummed_file(path) as file:
        file.write(text)
    synchronise(path.parent)


def read(path: Path) -> dict[str, Array]:
    """The arrays of an NPZ file. UserError where it is missing, its checksum is wrong, or it is another program's."""
    try:
        with open_file(path) as content:
            check(content, path.name)
            # np.load unpacks whatever it finds. Ours are never compressed, so that sizes say what memory they take.
            members = zipfile.ZipFile(content).infolist()
            if any(one.file_size != one.compress_size or not one.filename.endswith(".npy") for one in members):
                raise ValueError("it has something else than arrays, or these are compressed")
            content.seek(0)
            with np.load(content, allow_pickle=False) as file:
                return {
                    name: array_of(file, name, one.file_size) for name, one in zip(file.files, members, strict=True)
                }
    except DAMAGE as error:
        raise UserError(f"checkpoint file {path} is damaged or missing ({reason(error)}): resume needs it") from None


def array_of(file: Any, name: str, stored: int) -> Array:
    """An array of an open NPZ file. ValueError where it declares more than the bytes ``stored``, or is no array."""
    # numpy takes memory for what a header declares, before it finds that the bytes are not there.
    with file.zip.open(f"{name}.npy") as member:
        shape, _, dtype = npy_header(member)
    if min(shape, default=0) < 0 or size_of(shape, dtype.itemsize) > stored or dtype.kind not in "biufcSU":
        raise ValueError(f"{name} declares the shape {shape} of {dtype}, but holds {stored:,} bytes")
    return np.asarray(file[name])


def npy_header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, whether in Fortran order, and type of an array as numpy stores it."""
    major, _ = np.lib.format.read_magic(file)
    # Version 3 has another encoding of names, which arrays without fields do not have.
    read = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
    return read(file)


def check_array(what: str, found: Array, shape: tuple[int, ...], kind: Any) -> None:
    """ValueError where an array has another shape or type."""
    if found.shape != shape or found.dtype != kind:
        raise ValueError(f"{what} has type {found.dtype} and shape {found.shape}, but must have {kind} and {shape}")


def read_text(path: Path) -> bytes | None:
    """The text of a file, None where there is no file. UserError where its checksum is wrong."""
    try:
        with open_file(path) as file:
            check(file, path.name)
            file.seek(0)
            return file.read()[:-LENGTH]
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"checkpoint {path} cannot be read: {reason(error)}") from None


def check(file: IO[bytes], name: str) -> None:
    # With its name: the parts of a checkpoint have the same form, and one in place of another would be taken for it.
    left = os.fstat(file.fileno()).st_size - LENGTH
    total = zlib.crc32(name.encode())
    while left > 0 and (block := file.read(min(left, BLOCK))):
        left -= len(block)
        total = zlib.crc32(block, total)
    if file.read(BLOCK) != LAST_LINE % total:
        raise ValueError("its checksum is wrong")


@contextmanager
def checksummed_file(path: Path) -> Iterator[Checksummed]:
    """A file to write in place of ``path``; when complete it gets its checksum, is synchronised and renamed."""
    with atomic_file(path) as part, open(part, "wb") as file:
        content = Checksummed(file, path.name)
        yield content
        file.write(LAST_LINE % content.sum)
        file.flush()
        # Before the file is renamed: a crash of the machine could else leave the new name and none of the content,
        # because file systems may write the folder first.
        os.fsync(file.fileno())
