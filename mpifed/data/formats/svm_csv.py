"""Readers of LIBSVM (sparse) and CSV (dense) text files, plain, gzip or bzip2."""

from __future__ import annotations

import bz2
import gzip
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy.sparse as sp

from mpifed.core.errors import UserError
from mpifed.core.typing import Array

CHUNK = 1 << 24  # bytes of text parsed at a time
WIDEST = 1 << 26  # bytes of the longest line allowed
FLOOR = 1 << 22  # bytes of text that any compressed file may hold
MOST_PACKED = 500  # bytes of text per compressed byte, at most
QID = re.compile(rb"\sqid:\S*")


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


def read_svm(path: Path, zero_based: bool | None) -> tuple[sp.csr_array, Array]:
    """X (d, n) CSR and y (d,) of lines ``label index:value index:value … # comment``; qid:… is ignored.

    Indices count from 0 if ``zero_based``, else from 1; with None, from 0 if the file has an index 0.
    """
    labels, counts, columns, values = [np.zeros(0)], [np.zeros(1, int)], [np.zeros(0, int)], [np.zeros(0)]
    for first, lines in chunks(path):
        y, count, pairs = parse(path, first, lines)
        labels.append(y)
        counts.append(count)
        columns.append(pairs[:, 0].astype(np.int64))
        values.append(pairs[:, 1])
    index, indptr = np.concatenate(columns), np.cumsum(np.concatenate(counts))
    lowest = int(index.min(initial=1))
    if lowest < 0 or (lowest == 0 and zero_based is False):
        raise UserError(f"{path} has the index {lowest}: indices count from 1, or from 0 with data.zero_based = true")
    if lowest > 0 and not zero_based:
        index -= 1
    shape = (len(indptr) - 1, int(index.max(initial=-1)) + 1)
    X = sp.csr_array((np.concatenate(values), index, indptr), shape)
    X.sum_duplicates()
    return X, np.concatenate(labels)


def chunks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Number, from 1, of the first line of each chunk, and its lines."""
    first, size, group = 1, 0, []
    for line in lines_of(path):
        group.append(line)
        size += len(line)
        if size >= CHUNK:
            yield first, group
            first, size, group = first + len(group), 0, []
    yield first, group


def parse(path: Path, first: int, lines: list[bytes]) -> tuple[Array, Array, Array]:
    """Labels (rows,), number of entries of each row (rows,), and all (index, value) pairs of these lines."""
    labels: list[bytes] = []
    counts: list[int] = []
    rest: list[bytes] = []
    try:
        for line in lines:
            label, *entries = QID.sub(b"", line.split(b"#", 1)[0]).split() or [b""]
            if label:
                labels.append(label)
                counts.append(len(entries))
                rest += entries
        y = np.array(labels, dtype=np.float64)
        text = b" ".join(rest)
        pairs = np.array(text.replace(b":", b" ").split(), dtype=np.float64).reshape(-1, 2)
        marks = np.frombuffer(text, dtype=np.uint8)
        marks = marks[(marks == ord(":")) | (marks == ord(" "))]
        index = pairs[:, 0]
        whole = np.all((np.abs(index) < 2**53) & (index == np.floor(index)))
        if marks.tobytes() != (b": " * len(rest))[:-1] or len(pairs) != len(rest) or not whole:
            raise ValueError
    except ValueError:
        if len(lines) == 1:
            shown = lines[0].decode(errors="replace").strip()[:60]
            raise UserError(f"{path}, line {first}: {shown!r} is not of the form 'label index:value …'") from None
        half = len(lines) // 2
        parse(path, first, lines[:half])
        parse(path, first + half, lines[half:])
        raise
    return y, np.array(counts, dtype=np.int64), pairs


def read_csv(path: Path, target: int | str | None) -> tuple[Array, Array]:
    """X (d, n) and y (d,) of a table with commas, semicolons or tabs; a first line with words is a header.

    ``target`` is the column of y: its name, its number from 0, or a negative number from the end; None: the last.
    """
    head = next(lines_of(path), b"").decode("utf-8-sig", errors="replace")
    mark = max(",;\t", key=head.count)
    names = [name.strip().strip("\"'") for name in head.strip("\r\n").split(mark)]
    header = not all(is_number(name) for name in names)
    column = column_of(path, names, header, target)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # numpy warns about an empty file; the caller raises an error
        try:
            table = np.loadtxt(
                lines_of(path),
                delimiter=mark,
                skiprows=int(header),
                ndmin=2,
                quotechar='"',
                comments=None,
                encoding="utf-8-sig",
            ).reshape(-1, len(names))
        except ValueError:
            raise_first_error(path, mark, len(names), int(header))
            raise
    return np.delete(table, column, axis=1), table[:, column]


def raise_first_error(path: Path, mark: str, columns: int, skip: int) -> None:
    """UserError with the first line that is not a row of numbers; numpy's own row numbers depend on the error."""
    for number, line in enumerate(lines_of(path), 1):
        cells = [cell.strip().strip('"') for cell in line.decode("utf-8-sig", errors="replace").split(mark)]
        if number <= skip or cells == [""]:
            continue
        if len(cells) != columns:
            raise UserError(f"{path}, line {number}: {len(cells)} columns, but the first line has {columns}")
        wrong = next((cell for cell in cells if not is_number(cell)), None)
        if wrong is not None:
            raise UserError(f"{path}, line {number}: {wrong!r} is not a number")


def column_of(path: Path, names: list[str], header: bool, target: int | str | None) -> int:
    """The number of the column of y; UserError where it does not exist."""
    if isinstance(target, str):
        if not header or target not in names:
            found = "columns " + ", ".join(names[:8]) + (" …" if len(names) > 8 else "") if header else "no header"
            raise UserError(f'data.target = "{target}" is not a column of {path}, which has {found}')
        return names.index(target)
    number = -1 if target is None else target
    if not -len(names) <= number < len(names):
        raise UserError(
            f"data.target = {number} is not a column of {path}, which has {len(names)} columns, counted from 0"
        )
    return number % len(names)


def is_number(text: str) -> bool:
    """Whether Python can convert a text to a float."""
    try:
        float(text)
    except ValueError:
        return False
    return True
