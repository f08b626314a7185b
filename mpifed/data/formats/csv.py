"""Reader of CSV files, which are dense tables: text, plain, gzip or bzip2."""

import warnings
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import LONGEST_TEXT
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.formats.lines import is_number, lines_of

Column = int | str | None  # by name, by number from 0, or by a negative number from the end


class Layout(NamedTuple):
    """How a table is written: the mark between cells, whether the first line has names, and what columns hold."""

    mark: str
    names: list[str]  # of the columns; the cells of the first line where there is no header
    header: bool
    special: dict[str, int]  # "y" and, where there is one, "client" -> column
    words: list[int]  # special columns that hold text


def read_csv(path: Path, target: Column, client: Column) -> dict[str, Array]:
    """X (d, n), y (d,) and, with ``client``, client (d,) of a table with commas, semicolons or tabs.

    A first line with words is a header. ``target`` is the column of y (None: the last one). ``client`` is the column
    that says which client a row belongs to. These two hold numbers or, where the first one is not a number, text.
    """
    layout = layout_of(path, target, client)
    texts: dict[int, dict[str, int]] = {column: {} for column in layout.words}
    with warnings.catch_warnings(action="ignore", category=UserWarning):  # of an empty file; the caller raises an error
        try:
            table = np.loadtxt(
                lines_of(path),
                delimiter=layout.mark,
                skiprows=int(layout.header),
                ndmin=2,
                quotechar='"',
                comments=None,
                encoding="utf-8-sig",
                converters={column: partial(code, found) for column, found in texts.items()},
            ).reshape(-1, len(layout.names))
        except ValueError:
            raise_first_error(path, layout)
            raise
    arrays = {"X": np.delete(table, list(layout.special.values()), axis=1)}
    for name, column in layout.special.items():
        values = table[:, column]
        arrays[name] = np.array(list(texts[column]))[values.astype(int)] if column in texts else values
    return arrays


def layout_of(path: Path, target: Column, client: Column) -> Layout:
    """The layout of a table, from its first two lines with text."""
    lines = (line.decode("utf-8-sig", errors="replace") for line in lines_of(path))
    head = next(lines, "")
    if not head:
        raise UserError(f"{path} is empty")
    mark = max(",;\t", key=head.count)
    names = cells_of(head, mark)
    second = next((cells_of(line, mark) for line in lines if line.strip()), None)
    header = not all(map(is_number, names))
    special = special_columns(path, names, header, target, client)
    if header and not (isinstance(target, str) or isinstance(client, str)):
        header = is_header(names, second, list(special.values()))
    first = second if header else names
    words = [column for column in special.values() if first and column < len(first) and not is_number(first[column])]
    return Layout(mark, names, header, special, words)


def cells_of(line: str, mark: str) -> list[str]:
    """The cells of a line, without blanks and quotation marks around them."""
    return [cell.strip().strip("\"'") for cell in line.strip("\r\n").split(mark)]


def is_header(names: Sequence[str], second: Sequence[str] | None, special: Sequence[int]) -> bool:
    """Whether a first line with words has names: not where its only words are labels, as in the ``second`` line."""
    features = [name for k, name in enumerate(names) if k not in special]
    if not all(map(is_number, features)) or second is None or len(second) != len(names):
        return True
    numbered = [float(name) - float(features[0]) for name in features] == list(range(len(features)))
    counted = numbered and len(features) > 1 and float(features[0]) in (0, 1)
    return counted or any(is_number(second[k]) for k in special if not is_number(names[k]))


def code(found: dict[str, int], cell: str) -> float:
    """The number of a text in ``found``, which has them as they came; ValueError where it is empty or a number."""
    text = cell.strip()
    if not text or len(text) > LONGEST_TEXT or is_number(text):
        raise ValueError
    return found.setdefault(text, len(found))


def raise_first_error(path: Path, layout: Layout) -> None:
    """UserError with the first line that is wrong; numpy's own row numbers depend on the error."""
    for number, line in enumerate(lines_of(path), 1):
        cells = [cell.strip().strip('"') for cell in line.decode("utf-8-sig", errors="replace").split(layout.mark)]
        if number <= layout.header or cells == [""]:
            continue
        if len(cells) != len(layout.names):
            raise UserError(f"{path}, line {number}: {len(cells)} columns, but the first line has {len(layout.names)}")
        for column, cell in enumerate(cells):
            where = f"in the column {layout.names[column]!r}" if layout.header else f"in column {column}"
            if wrong := wrong_in(cell, column, layout, where):
                raise UserError(f"{path}, line {number}: {wrong}")


def wrong_in(cell: str, column: int, layout: Layout, where: str) -> str:
    """What is wrong with a cell, or nothing."""
    if len(cell) > LONGEST_TEXT:
        return f"a text of {len(cell):,} characters {where}: it may have {LONGEST_TEXT:,}"
    if column not in layout.words:
        also = "" if column in layout.special.values() else ", and features must be numbers"
        return "" if is_number(cell) else f"{cell!r} {where} is not a number{also}"
    if is_number(cell):
        return f"{cell!r} {where} is a number, but the first entry is text: all must be numbers, or all text"
    return "" if cell.strip() else f"there is no text {where}"


def special_columns(path: Path, names: Sequence[str], header: bool, target: Column, client: Column) -> dict[str, int]:
    """The numbers of the columns of y (None: the last one) and, where one is wanted, of client."""
    found = {"y": column_of(path, names, header, "target", -1 if target is None else target)}
    if client is not None:
        found["client"] = column_of(path, names, header, "client", client)
        if found["client"] == found["y"]:
            right = "data.target must be another one" if target is None else "they must be two"
            raise UserError(f"data.client = {toml_value(client)} is the column of the labels of {path}, too: {right}")
    return found


def column_of(path: Path, names: Sequence[str], header: bool, key: str, wanted: int | str) -> int:
    """The number of the column that data.``key`` names; UserError where it does not exist."""
    if isinstance(wanted, str):
        if not header or wanted not in names:
            found = "columns " + ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
            raise UserError(
                f'data.{key} = "{wanted}" is not a column of {path}, which has {found if header else "no header"}'
            )
        return list(names).index(wanted)
    if not -len(names) <= wanted < len(names):
        found = f"{len(names)} columns, counted from 0"
        raise UserError(f"data.{key} = {wanted} is not a column of {path}, which has {found}")
    return wanted % len(names)
