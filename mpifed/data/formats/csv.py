"""Reader of CSV files: text, plain, gzip or bzip2, with commas, semicolons, tabs, bars or blanks between cells."""

import csv
import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path

import numpy as np

from mpifed.core.errors import UserError, format_count
from mpifed.core.memory import LONGEST_TEXT
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import HEADER, KINDS, MARK, Inference
from mpifed.data.formats.lines import WIDEST, advise_utf16, read_text_lines
from mpifed.data.formats.on_disk import reading
from mpifed.data.tables.table import MISSING, DataTable, TableColumn

CELLS = 1 << 12  # converted at a time: more leave the cache of a core
ROWS = 64  # converted at a time, at least
NAMED_MARK = re.compile(r'"?sep=(.)"?\s*')  # a first line that names the mark between cells, as for spreadsheets
# Facts inferred from the first line where a study states that it is a header, that it is none, or neither.
FIRST_LINE: dict[bool | None, tuple[Inference, ...]] = {True: (), False: (MARK,), None: (HEADER,)}
OTHER_MARK = re.compile(r"-?[\d.,]+;-?[\d.,;-]+")
COMMENTS = ("#", "%")  # with which comments begin, as a rule
GROUPS = {",": ",", ".": ".", " ": " \u00a0\u202f", "'": "'\u2019"}  # characters by data.thousands


@dataclass(frozen=True)
class CsvFormat:
    """Format of a CSV file: texts of missing cells, marks in numbers, header (None: detected), encoding, comments."""

    missing: frozenset[str] = frozenset()
    decimal: str = "."
    thousands: str | None = None
    header: bool | None = None
    encoding: str | None = None
    comment: str | None = None

    @cached_property
    def missing_numbers(self) -> frozenset[float]:
        """Numbers that stand for missing cells: with -9 also -9.0 is missing."""
        values = (self.value(text) for text in self.missing if self.is_number(text))
        return frozenset(value for value in values if not math.isnan(value))

    @cached_property
    def groups(self) -> re.Pattern[str]:
        """Pattern of a number with marks between groups of three digits."""
        mark = f"[{GROUPS[self.thousands or ',']}]"
        return re.compile(rf"[-+]?\d{{1,3}}(?:{mark}\d{{3}})+(?:{re.escape(self.decimal)}\d*)?")

    def is_plain(self) -> bool:
        """Return whether Python reads numbers as they are written, and no number such as -999 is a missing cell."""
        return self.decimal == "." and self.thousands is None and not self.missing_numbers

    def value(self, cell: str) -> float:
        """Return the number in a cell; ValueError if it is none, such as 1_000, or 1.000 with decimal commas."""
        if self.thousands is not None and self.groups.fullmatch(cell):
            for mark in GROUPS[self.thousands]:
                cell = cell.replace(mark, "")
        if "_" in cell or (self.decimal == "," and "." in cell):
            raise ValueError(cell)
        return float(cell.replace(",", ".") if self.decimal == "," else cell)

    def is_number(self, cell: str) -> bool:
        """Return whether a cell is a number."""
        try:
            self.value(cell)
        except ValueError:
            return False
        return True

    def is_missing(self, cell: str) -> bool:
        """Return whether a cell is missing."""
        numbers = self.missing_numbers
        return cell in self.missing or (bool(numbers) and self.is_number(cell) and self.value(cell) in numbers)

    def advise(self, cell: str) -> list[str]:
        """Return advice on the fewest options that read a cell as a number, one for each number that it may be."""
        every = [(d, t) for d in ".," for t in (self.thousands, *GROUPS) if d != t]
        advice: dict[float, str] = {}
        for count in (1, 2):
            for decimal, thousands in every:
                other = replace(self, decimal=decimal, thousands=thousands)
                changes = {"decimal": decimal} if decimal != self.decimal else {}
                changes |= {"thousands": thousands} if thousands and thousands != self.thousands else {}
                if len(changes) == count and other.is_number(cell):
                    keys = " and ".join(f"data.{key} = {toml_value(mark)}" for key, mark in changes.items())
                    verb = "reads" if count == 1 else "read"
                    advice.setdefault(other.value(cell), f"{keys} {verb} it as {other.value(cell):.15g}")
            if advice:
                break
        return list(advice.values())


class CellConverter:
    """Converter of the cells of column k of a table, chunk by chunk: to numbers, or to texts if the first is a text."""

    def __init__(self, table: "CsvTable", k: int, any_text: bool) -> None:
        self.table = table
        self.k = k
        self.any_text = any_text
        self.texts: dict[str, int] | None = {} if any_text else None
        self.decided = any_text  # whether a cell that is not missing has decided between numbers and texts
        self.codes = dict.fromkeys(table.csv_format.missing, MISSING)  # of texts as they were written
        self.parts: list[Array] = []

    def add(self, cells: list[str], lines: list[int]) -> None:
        """Convert the next cells, which are in these lines; UserError for the first one that is wrong."""
        is_missing = self.table.csv_format.is_missing
        if not self.decided:
            first = next((cell.strip() for cell in cells if not is_missing(cell.strip())), None)
            self.decided = first is not None
            self.texts = None if first is None or self.table.csv_format.is_number(first) else {}
        if self.texts is None:
            self.parts.append(self.numbers(cells, lines))
            return
        for cell in dict.fromkeys(cells):
            if cell not in self.codes:
                self.codes[cell] = self.code(cell.strip(), lines[cells.index(cell)])
        self.parts.append(np.fromiter(map(self.codes.__getitem__, cells), np.int64, len(cells)))

    def numbers(self, cells: list[str], lines: list[int]) -> Array:
        """Convert cells to numbers: at once if all are, else one by one, as some are missing, in groups, or wrong."""
        with suppress(ValueError):
            # float takes 18_25, an age group, as 1825
            if self.table.csv_format.is_plain() and "_" not in "".join(cells):
                return np.fromiter(map(float, cells), np.float64, len(cells))
        return np.array([self.number(cell.strip(), line) for cell, line in zip(cells, lines, strict=True)])

    def number(self, cell: str, line: int) -> float:
        """Return the number in a cell, NaN if it is missing; UserError if it is none."""
        csv_format = self.table.csv_format
        if cell in csv_format.missing:
            return np.nan
        with suppress(ValueError):
            value = csv_format.value(cell)
            return np.nan if value in csv_format.missing_numbers else value
        self.check(cell, line)
        raise self.wrong(
            f"{brief(cell)} {{}} is not a number, as the first entry is: texts that stand for missing values are "
            "named in data.missing_texts, columns of categories in data.categories",
            line,
        )

    def code(self, cell: str, line: int) -> int:
        """Return the code of a text, which may be new; UserError if it is none."""
        assert self.texts is not None
        if self.table.csv_format.is_missing(cell):
            return MISSING
        if len(cell) > LONGEST_TEXT:
            raise self.wrong(f"a text of {len(cell):,} characters {{}}: it may have {LONGEST_TEXT:,}", line)
        if cell not in self.texts and not self.any_text:
            if self.table.csv_format.is_number(cell):
                raise self.wrong(
                    f"{cell!r} {{}} is a number, but the first entry is text: all must be numbers, or all text; for a "
                    f"feature data.categories = [{toml_value(self.table.names[self.k])}] takes both",
                    line,
                )
            self.check(cell, line)
        if not cell.isprintable():  # such as some blanks between groups of digits
            raise self.wrong(f"{brief(cell)} {{}} has characters that cannot be printed", line)
        return self.texts.setdefault(cell, len(self.texts))

    def check(self, cell: str, line: int) -> None:
        """Raise UserError for a text that would be a number in another format, with the options that read it."""
        if OTHER_MARK.fullmatch(cell):
            raise self.wrong(
                f'{cell!r} {{}} has semicolons between numbers with a decimal comma: data.decimal = ","', line
            )
        advice = self.table.csv_format.advise(cell)
        if not advice:
            return
        if cell.isprintable():
            advice += [f"for a feature, data.categories = [{toml_value(self.table.names[self.k])}] keeps it as a text"]
        raise self.wrong(f"{cell!r} {{}} is not a number as the file is read: {'; '.join(advice)}", line)

    def wrong(self, sentence: str, line: int) -> UserError:
        """Return the error for a cell of this column, with the column in place of {}."""
        sentence = sentence.replace("{}", f"in {self.table.cite(self.k)}")
        return UserError(f"{self.table.path}, line {line}: {sentence}{self.table.comments()}")

    def column(self) -> TableColumn:
        """Return all cells as a column."""
        dtype = np.float64 if self.texts is None else np.int64
        parts = [np.zeros(0, dtype), *self.parts]
        if self.texts is None:
            return TableColumn(np.concatenate(parts))
        parts = [np.where(np.isnan(part), MISSING, part).astype(np.int64) for part in parts]  # NaN before any text
        return TableColumn(np.concatenate(parts), tuple(self.texts))


def brief(cell: str) -> str:
    return repr(cell if len(cell) <= 60 else f"{cell[:60]}…")


class CsvTable(DataTable):
    """A CSV file, in which a column holds texts if its first cell is no number."""

    written = True

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

    def comments(self, number: int | None = None, line: str | None = None) -> str:
        """Return advice for a line, by default the first of the table, that may be a comment; else ""."""
        start = (self.head if line is None else line)[:1]
        if start not in COMMENTS or self.csv_format.comment is not None:
            return ""
        number = self.before + 1 if number is None else number
        return f'; where line {number} is a comment, data.comment = "{start}" leaves such lines out'

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
