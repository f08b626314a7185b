"""Conversion of the cells of a CSV file to numbers or texts, with advice on cells that are not as they should be."""

import math
import re
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import LONGEST_TEXT
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.tables.table import MISSING, DataTable, TableColumn

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


class TextTable(DataTable):
    """A table of cells that are texts in a file. ``head``: its first line; ``before``: number of lines before it."""

    written = True
    path: Path
    csv_format: CsvFormat
    head: str
    before: int

    def comments(self, number: int | None = None, line: str | None = None) -> str:
        """Return advice for a line, by default the first of the table, that may be a comment; else ""."""
        start = (self.head if line is None else line)[:1]
        if start not in COMMENTS or self.csv_format.comment is not None:
            return ""
        number = self.before + 1 if number is None else number
        return f'; where line {number} is a comment, data.comment = "{start}" leaves such lines out'


class CellConverter:
    """Converter of the cells of column k of a table, chunk by chunk: to numbers, or to texts if the first is a text."""

    def __init__(self, table: TextTable, k: int, any_text: bool) -> None:
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
