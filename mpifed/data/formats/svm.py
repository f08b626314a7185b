"""Reader of LIBSVM files, which are sparse: text, plain, gzip or bzip2."""

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.arrays import row_offsets
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.dataset import BASE, COLUMNS, Inference
from mpifed.data.formats.lines import is_number, read_lines

CHUNK = 1 << 24  # bytes of text parsed at a time
QID = re.compile(rb"\sqid:\S*")


def infer_indices(zero_based: bool | None = None, columns: int | None = None) -> tuple[Inference, ...]:
    """Return the facts that are inferred from the samples of a file, because its options do not state them."""
    return (() if columns else (COLUMNS,)) + (() if zero_based is not None else (BASE,))


def read_svm(path: Path, zero_based: bool | None, columns: int | None = None) -> dict[str, Any]:
    """Read X (d, n) CSR and y (d,) from lines ``label index:value index:value … # comment``; qid:… is ignored.

    Labels are numbers or, if the first one is not, texts. Indices count from 0 if ``zero_based``, else from 1; with
    None, from 0 if the file has an index 0. There are ``columns`` features or, with None, as many as the largest index
    says. Raises UserError for other indices, and for an index that a line has twice.
    """
    words: bool | None = None
    labels: list[Array] = []
    counts = []
    indices = []
    values = []
    for first, lines in read_chunks(path):
        # The first label decides: a number among words is a word, but a word among numbers is a mistake.
        if words is None:
            label = next((entries[0] for entries in map(split_line, lines) if entries), None)
            words = None if label is None else is_word(label)
        y, count, pairs = parse(path, first, lines, bool(words))
        labels += [y] if len(y) else []
        counts.append(count)
        indices.append(pairs[:, 0].astype(np.int64))
        values.append(pairs[:, 1])
    index = np.concatenate(indices)
    lowest = int(index.min(initial=1))
    if lowest < 0 or (lowest == 0 and zero_based is False):
        raise UserError(f"{path} has the index {lowest}: indices count from 1, or from 0 with data.zero_based = true")
    base = int(lowest > 0 and not zero_based)
    X = make_csr(path, index - base, np.concatenate(values), row_offsets(np.concatenate(counts)), (base, columns))
    return {"X": X, "y": np.concatenate(labels or [np.zeros(0)])}


def make_csr(path: Path, index: Array, values: Array, indptr: Array, counted: tuple[int, int | None]) -> Any:
    """Return X (d, n) from indices that begin at 0; ``counted``: base in the file, n or None; UserError if wrong."""
    base, columns = counted
    n = int(index.max(initial=-1)) + 1
    if columns and n > columns:
        line = cite_line(path, indptr, int(index.argmax()))
        right = f"indices count from {base}, and data.columns = {columns} says that there are {columns} features"
        raise UserError(f"{line} has the index {n - 1 + base}: {right}")
    X = sp.csr_array((values, index, indptr), (len(indptr) - 1, columns or n))
    X.sort_indices()
    twice = np.flatnonzero(X.indices[1:] == X.indices[:-1])
    # An index at the end of a row and at the start of the next one is in each of them once.
    twice = twice[~np.isin(twice + 1, indptr)]
    if twice.size:
        line = cite_line(path, indptr, int(twice[0]))
        raise UserError(f"{line} has the index {X.indices[twice[0]] + base} twice: each stands there once")
    return X


def cite_line(path: Path, indptr: Array, entry: int) -> str:
    """Return the path and the number of the line that holds an entry of the matrix."""
    row = int(np.searchsorted(indptr, entry, side="right")) - 1
    lines = (number for number, line in enumerate(read_lines(path), 1) if split_line(line))
    return f"{path}, line {next(islice(lines, row, None))}"


def read_chunks(path: Path) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the number, from 1, of the first line of each chunk, and its lines."""
    first = 1
    size = 0
    group: list[bytes] = []
    for line in read_lines(path):
        group.append(line)
        size += len(line)
        if size >= CHUNK:
            yield first, group
            first += len(group)
            size = 0
            group = []
    yield first, group


def split_line(line: bytes) -> list[bytes]:
    """Return the label and the entries of a line, without comment and qid; nothing for an empty line."""
    return QID.sub(b"", line.split(b"#", 1)[0]).split()


def is_word(label: bytes) -> bool:
    return not is_number(label.decode(errors="replace")) and b":" not in label and b"," not in label


def parse(path: Path, first: int, lines: list[bytes], words: bool) -> tuple[Array, Array, Array]:
    """Return labels (texts if ``words``), entries of each row, and (index, value) pairs; UserError for a wrong line."""
    labels: list[bytes] = []
    counts: list[int] = []
    rest: list[bytes] = []
    try:
        for line in lines:
            label, *entries = split_line(line) or [b""]
            if label:
                labels.append(label)
                counts.append(len(entries))
                rest += entries
        if words and not all(map(is_word, labels)):
            raise ValueError
        y = np.array([label.decode() for label in labels]) if words else np.array(labels, dtype=np.float64)
        text = b" ".join(rest)
        if b"_" in b"".join([text] if words else [text, *labels]):  # float takes 1_0 as 10
            raise ValueError
        pairs = np.array(text.replace(b":", b" ").split(), dtype=np.float64).reshape(-1, 2)
        marks = np.frombuffer(text, dtype=np.uint8)
        marks = marks[(marks == ord(":")) | (marks == ord(" "))]
        index = pairs[:, 0]
        exact = np.all((np.abs(index) < 2**53) & (index == np.floor(index)))
        if marks.tobytes() != (b": " * len(rest))[:-1] or len(pairs) != len(rest) or not exact:
            raise ValueError
    except ValueError:
        if len(lines) == 1:
            shown = lines[0].decode(errors="replace").strip()[:60]
            form = "label index:value …', with a word as label" if words else "label index:value …'"
            raise UserError(f"{path}, line {first}: {shown!r} is not of the form '{form}") from None
        # numpy does not say which line is wrong: bisection finds it.
        half = len(lines) // 2
        parse(path, first, lines[:half], words)
        parse(path, first + half, lines[half:], words)
        raise
    return y, np.array(counts, dtype=np.int64), pairs
