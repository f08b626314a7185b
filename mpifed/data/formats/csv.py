"""Reader of CSV files: text, plain, gzip or bzip2, with commas, semicolons, tabs, bars or blanks between cells."""

import csv
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np

from mpifed.core.errors import UserError, counted
from mpifed.data.formats.cells import Cells, TextTable, Writing
from mpifed.data.formats.lines import WIDEST, of_two_bytes, texts_of
from mpifed.data.formats.on_disk import reading
from mpifed.data.inferred import HEADER, KINDS, MARK, Inferred
from mpifed.data.tables.table import Column

CELLS = 1 << 12  # converted at a time: more leave the cache of a core
ROWS = 64  # at least
NAMED_MARK = re.compile(r'"?sep=(.)"?\s*')  # a first line that says what stands between cells, as spreadsheets take it


# What the first line says of all where a study states that it is a header, that it is none, or neither.
FIRST_LINE: dict[bool | None, tuple[Inferred, ...]] = {True: (), False: (MARK,), None: (HEADER,)}


class CsvTable(TextTable):
    """A CSV file. A column whose first entry is no number holds texts."""

    def __init__(self, path: Path, writing: Writing) -> None:
        self.path = path
        self.writing = writing
        lines = self.text()
        self.before, self.head = next(((k, line) for k, line in enumerate(lines) if line.strip()), (0, ""))
        if not self.head:
            raise UserError(f"{path} is empty")
        self.mark = self.mark_of(next(texts_of(path, writing.encoding)), self.head)
        first = [cell.strip().strip("\"'") for _, row in self.rows(iter([self.head]), 0) for cell in row]
        second = next((row for _, row in self.rows(lines, self.before + 1)), [])
        header = is_header(first, second, writing) if writing.header is None else writing.header
        # As R's write.table has it: rows have names, and these have none themselves.
        if header and len(second) == len(first) + 1 and second[-1].strip():
            first = ["", *first]
        super().__init__(str(path), first, header)
        self.inferred = (KINDS, *FIRST_LINE[writing.header])
        self.lines = np.zeros(0, np.int64)

    def text(self) -> Iterator[str]:
        """The lines of the file; those that are no part of the table are empty, so that all keep their numbers."""
        comment = self.writing.comment
        for k, line in enumerate(texts_of(self.path, self.writing.encoding)):
            aside = (k == 0 and NAMED_MARK.fullmatch(line)) or (comment is not None and line.startswith(comment))
            yield "\n" if aside else line

    def mark_of(self, top: str, head: str) -> str:
        """What stands between cells: as the line at the top says, or what the first line of the table has most."""
        if named := NAMED_MARK.fullmatch(top):
            return named[1]
        if found := of_two_bytes(head):
            raise UserError(f"{self.path}, line {self.before + 1}: {found}")
        # Commas within quotation marks are no marks between cells.
        bare = re.sub(r'"[^"]*"', "", head.strip())
        marks = [mark for mark in ";\t" if mark in bare] if self.writing.decimal == "," else ""
        found = max(marks or ",;\t|", key=bare.count)
        # A table has two columns at least, so that blanks stand between them where nothing else does.
        return " " if found not in bare and " " in bare else found

    def rows(self, lines: Iterator[str], before: int) -> Iterator[tuple[int, list[str]]]:
        """The number of its last line and the cells of each row; UserError where quotation marks do not match."""
        # Python's own limit of 128 kB would refuse a cell before we can say which one is too long.
        csv.field_size_limit(WIDEST)
        if self.mark == " ":
            lines = (line.rstrip() for line in lines)
        reader = csv.reader(lines, delimiter=self.mark, skipinitialspace=True)
        try:
            for row in reader:
                if row and (len(row) > 1 or row[0].strip()):
                    yield before + reader.line_num, row
        except csv.Error as error:
            line = before + reader.line_num
            raise UserError(f"{self.path}, line {line}: {error}; a quotation mark may be missing before it") from None

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[Column]:
        with reading(self.path, "CSV"):
            if self.writing.plain() and len(wanted) == len(self.names):
                with suppress(ValueError):  # not all cells are numbers, or rows have more or fewer
                    found = dict(enumerate(self.numbers()))
                    found |= dict(zip(as_texts, self.mixed(as_texts, as_texts), strict=True)) if as_texts else {}
                    return [found[k] for k in wanted]
            return self.mixed(wanted, as_texts)

    def numbers(self) -> list[Column]:
        """All columns of a table of numbers, which numpy reads faster; ValueError where it has others."""
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of a table without rows
            table = np.loadtxt(
                self.text(),
                delimiter=None if self.mark == " " else self.mark,
                skiprows=self.before + self.header,
                ndmin=2,
                quotechar='"',
                comments=None,
            )
        if table.size and table.shape[1] != len(self.names):
            raise ValueError("unlike the first line")
        return [Column(values) for values in table.reshape(-1, len(self.names)).T]

    def mixed(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[Column]:
        """Columns of numbers and texts, of which cells may be missing."""
        rows = self.rows(self.text(), 0)
        if self.header:
            next(rows)
        any_text = set(as_texts)
        cells = [Cells(self, k, k in any_text) for k in wanted]
        numbers = [np.zeros(0, np.int64)]
        width = len(self.names)
        while group := list(islice(rows, max(ROWS, CELLS // width))):
            lines = [number for number, _ in group]
            for number, row in group:
                if len(row) != width:
                    raise self.uneven(number, row)
            for column in cells:
                k = column.k
                column.add([row[k] for _, row in group], lines)
            numbers.append(np.array(lines))
        self.lines = np.concatenate(numbers)
        return [column.column() for column in cells]

    def uneven(self, number: int, row: Sequence[str]) -> UserError:
        """The error for a row that has more or fewer cells than there are columns."""
        said = f"{counted(len(row), 'column')}, but the first line has {len(self.names)}"
        hint = self.comments() or self.comments(number, row[0])
        return UserError(f"{self.path}, line {number}: {said}{hint}")

    def place(self, k: int) -> str:
        if k >= len(self.lines):  # a table of numbers
            self.lines = np.array([number for number, _ in self.rows(self.text(), 0)][self.header :])
        return f"line {self.lines[k]}"


def is_header(first: Sequence[str], second: Sequence[str], writing: Writing) -> bool:
    kinds = [writing.number(cell) or cell in writing.missing for cell in first]
    if all(kinds):
        return False
    if not first[0] and not any(kinds[1:]) and second and second[0]:  # names of rows have none themselves
        return True
    if len(second) != len(first) or not any(kinds):
        return True
    if any(writing.number(below) and not number for number, below in zip(kinds, second, strict=True)):
        return True
    numbers = [writing.value(cell) for cell in first if writing.number(cell)]
    return len(numbers) > 1 and numbers[0] in (0, 1) and bool(np.all(np.diff(numbers) == 1))  # pandas numbers columns
