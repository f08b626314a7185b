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


def lines_of(path: Path) -> Iterator[bytes]:
    """The lines of a text file, decompressed if its suffix says so.

    UserError where one is too long, or the text too large for the compressed file.
    """
    with opened(path) as file:
        yield from limited(file, path)


def opened(path: Path) -> Any:
    opener: Any = {".gz": gzip.open, ".bz2": bz2.open}.get(path.suffix.lower(), open)
    return opener(path, "rb")


def limited(file: Any, path: Path) -> Iterator[Any]:
    # A file that is made to unpack to terabytes, or to have one line of them, would end the machine and not the run.
    size = path.stat().st_size
    most = max(FLOOR, MOST_PACKED * size)
    total = 0
    while line := file.readline(WIDEST + 1):
        total += len(line)
        if len(line) > WIDEST:
            raise UserError(f"{path} is not a table: it has a line of more than {WIDEST:,} bytes")
        if total > most:
            raise UserError(f"{path} is not a table: it unpacks to over {MOST_PACKED} times its {size:,} bytes")
        yield line


def texts_of(path: Path, encoding: str | None) -> Iterator[str]:
    """The lines of a text file in UTF-8, or in the ``encoding`` that data.encoding names.

    UserError where bytes are not of it.
    """
    if encoding is not None:
        with io.TextIOWrapper(opened(path), encoding, newline="") as file:
            try:
                yield from limited(file, path)
            except UnicodeError as error:
                raise UserError(f'{path} cannot be read with data.encoding = "{encoding}": {error}') from None
        return
    for k, line in enumerate(lines_of(path)):
        try:
            text = line.decode("utf-8" if k else "utf-8-sig")
        except UnicodeDecodeError as error:
            raise UserError(f"{path}, line {k + 1}: {not_utf8(line, error)}") from None
        if "\r" in text[:-2]:  # what some write at the end of a line, alone
            yield from io.StringIO(text, newline="")
        else:
            yield text


def not_utf8(line: bytes, error: UnicodeDecodeError) -> str:
    if line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return 'the file is in UTF-16: data.encoding = "utf-16" reads it'
    return of_two_bytes(line.decode("latin-1")) or (
        f"the byte 0x{line[error.start]:02x} is not UTF-8: data.encoding names the encoding of the file, such as "
        '"latin-1", or "cp1252" of Windows'
    )


def of_two_bytes(line: str) -> str:
    """What is right where every other byte is 0, as in UTF-16 of a file that does not begin with its mark."""
    zeros = {"be": line[::2].count("\0"), "le": line[1::2].count("\0")}
    order = max(zeros, key=zeros.__getitem__)
    # a quarter, for letters beyond ASCII have none; a byte of 0 here and there is damage
    if min(zeros.values()) or 4 * zeros[order] < max(len(line), 1):
        return ""
    return f'the file has bytes of 0, as UTF-16 without a mark at its start: data.encoding = "utf-16-{order}" reads it'


def is_number(text: str) -> bool:
    """Whether a text is a number, as Python reads it but for 1_000."""
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text


def one_number(texts: Sequence[str]) -> list[str]:
    """Which texts are the same number, as '007' and '7'; none where some are no numbers."""
    found: dict[float, list[str]] = {}
    for text in texts if all(map(is_number, texts)) else ():
        found.setdefault(float(text), []).append(text)
    return [" and ".join(map(repr, own)) for own in found.values() if len(own) > 1]
