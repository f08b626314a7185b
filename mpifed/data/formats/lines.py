"""Text files, plain, gzip or bzip2, read line by line."""

import bz2
import codecs
import gzip
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mpifed.core.errors import UserError

WIDEST = 1 << 26  # bytes of the longest line allowed
FLOOR = 1 << 22  # bytes of text that any compressed file may hold
MOST_PACKED = 500  # bytes of text per compressed byte, at most


def read_lines(path: Path) -> Iterator[bytes]:
    """Yield the lines of a text file, decompressed if its suffix says so; UserError if one, or all, are too long."""
    with open_text(path) as file:
        yield from limit_lines(file, path)


def open_text(path: Path) -> Any:
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix.lower(), open)
    return opener(path, "rb")


def limit_lines(file: Any, path: Path) -> Iterator[Any]:
    """Yield the lines of an open file; UserError if one is too long, or the text too large for the file's size."""
    # A file made to unpack to terabytes, or to one line of them, would bring down the machine.
    size = path.stat().st_size
    limit = max(FLOOR, MOST_PACKED * size)
    total = 0
    while line := file.readline(WIDEST + 1):
        total += len(line)
        if len(line) > WIDEST:
            raise UserError(f"{path} is not a table: it has a line of more than {WIDEST:,} bytes")
        if total > limit:
            raise UserError(f"{path} is not a table: it unpacks to over {MOST_PACKED} times its {size:,} bytes")
        yield line


def read_text_lines(path: Path, encoding: str | None) -> Iterator[str]:
    """Yield the lines of a text file in UTF-8, or in data.encoding; UserError for bytes that are not in it."""
    if encoding is not None:
        with io.TextIOWrapper(open_text(path), encoding, newline="") as file:
            try:
                yield from limit_lines(file, path)
            except UnicodeError as error:
                raise UserError(f'{path} cannot be read with data.encoding = "{encoding}": {error}') from None
        return
    for k, line in enumerate(read_lines(path)):
        try:
            text = line.decode("utf-8" if k else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}, line {k + 1}: {advise_encoding(line, error)}") from None
        if "\r" in text[:-2]:  # some programs end lines with \r alone
            yield from io.StringIO(text, newline="")
        else:
            yield text


def advise_encoding(line: bytes, error: UnicodeDecodeError) -> str:
    """Return advice for a line that is not in UTF-8."""
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return 'the file is in UTF-16: data.encoding = "utf-16" reads it'
    return advise_utf16(line.decode("latin-1")) or (
        f"the byte 0x{line[error.start]:02x} is not UTF-8: data.encoding names the encoding of the file, such as "
        '"latin-1", or "cp1252" of Windows'
    )


def advise_utf16(line: str) -> str:
    """Return advice for a line of which every other byte is 0, as in UTF-16 without a mark at its start; else ""."""
    zeros = {"be": line[::2].count("\0"), "le": line[1::2].count("\0")}
    order = max(zeros, key=zeros.__getitem__)
    # A quarter, because letters beyond ASCII have no byte of 0; single ones are damage.
    if min(zeros.values()) or 4 * zeros[order] < max(len(line), 1):
        return ""
    return f'the file has bytes of 0, as UTF-16 without a mark at its start: data.encoding = "utf-16-{order}" reads it'


def is_number(text: str) -> bool:
    """Return whether a text is a number, as Python reads it except for 1_000."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def group_equal_numbers(texts: Sequence[str]) -> list[str]:
    """Return the groups of texts that are one number, such as "'007' and '7'"; none if a text is no number."""
    groups: dict[float, list[str]] = {}
    for text in texts if all(map(is_number, texts)) else ():
        groups.setdefault(float(text), []).append(text)
    return [" and ".join(map(repr, group)) for group in groups.values() if len(group) > 1]
