"""Reader of CSV files: text, plain, gzip or bzip2, with commas, semicolons or tabs between cells."""

import csv
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import LONGEST_TEXT
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.formats.lines import WIDEST, is_number, lines_of
from mpifed.data.formats.on_disk import reading
from mpifed.data.inferred import HEADER, KINDS, MARK, Inferred
from mpifed.data.tables.table import MISSING, Column, Table

CELLS = 1 << 12  # converted at a time: more leave the cache of a core
ROWS = 64  # at least
COMMA = re.compile(r"-?\d+,\d+")
OTHER_MARK = re.compile(r"-?[\d.,]+;-?[\d.,;-]+")


# What the first line says of all where a study states that it is a header, that it is none, or neither.
FIRST_LINE: dict[bool | None, tuple[Inferred, ...]] = {True: (), False: (MARK,), None: (HEADER,)}


class Writing(NamedTuple):
    """How cells are written: texts of missing ones, decimal mark, and whether there is a header (None: see)."""

    missing: frozenset[str] = frozenset()
    decimal: str = "."
    header: bool | None = None

    def plain(self) -> bool:
        """Whether Python reads numbers as they are written, and none stands for a missing cell, such as -999."""
        return self.decimal == "." and all(math.isnan(float(text)) for text in self.missing if is_number(text))

    def value(self, cell: str) -> float:
        """A number. ValueError where a cell is none, as 1_000 is, and 1.000 where commas are decimal marks."""
        if "_" in cell or (self.decimal == "," and "." in cell):
            raise ValueError(cell)
        return float(cell.replace(",", ".") if self.decimal == "," else cell)

    def number(self, cell: str) -> bool:
        try:
            self.value(cell)
        except ValueError:
            return False
        return True


class CsvTable(Table):
    """A CSV file. A column whose first entry is no number holds texts."""

    def __init__(self, path: Path, writing: Writing) -> None:
        self.path = path
        self.writing = writing
        self.plain = writing.plain()
        lines = (line.decode("utf-8-sig", errors="replace") for line in lines_of(path))
        head = next(lines, "").strip("\r\n")
        if not head:
            raise UserError(f"{path} is empty, or its first line is")
        # Commas within quotation marks are no marks between cells.
        bare = re.sub(r'"[^"]*"', "", head)
        marks = [mark for mark in ";\t" if mark in bare] if writing.decimal == "," else ""
        self.mark = max(marks or ",;\t", key=bare.count)
        first = [cell.strip().strip("\"'") for _, row in self.rows(iter([head]), 0) for cell in row]
        header = writing.header
        if header is None:
            header = is_header(first, next((row for _, row in self.rows(lines, 1)), []), writing)
        super().__init__(str(path), first, header)
        self.inferred = (KINDS, *FIRST_LINE[writing.header])
        self.lines = np.zeros(0, np.int64)

    def rows(self, lines: Iterator[str], before: int) -> Iterator[tuple[int, list[str]]]:
        """The number of its last line and the cells of each row; UserError where quotation marks do not match."""
        # Python's own limit of 128 kB would refuse a cell before we can say which one is too long.
        csv.field_size_limit(WIDEST)
        reader = csv.reader(lines, delimiter=self.mark, skipinitialspace=True)
        try:
            for row in reader:
                if row and (len(row) > 1 or row[0].strip()):
                    yield before + reader.line_num, row
        except csv.Error as error:
            line = before + reader.line_num
            raise UserError(f"{self.path}, line {line}: {error}; a quotation mark may be missing before it") from None

    def read(self, wanted: Sequence[int], categories: Sequence[int]) -> list[Column]:
        with reading(self.path, "CSV"):
            if self.plain and len(wanted) == len(self.names) and not categories:
                with suppress(ValueError):  # not all cells are numbers, or rows have more or fewer
                    return self.numbers()
            return self.mixed(wanted, categories)

    def numbers(self) -> list[Column]:
        """All columns of a table of numbers, which numpy reads faster; ValueError where it has others."""
        with warnings.catch_warnings(action="ignore", category=UserWarning):  # of a table without rows
            table = np.loadtxt(
                lines_of(self.path),
                delimiter=self.mark,
                skiprows=int(self.header),
                ndmin=2,
                quotechar='"',
                comments=None,
                encoding="utf-8-sig",
            )
        if table.size and table.shape[1] != len(self.names):
            raise ValueError("unlike the first line")
        return [Column(values) for values in table.reshape(-1, len(self.names)).T]

    def mixed(self, wanted: Sequence[int], categories: Sequence[int]) -> list[Column]:
        """Columns of numbers and texts, of which cells may be missing."""
        text = (line.decode("utf-8-sig" if k == 0 else "utf-8") for k, line in enumerate(lines_of(self.path)))
        rows = self.rows(text, 0)
        if self.header:
            next(rows)
        cells = [Cells(self, k, k in categories) for k in wanted]
        numbers = [np.zeros(0, np.int64)]
        width = len(self.names)
        while group := list(islice(rows, max(ROWS, CELLS // width))):
            lines = [number for number, _ in group]
            for number, row in group:
                if len(row) != width:
                    raise UserError(f"{self.path}, line {number}: {len(row)} columns, but the first line has {width}")
            for column in cells:
                k = column.k
                column.add([row[k] for _, row in group], lines)
            numbers.append(np.array(lines))
        self.lines = np.concatenate(numbers)
        return [column.column() for column in cells]

    def place(self, k: int) -> str:
        if k >= len(self.lines):  # a table of numbers
            text = (line.decode("utf-8-sig", errors="replace") for line in lines_of(self.path))
            self.lines = np.array([number for number, _ in self.rows(text, 0)][self.header :])
        return f"line {self.lines[k]}"


class Cells:
    """The cells of column k of a table as they come, as numbers or, from the first one that is none on, as texts."""

    def __init__(self, table: CsvTable, k: int, any_text: bool) -> None:
        self.table = table
        self.k = k
        self.any_text = any_text
        self.texts: dict[str, int] | None = {} if any_text else None
        self.known = any_text  # whether an entry that is not missing has said what the column holds
        self.codes = dict.fromkeys(table.writing.missing, MISSING)  # of texts as they were written
        self.parts: list[Array] = []

    def add(self, cells: list[str], lines: list[int]) -> None:
        """Convert the next cells, which are in these lines; UserError for the first one that is wrong."""
        missing = self.table.writing.missing
        if not self.known:
            first = next((cell.strip() for cell in cells if cell.strip() not in missing), None)
            self.known = first is not None
            self.texts = None if first is None or self.table.writing.number(first) else {}
        if self.texts is None:
            self.parts.append(self.numbers(cells, lines))
            return
        for cell in dict.fromkeys(cells):
            if cell not in self.codes:
                self.codes[cell] = self.code(cell.strip(), lines[cells.index(cell)])
        self.parts.append(np.fromiter(map(self.codes.__getitem__, cells), np.int64, len(cells)))

    def numbers(self, cells: list[str], lines: list[int]) -> Array:
        """Cells as numbers: at once where all are, one by one where some are missing, written otherwise, or wrong."""
        with suppress(ValueError):
            if self.table.plain and "_" not in "".join(cells):  # float takes 18_25, an age group, as 1825
                return np.fromiter(map(float, cells), np.float64, len(cells))
        return np.array([self.number(cell.strip(), line) for cell, line in zip(cells, lines, strict=True)])

    def number(self, cell: str, line: int) -> float:
        if cell in self.table.writing.missing:
            return np.nan
        with suppress(ValueError):
            return self.table.writing.value(cell)
        raise self.wrong(
            f"{brief(cell)} {{}} is not a number, as the first entry is: texts that stand for missing values are "
            "named in data.missing_texts, columns of categories in data.categories",
            line,
        )

    def code(self, cell: str, line: int) -> int:
        assert self.texts is not None
        if cell in self.table.writing.missing:
            return MISSING
        if len(cell) > LONGEST_TEXT:
            raise self.wrong(f"a text of {len(cell):,} characters {{}}: it may have {LONGEST_TEXT:,}", line)
        if not cell.isprintable():
            raise self.wrong(f"{brief(cell)} {{}} has characters that cannot be printed", line)
        if cell not in self.texts and not self.any_text:
            self.check(cell, line)
        return self.texts.setdefault(cell, len(self.texts))

    def check(self, cell: str, line: int) -> None:
        """UserError for a text that is or was meant as a number."""
        if OTHER_MARK.fullmatch(cell):
            raise self.wrong(
                f'{cell!r} {{}} has semicolons between numbers with a decimal comma: data.decimal = ","', line
            )
        if self.table.writing.number(cell):
            raise self.wrong(
                f"{cell!r} {{}} is a number, but the first entry is text: all must be numbers, or all text; for a "
                f"feature data.categories = [{toml_value(self.table.names[self.k])}] takes both",
                line,
            )
        if COMMA.fullmatch(cell):
            raise self.wrong(f'{cell!r} {{}} has a decimal comma: data.decimal = "," reads such numbers', line)

    def wrong(self, sentence: str, line: int) -> UserError:
        """The error for a cell of this column, with where it stands in place of {}."""
        return UserError(f"{self.table.path}, line {line}: {sentence.replace('{}', f'in {self.table.called(self.k)}')}")

    def column(self) -> Column:
        kind = np.float64 if self.texts is None else np.int64
        parts = [np.zeros(0, kind), *self.parts]
        if self.texts is None:
            return Column(np.concatenate(parts))
        parts = [np.where(np.isnan(part), MISSING, part).astype(np.int64) for part in parts]  # missing before a text
        return Column(np.concatenate(parts), tuple(self.texts))


def is_header(first: Sequence[str], second: Sequence[str], writing: Writing) -> bool:
    kinds = [writing.number(cell) or cell in writing.missing for cell in first]
    if all(kinds):
        return False
    if len(second) != len(first) or not any(kinds):
        return True
    if any(writing.number(below) and not number for number, below in zip(kinds, second, strict=True)):
        return True
    numbers = [writing.value(cell) for cell in first if writing.number(cell)]
    return len(numbers) > 1 and numbers[0] in (0, 1) and bool(np.all(np.diff(numbers) == 1))  # pandas numbers columns


def brief(cell: str) -> str:
    return repr(cell if len(cell) <= 60 else f"{cell[:60]}…")
