"""Cells of a CSV file, as numbers or texts: how numbers are written, and what a cell that is none may be meant as."""

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
from mpifed.data.tables.table import MISSING, Column, Table

OTHER_MARK = re.compile(r"-?[\d.,]+;-?[\d.,;-]+")
COMMENTS = ("#", "%")  # with which comments begin, as a rule
GROUPS = {",": ",", ".": ".", " ": " \u00a0\u202f", "'": "'\u2019"}  # characters by data.thousands


@dataclass(frozen=True)
class Writing:
    """How a file is written: texts of missing cells, marks in numbers, header (None: see), encoding, and comments."""

    missing: frozenset[str] = frozenset()
    decimal: str = "."
    thousands: str | None = None
    header: bool | None = None
    encoding: str | None = None
    comment: str | None = None

    @cached_property
    def lost(self) -> frozenset[float]:
        """Numbers that stand for missing cells: of -9 also -9.0."""
        found = (self.value(text) for text in self.missing if self.number(text))
        return frozenset(value for value in found if not math.isnan(value))

    @cached_property
    def groups(self) -> re.Pattern[str]:
        mark = f"[{GROUPS[self.thousands or ',']}]"
        return re.compile(rf"[-+]?\d{{1,3}}(?:{mark}\d{{3}})+(?:{re.escape(self.decimal)}\d*)?")

    def plain(self) -> bool:
        """Whether Python reads numbers as they are written, and none stands for a missing cell, such as -999."""
        return self.decimal == "." and self.thousands is None and not self.lost

    def value(self, cell: str) -> float:
        """A number. ValueError where a cell is none, as 1_000 is, and 1.000 where commas are decimal marks."""
        if self.thousands is not None and self.groups.fullmatch(cell):
            for mark in GROUPS[self.thousands]:
                cell = cell.replace(mark, "")
        if "_" in cell or (self.decimal == "," and "." in cell):
            raise ValueError(cell)
        return float(cell.replace(",", ".") if self.decimal == "," else cell)

    def number(self, cell: str) -> bool:
        try:
            self.value(cell)
        except ValueError:
            return False
        return True

    def lacks(self, cell: str) -> bool:
        """Whether a cell is missing."""
        return cell in self.missing or (bool(self.lost) and self.number(cell) and self.value(cell) in self.lost)

    def others(self, cell: str) -> list[str]:
        """The fewest options that read a cell which is no number as the file is read; of each number that it may be."""
        every = [(d, t) for d in ".," for t in (self.thousands, *GROUPS) if d != t]
        found: dict[float, str] = {}
        for count in (1, 2):
            for decimal, thousands in every:
                other = replace(self, decimal=decimal, thousands=thousands)
                changes = {"decimal": decimal} if decimal != self.decimal else {}
                changes |= {"thousands": thousands} if thousands and thousands != self.thousands else {}
                if len(changes) == count and other.number(cell):
                    keys = " and ".join(f"data.{key} = {toml_value(mark)}" for key, mark in changes.items())
                    verb = "reads" if count == 1 else "read"
                    found.setdefault(other.value(cell), f"{keys} {verb} it as {other.value(cell):.15g}")
            if found:
                break
        return list(found.values())


class TextTable(Table):
    """A table whose cells are texts in a file. ``head``: its first line, after ``before`` others."""

    written = True
    path: Path
    writing: Writing
    head: str
    before: int

    def comments(self, number: int | None = None, line: str | None = None) -> str:
        """What is right where a line, the first one of the table or another, is a comment; "" where none can be."""
        start = (self.head if line is None else line)[:1]
        if start not in COMMENTS or self.writing.comment is not None:
            return ""
        number = self.before + 1 if number is None else number
        return f'; where line {number} is a comment, data.comment = "{start}" leaves such lines out'


class Cells:
    """The cells of column k of a table as they come, as numbers or, from the first one that is none on, as texts."""

    def __init__(self, table: TextTable, k: int, any_text: bool) -> None:
        self.table = table
        self.k = k
        self.any_text = any_text
        self.texts: dict[str, int] | None = {} if any_text else None
        self.known = any_text  # whether an entry that is not missing has said what the column holds
        self.codes = dict.fromkeys(table.writing.missing, MISSING)  # of texts as they were written
        self.parts: list[Array] = []

    def add(self, cells: list[str], lines: list[int]) -> None:
        """Convert the next cells, which are in these lines; UserError for the first one that is wrong."""
        lacks = self.table.writing.lacks
        if not self.known:
            first = next((cell.strip() for cell in cells if not lacks(cell.strip())), None)
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
            if self.table.writing.plain() and "_" not in "".join(cells):  # float takes 18_25, an age group, as 1825
                return np.fromiter(map(float, cells), np.float64, len(cells))
        return np.array([self.number(cell.strip(), line) for cell, line in zip(cells, lines, strict=True)])

    def number(self, cell: str, line: int) -> float:
        writing = self.table.writing
        if cell in writing.missing:
            return np.nan
        with suppress(ValueError):
            value = writing.value(cell)
            return np.nan if value in writing.lost else value
        self.check(cell, line)
        raise self.wrong(
            f"{brief(cell)} {{}} is not a number, as the first entry is: texts that stand for missing values are "
            "named in data.missing_texts, columns of categories in data.categories",
            line,
        )

    def code(self, cell: str, line: int) -> int:
        assert self.texts is not None
        if self.table.writing.lacks(cell):
            return MISSING
        if len(cell) > LONGEST_TEXT:
            raise self.wrong(f"a text of {len(cell):,} characters {{}}: it may have {LONGEST_TEXT:,}", line)
        if cell not in self.texts and not self.any_text:
            if self.table.writing.number(cell):
                raise self.wrong(
                    f"{cell!r} {{}} is a number, but the first entry is text: all must be numbers, or all text; for a "
                    f"feature data.categories = [{toml_value(self.table.names[self.k])}] takes both",
                    line,
                )
            self.check(cell, line)
        if not cell.isprintable():  # as some blanks between groups of digits
            raise self.wrong(f"{brief(cell)} {{}} has characters that cannot be printed", line)
        return self.texts.setdefault(cell, len(self.texts))

    def check(self, cell: str, line: int) -> None:
        """UserError for a text that may be a number of another way to write it, with the options that read it."""
        if OTHER_MARK.fullmatch(cell):
            raise self.wrong(
                f'{cell!r} {{}} has semicolons between numbers with a decimal comma: data.decimal = ","', line
            )
        others = self.table.writing.others(cell)
        if not others:
            return
        if cell.isprintable():
            others += [f"for a feature, data.categories = [{toml_value(self.table.names[self.k])}] keeps it as a text"]
        raise self.wrong(f"{cell!r} {{}} is not a number as the file is read: {'; '.join(others)}", line)

    def wrong(self, sentence: str, line: int) -> UserError:
        """The error for a cell of this column, with where it stands in place of {}."""
        sentence = sentence.replace("{}", f"in {self.table.called(self.k)}")
        return UserError(f"{self.table.path}, line {line}: {sentence}{self.table.comments()}")

    def column(self) -> Column:
        kind = np.float64 if self.texts is None else np.int64
        parts = [np.zeros(0, kind), *self.parts]
        if self.texts is None:
            return Column(np.concatenate(parts))
        parts = [np.where(np.isnan(part), MISSING, part).astype(np.int64) for part in parts]  # missing before a text
        return Column(np.concatenate(parts), tuple(self.texts))


def brief(cell: str) -> str:
    return repr(cell if len(cell) <= 60 else f"{cell[:60]}…")
