"""Text files, plain, gzip or bzip2, read line by line."""

import bz2
import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mpifed.core.errors import UserError

WIDEST = 1 << 26  # bytes of the longest line allowed
FLOOR = 1 << 22  # bytes of text that any compressed file may hold
MOST_PACKED = 500  # bytes of text per compressed byte, at most


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a text file, decompressed if its suffix says so.

    UserError where one is too long, or the text too large for the compressed file.
    """
    # A file that is made to unpack to terabytes, or to have one line of them, would end the machine and not the run.
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix.lower(), open)
    size = path.stat().st_size
    most = max(FLOOR, MOST_PACKED * size)
    total = 0
    with opener(path, "rb") as file:
        while line := file.readline(WIDEST + 1):
            total += len(line)
            if len(line) > WIDEST:
                raise UserError(f"{path} is not a table: it has a line of more than {WIDEST:,} bytes")
            if total > most:
                raise UserError(f"{path} is not a table: it unpacks to over {MOST_PACKED} times its {size:,} bytes")
            yield line


def is_number(text: str) -> bool:
    """Whether a text is a number, as Python reads it but for 1_000."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text
