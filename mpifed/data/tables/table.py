"""Tables with named columns, read from files or data frames, one below the other or matched by a key."""

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.arrays import row_offsets
from mpifed.core.errors import UserError
from mpifed.core.memory import check_text_length
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import Inference
from mpifed.data.labels import format_exactly

ColumnKey = int | str  # a column by its name, by its number from 0, or by a negative number from the end
MISSING = -1  # the code of a text that is missing
DATES = "replace dates and times by numbers, such as days since the first, or name the column in data.ignore"
UNNAMED = ("", "Unnamed: 0")  # names of a first column without a name, in a file and in pandas


class TableColumn(NamedTuple):
    """A column of numbers (d,), NaN where missing, or of codes (d,) of ``texts``, -1 where missing.

    ``category``: whether the table itself declares a category; ``ordered``: whether the table gives ``texts`` an order.
    """

    values: Array
    texts: tuple[str, ...] | None = None
    category: bool = False
    ordered: bool = False

    def missing(self) -> Array:
        """Return the mask (d,) of missing cells."""
        if self.texts is not None:
            return self.values == MISSING
        return np.isnan(self.values) if self.values.dtype.kind == "f" else np.zeros(len(self.values), bool)

    def rows(self, rows: Array) -> "TableColumn":
        return self._replace(values=self.values[rows])

    def decode(self) -> Array:
        """Return the numbers, or the texts with "" where one is missing: (d,)."""
        return self.values if self.texts is None else np.array([*self.texts, ""])[self.values]

    def as_texts(self) -> Array:
        """Return the cells as texts (d,), with 7 for 7.0."""
        return self.decode() if self.texts is not None else np.array(format_exactly(self.values))

    def distinct(self) -> tuple[Array, Array]:
        """Return the distinct values, sorted, and the index (d,) of each row's value, −1 where it is missing."""
        present = ~self.missing()
        index = np.full(len(present), -1, np.int64)
        values, index[present] = np.unique(self.values[present], return_inverse=True)
        if self.texts is None:
            return values, index
        # Sorting the distinct texts is faster than sorting those of all rows.
        texts, position = np.unique([self.texts[code] for code in values], return_inverse=True)
        return texts, np.append(position, -1)[index]


def make_category(levels: Sequence[Any], codes: Array, label: str) -> TableColumn:
    """Return a category with ``levels`` in order, from codes (d,) of these, −1 where missing; errors name ``label``."""
    numbers = bool(levels) and all(type(level) in (int, float) for level in levels)
    names = format_exactly(np.array(levels)) if numbers else [str(level).strip() for level in levels]
    code_of: dict[str, int] = {}
    stripped = [code_of.setdefault(name, len(code_of)) for name in names]
    check_text_length(max(map(len, code_of), default=0), label)
    return TableColumn(np.array([*stripped, MISSING], np.int64)[codes], tuple(code_of), category=True, ordered=True)


class DataTable:
    """Base of tables, which read a column when it is asked for.

    ``source``: name of the table in error messages. ``names``: of its columns. ``header``: whether the table has these
    names; otherwise they are numbers.
    """

    key = ""  # the column by which two tables were matched
    written = False  # whether cells are texts, some of them numbers; otherwise a column has a type
    inferred: tuple[Inference, ...] = ()  # facts inferred from all cells

    def __init__(self, source: str, names: Sequence[str], header: bool = True) -> None:
        if not names:
            raise UserError(f"{source} has no columns")
        self.source = source
        self.names = list(names) if header else [str(k) for k in range(len(names))]
        self.header = header
        self.rows_in_use: Array | None = None  # numbers of the rows in use after some have been left out
        # pandas and R write names of rows, which are no feature, as a first column without a name.
        self.row_names = {0} if header and self.names[0] in UNNAMED else set()
        self.positions: dict[str, int] = {}
        for k, name in enumerate(self.names):
            if name in self.positions:
                raise UserError(f"{source} has several columns {name!r}: each needs a name of its own")
            self.positions[name] = k

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[TableColumn]:
        """Read the columns of these numbers; those of ``as_texts`` may hold numbers and texts, and stay as written."""
        raise NotImplementedError

    def unmatched_cells(self, k: int) -> TableColumn | None:
        """Return the cells of column k in rows that read() left out."""
        return None

    def cite_row(self, k: int) -> str:
        """Return a phrase for row k of those in use, after read()."""
        return self.cite_source_row(k if self.rows_in_use is None else int(self.rows_in_use[k]))

    def cite_source_row(self, k: int) -> str:
        """Return a phrase for row k of the table."""
        return f"row {k} (rows are counted from 0)"

    def notes(self) -> list[str]:
        """Return notes on what was read."""
        return []

    def last(self) -> int:
        """Return the last column, which has the labels by default."""
        return max((k for k in range(len(self.names)) if k not in self.row_names), default=0)

    def owners(self) -> tuple[Array, list[str]] | None:
        """Return the client of each row in use and the file of each client if there are several files, else None."""
        return None

    def cite(self, k: int) -> str:
        """Return a phrase for column k."""
        return f"the column {self.names[k]!r}" if self.header else f"column {k}"

    def name(self, k: int) -> str:
        """Return the name of column k as a feature."""
        return self.names[k] if self.header else f"column {k}"

    def find(self, key: str, wanted: ColumnKey) -> int:
        """Return the number of the column that data.``key`` names; UserError if it does not exist."""
        if isinstance(wanted, int):
            if not -len(self.names) <= wanted < len(self.names):
                columns = f"{len(self.names)} columns, counted from 0"
                raise UserError(f"data.{key} = {wanted} is not a column of {self.source}, which has {columns}")
            return wanted % len(self.names)
        if wanted in self.positions:
            return self.positions[wanted]
        columns = "columns " + ", ".join(self.names[:8]) + (" …" if len(self.names) > 8 else "")
        similar = difflib.get_close_matches(wanted, self.names, 1) if self.header else []
        raise UserError(
            f"data.{key} = {toml_value(wanted)} is not a column of {self.source}, which has "
            + (columns if self.header else "no header: name columns by their numbers from 0")
            + (f"; did you mean {similar[0]!r}?" if similar else "")
        )


class StackedTable(DataTable):
    """Several tables with the same columns, one below the other."""

    def __init__(self, parts: Sequence[DataTable]) -> None:
        first = parts[0]
        for part in parts[1:]:
            if (part.names, part.header) != (first.names, first.header):
                raise UserError(
                    f"files of one table have the same columns: unlike {first.source}, {part.source} has "
                    + describe_difference(first.names, part.names)
                )
        super().__init__(f"{first.source} and {len(parts) - 1} more", first.names, first.header)
        self.parts = parts
        self.row_names = first.row_names
        self.written = all(part.written for part in parts)
        self.sizes = np.zeros(len(parts), np.int64)

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[TableColumn]:
        by_part = [part.read(wanted, as_texts) for part in self.parts]
        self.inferred = tuple([fact for part in self.parts for fact in part.inferred])
        self.sizes = np.array([len(columns[0].values) for columns in by_part])
        return [self.join_columns(k, columns) for k, columns in zip(wanted, zip(*by_part, strict=True), strict=True)]

    def join_columns(self, k: int, columns: Sequence[TableColumn]) -> TableColumn:
        """Return the columns of all parts as one; UserError where some have texts and others numbers."""
        decided = [column for column in columns if not column.missing().all()]
        numeric = {column.texts is None for column in decided}
        if len(numeric) > 1:
            raise UserError(
                f"{self.cite(k)} holds numbers in some of the files {self.source}, and texts in others: for a "
                f"feature data.categories = [{toml_value(self.names[k])}] takes both"
            )
        category = any(column.category for column in columns)
        # A part in which all cells are missing may be numbers or texts.
        if False not in numeric:
            values = [c.values if c.texts is None else np.full(len(c.values), np.nan) for c in columns]
            return TableColumn(np.concatenate(values), category=category)
        texts = tuple(dict.fromkeys(text for column in decided for text in column.texts or ()))
        code_of = {text: code for code, text in enumerate(texts)}
        parts = []
        for column in columns:
            # Missing cells have -1, which as an index finds the last entry.
            codes = np.array([*(code_of[text] for text in column.texts or ()), MISSING])
            parts.append(codes[column.values if column.texts is not None else np.full(len(column.values), MISSING)])
        # Ordered if all parts agree: the texts of each are in the order of all.
        orders = [[code_of[text] for text in column.texts or ()] for column in decided]
        ordered = all(column.ordered for column in decided) and all(order == sorted(order) for order in orders)
        return TableColumn(np.concatenate(parts), texts, category, ordered)

    def cite_source_row(self, k: int) -> str:
        part = int(np.searchsorted(row_offsets(self.sizes), k, side="right")) - 1
        return (
            f"{self.parts[part].cite_source_row(k - int(row_offsets(self.sizes)[part]))} of {self.parts[part].source}"
        )

    def owners(self) -> tuple[Array, list[str]]:
        return np.repeat(np.arange(len(self.parts)), self.sizes)[self.rows_in_use], [part.source for part in self.parts]


def describe_difference(names: Sequence[str], others: Sequence[str]) -> str:
    """Return how the columns ``others`` differ from ``names``, as the object of "has"."""
    missing = [name for name in names if name not in others]
    if missing:
        return f"no column {missing[0]!r}"
    more = [name for name in others if name not in names]
    return f"also a column {more[0]!r}" if more else "them in another order"


class JoinedTable(DataTable):
    """A table beside another one, with rows matched by the one column that both have.

    ``unmatched``: number of rows of ``table`` without a row of ``other``; they are left out.
    """

    def __init__(self, table: DataTable, other: DataTable) -> None:
        mine, others = (
            [name for k, name in enumerate(one.names) if k not in one.row_names] if one.header else []
            for one in (table, other)
        )
        common = [name for name in mine if name in set(others)]
        if len(common) != 1:
            share = f"they share {', '.join(map(repr, common))}" if common else "they share none"
            raise UserError(
                f"{other.source} is matched with {table.source} by one column of the same name, but {share}"
            )
        super().__init__(table.source, [*table.names, *(name for name in others if name != common[0])])
        self.key = common[0]
        self.row_names = table.row_names
        self.written = table.written and other.written
        self.table = table
        self.other = other
        self.unmatched_columns: dict[int, TableColumn] = {}
        self.matched = np.zeros(0, np.int64)
        self.unmatched = 0

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[TableColumn]:
        count = len(self.table.names)
        mine = [k for k in wanted if k < count]
        keys = [table.positions[self.key] for table in (self.table, self.other)]
        others = {k: self.other.positions[self.names[k]] for k in wanted if k >= count}
        left = self.table.read([*mine, keys[0]], [*(k for k in as_texts if k < count), keys[0]])
        right = self.other.read([*others.values(), keys[1]], [*(others[k] for k in as_texts if k >= count), keys[1]])
        self.inferred = (*self.table.inferred, *self.other.inferred)
        at = self.match(left[-1], right[-1])
        self.matched = np.flatnonzero(at >= 0)
        self.unmatched = len(at) - len(self.matched)
        self.unmatched_columns = {k: column.rows(np.flatnonzero(at < 0)) for k, column in zip(mine, left, strict=False)}
        columns = {k: column.rows(self.matched) for k, column in zip(mine, left, strict=False)}
        columns |= {k: column.rows(at[self.matched]) for k, column in zip(others, right, strict=False)}
        return [columns[k] for k in wanted]

    def unmatched_cells(self, k: int) -> TableColumn | None:
        return self.unmatched_columns.get(k)

    def notes(self) -> list[str]:
        note = f"{self.unmatched:,} rows of {self.source} are left out, which {self.other.source} lacks"
        return [note] if self.unmatched else []

    def last(self) -> int:
        # Labels are in the table itself, not in the other one, which is often a register of the clients.
        return self.table.last()

    def owners(self) -> tuple[Array, list[str]] | None:
        self.table.rows_in_use = self.matched[self.rows_in_use]
        return self.table.owners()

    def match(self, mine: TableColumn, theirs: TableColumn) -> Array:
        """Return the row of the other table for each row, -1 if there is none; UserError if there are several."""
        names = theirs.as_texts()
        order = np.argsort(names, kind="stable")
        order = order[~theirs.missing()[order]]  # a missing key matches no row
        rising = names[order]
        twice = np.flatnonzero(rising[1:] == rising[:-1])
        if twice.size:
            raise UserError(
                f"{self.other.source} has several rows with {self.key} = {str(rising[twice[0]])!r}: it must have one"
            )
        wanted = mine.as_texts()
        at = np.searchsorted(rising, wanted)
        same = np.append(rising, "")[at] == wanted
        same &= ~mine.missing()
        if not same.any():
            raise UserError(
                f"no row of {self.table.source} has a row in {self.other.source} with the same {self.key!r}"
            )
        return np.where(same, np.append(order, -1)[at], -1)

    def cite_source_row(self, k: int) -> str:
        return self.table.cite_source_row(int(self.matched[k]))
