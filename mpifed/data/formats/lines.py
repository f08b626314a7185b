"""Text files, plain, gzip or bzip2, read line by line."""

from __future__ import annotations

import bz2
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from mpifed.core.errors import UserError

WIDEST = 1 << 26  # bytes of the longest line allowed
FLOOR = 1 << 22  # bytes of text that any compressed file may hold
MOST_PACKED = 500  # bytes of text per compressed byte, at most


def open_text(path: Path) -> IO[bytes]:
    """Open a text file, decompressed if its suffix says so."""
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix.lower(), open)
    return opener(path, "rb")


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a text file; UserError where one is too long, or the text too large for the compressed file."""
    most, total = max(FLOOR, MOST_PACKED * path.stat().st_size), 0
    with open_text(path) as file:
        while line := file.readline(WIDEST + 1):
            total += len(line)
            if len(line) > WIDEST:
                raise UserError(f"{path} is not a table: it has a line of more than {WIDEST:,} bytes")
            if total > most:
                raise UserError(
                    f"{path} is not a table: it unpacks to over {MOST_PACKED} times its {path.stat().st_size:,} bytes"
                )
            yield line


def is_number(text: str) -> bool:
    """Whether Python can convert a text to a float."""
    try:
        float(text)
    except ValueError:
        return False
    return True
