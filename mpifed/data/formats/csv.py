"""Reader of CSV files: text, plain, gzip or bzip2, with commas, semicolons, tabs, bars or blanks between cells."""

import csv
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import numpy as np

from mpifed.core.errors import UserError, format_count
from mpifed.data.formats.cells import CellConverter, CsvFormat, TextTable
from mpifed.data.formats.lines import WIDEST, advise_utf16, read_text_lines
from mpifed.data.formats.on_disk import reading
from mpifed.data.inferred import HEADER, KINDS, MARK, Inference
from mpifed.data.tables.table import TableColumn

CELLS = 1 << 12  # converted at a time: more leave the cache of a core
ROWS = 64  # converted at a time, at least
NAMED_MARK = re.compile(r'"?sep=(.)"?\s*')  # a first line that names the mark between cells, as for spreadsheets


# Facts inferred from the first line where a study states that it is a header, that it is none, or neither.
FIRST_LINE: dict[bool | None, tuple[Inference, ...]] = {True: (), False: (MARK,), None: (HEADER,)}


class CsvTable(TextTable):
    """A CSV file, in which a column holds texts if its first cell is no number."""

    def __init__(self, path: Path, csv_format: CsvFormat) -> None:
        self.path = path
        self.csv_format = csv_format
        lines = self.text()
        self.before, self.head = next(((k, line) for k, line in enumerate(lines) if line.strip()), (0, ""))
        if not self.head:
            raise UserError(f"{path} is empty")
        self.mark = self.mark_of(next(read_text_lines(path, csv_format.encoding)), self.head)
        first = [cell.strip().strip("\"'") for _, row in self.rows(iter([self.head]), 0) for cell in row]
        second = next((row for _, row in self.rows(lines, self.before + 1)), [])
        header = is_header(first, second, csv_format) if csv_format.header is None else csv_format.header
        # As R's write.table has it: rows have names, and the column of these has none.
        if header and len(second) == len(first) + 1 and second[-1].strip():
            first = ["", *first]
        super().__init__(str(path), first, header)
        self.inferred = (KINDS, *FIRST_LINE[csv_format.header])
        self.lines = np.zeros(0, np.int64)

    def text(self) -> Iterator[str]:
        """Yield the lines of the file, empty ones in place of comments, so that all keep their numbers."""
        comment = self.csv_format.comment
        for k, line in enumerate(read_text_lines(self.path, self.csv_format.encoding)):
            aside = (k == 0 and NAMED_MARK.fullmatch(line)) or (comment is not None and line.startswith(comment))
            yield "\n" if aside else line

    def mark_of(self, top: str, head: str) -> str:
        """Return the mark between cells that line ``top`` names, or else the most frequent one in line ``head``."""
        if match := NAMED_MARK.fullmatch(top):
            return match[1]
        if advice := advise_utf16(head):
            raise UserError(f"{self.path}, line {self.before + 1}: {advice}")
        # Commas within quotation marks are no marks between cells.
        bare = re.sub(r'"[^"]*"', "", head.strip())
        marks = [mark for mark in ";\t" if mark in bare] if self.csv_format.decimal == "," else ""
        mark = max(marks or ",;\t|", key=bare.count)
        # A table has at least two columns, so that blanks are the marks if there are no others.
        return " " if mark not in bare and " " in bare else mark

    def rows(self, lines: Iterator[str], before: int) -> Iterator[tuple[int, list[str]]]:
        """Yield the number of the last line and the cells of each row; UserError if quotation marks do not match."""
        # Python's own limit of 128 kB would refuse a cell without saying which one.
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

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[TableColumn]:
        with reading(self.path, "CSV"):
            if self.csv_format.is_plain() and len(wanted) == len(self.names):
                with suppress(ValueError):  # not all cells are numbers, or rows have more or fewer
                    columns = dict(enumerate(self.read_numbers()))
                    columns |= dict(zip(as_texts, self.read_cells(as_texts, as_texts), strict=True)) if as_texts else {}
                    return [columns[k] for k in wanted]
            return self.read_cells(wanted, as_texts)

    def read_numbers(self) -> list[TableColumn]:
        """Read all columns with numpy, which is faster; ValueError where a cell is no number."""
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
        return [TableColumn(values) for values in table.reshape(-1, len(self.names)).T]

    def read_cells(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[TableColumn]:
        """Read columns of numbers and of texts, in which cells may be missing."""
        rows = self.rows(self.text(), 0)
        if self.header:
            next(rows)
        any_text = set(as_texts)
        cells = [CellConverter(self, k, k in any_text) for k in wanted]
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
        """Return the error for a row that has more or fewer cells than there are columns."""
        said = f"{format_count(len(row), 'column')}, but the first line has {len(self.names)}"
        hint = self.comments() or self.comments(number, row[0])
        return UserError(f"{self.path}, line {number}: {said}{hint}")

    def cite_source_row(self, k: int) -> str:
        if k >= len(self.lines):  # a table of numbers
            self.lines = np.array([number for number, _ in self.rows(self.text(), 0)][self.header :])
        return f"line {self.lines[k]}"


def is_header(first: Sequence[str], second: Sequence[str], csv_format: CsvFormat) -> bool:
    """Return whether the first line is a header, judged by its cells and those of the second line."""
    numeric = [csv_format.is_number(cell) or cell in csv_format.missing for cell in first]
    if all(numeric):
        return False
    if not first[0] and not any(numeric[1:]) and second and second[0]:  # a column of names of rows has no name
        return True
    if len(second) != len(first) or not any(numeric):
        return True
    if any(csv_format.is_number(below) and not number for number, below in zip(numeric, second, strict=True)):
        return True
    numbers = [csv_format.value(cell) for cell in first if csv_format.is_number(cell)]
    return len(numbers) > 1 and numbers[0] in (0, 1) and bool(np.all(np.diff(numbers) == 1))  # pandas numbers columns
