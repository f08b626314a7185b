"""Arrays in files that are whole or not there: written beside, synchronised, renamed; checked when they are read."""

from __future__ import annotations

import io
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpifed.core.errors import UserError, reason
from mpifed.core.typing import Array

BLOCK = 1 << 20  # bytes that are read at a time
SEAL = 10  # bytes of what ends a file


class Sealed(io.RawIOBase):
    """A file that is written from its beginning to its end, and the checksum of its name and its content."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self.file, self.sum = file, zlib.crc32(name.encode())

    def write(self, data: Any) -> int:
        self.sum = zlib.crc32(data, self.sum)
        return self.file.write(data)


def seal(checksum: int) -> bytes:
    """What ends a file of that checksum."""
    return b"\n%08x\n" % checksum


def write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Put arrays into an NPZ file. OSError where the disk does not take them."""
    with sealed(path) as file:
        np.savez(file, allow_pickle=False, **arrays)


def write_text(path: Path, text: bytes) -> None:
    """Put a text into a file; the folder is synchronised too, so that what it names is there before it."""
    with sealed(path) as file:
        file.write(text)
    synchronise(path.parent)


def synchronise(path: str | os.PathLike[str]) -> None:
    """Let a file or folder reach the disk."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def read(path: Path) -> dict[str, Array]:
    """The arrays in an NPZ file. UserError where it is not there or not as it was written to this name."""
    try:
        check(path)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise UserError(f"checkpoint file {path} is damaged or missing ({reason(error)}): resume needs it") from None


def read_text(path: Path) -> bytes | None:
    """The text in a file, None where there is no file. UserError where it is not as it was written."""
    try:
        check(path)
        return path.read_bytes()[:-SEAL]
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"checkpoint {path} cannot be read: {reason(error)}") from None


def check(path: Path) -> None:
    """ValueError where a file is not what was written to this name."""
    with open(path, "rb") as file:
        left, total = os.fstat(file.fileno()).st_size - SEAL, zlib.crc32(path.name.encode())
        while left > 0 and (block := file.read(min(left, BLOCK))):
            left, total = left - len(block), zlib.crc32(block, total)
        if file.read(BLOCK) != seal(total):
            raise ValueError("its checksum is wrong")


@contextmanager
def sealed(path: Path) -> Iterator[Sealed]:
    """A file to write beside ``path``, which takes its place when it is whole and on the disk."""
    with beside(path) as part, open(part, "wb") as file:
        content = Sealed(file, path.name)
        yield content
        file.write(seal(content.sum))
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def beside(path: Path) -> Iterator[Path]:
    """A name beside ``path`` to write to, which takes its place when all went well and is removed otherwise."""
    part = path.with_name(path.name + ".part")
    try:
        yield part
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
