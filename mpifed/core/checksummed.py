"""Checkpoint files: written atomically, synchronised with the disk, and checked against a checksum when read."""

import io
import os
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpifed.core.errors import UserError, reason
from mpifed.core.files import atomic_file, synchronise
from mpifed.core.typing import Array

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
    """The arrays of an NPZ file. UserError where it is missing or its checksum is wrong."""
    try:
        check(path)
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError) as error:
        raise UserError(f"checkpoint file {path} is damaged or missing ({reason(error)}): resume needs it") from None


def read_text(path: Path) -> bytes | None:
    """The text of a file, None where there is no file. UserError where its checksum is wrong."""
    try:
        check(path)
        return path.read_bytes()[:-LENGTH]
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise UserError(f"checkpoint {path} cannot be read: {reason(error)}") from None


def check(path: Path) -> None:
    """ValueError where the name or the content of a file does not match its checksum."""
    with open(path, "rb") as file:
        left = os.fstat(file.fileno()).st_size - LENGTH
        total = zlib.crc32(path.name.encode())
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
        os.fsync(file.fileno())
