"""Arrays in files that are whole or not there: written beside, synchronised, renamed; checked when they are read."""
from __future__ import annotations

import os
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from mpifed.component import UserError
from mpifed.data.clients import Array


def write(path: Path, arrays: Mapping[str, Array]) -> None:
    """Put arrays into an NPZ file, whose members have CRC-32 checksums. OSError where the disk does not take them."""
    with beside(path) as part, open(part, "wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
        file.flush()
        os.fsync(file.fileno())


def write_text(path: Path, text: bytes) -> None:
    """Put a text into a file; the folder is synchronised too, so that what it names is there before it."""
    with beside(path) as part, open(part, "wb") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    synchronise(path.parent)


def synchronise(path: str | os.PathLike[str]) -> None:
    """Let a file or folder reach the disk."""
    handle = os.open(path, os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def read(path: Path) -> dict[str, Array]:
    """The arrays in an NPZ file. UserError where it is damaged or not there."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"checkpoint file {path} is damaged or missing ({str(error).splitlines()[0]}): resume needs it") from None


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
