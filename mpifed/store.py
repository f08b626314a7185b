"""Arrays in files that are whole or not there: written beside, synchronised, renamed; checked when they are read."""
from __future__ import annotations

import os
import zipfile
from collections.abc import Mapping
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
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


def read(path: Path) -> dict[str, Array]:
    """The arrays in an NPZ file. UserError where it is damaged or not there."""
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"checkpoint file {path} is damaged or missing ({str(error).splitlines()[0]}): resume needs it") from None


class beside:
    """A name beside ``path`` to write to, which takes its place when all went well and is removed otherwise."""

    def __init__(self, path: Path) -> None:
        self.path, self.part = path, path.with_name(path.name + ".part")

    def __enter__(self) -> Path:
        return self.part

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            os.replace(self.part, self.path)
        else:
            self.part.unlink(missing_ok=True)
