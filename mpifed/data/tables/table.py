"""Tables whose columns have names: read from files or data frames, below one another or matched by a key."""

import difflib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.arrays import starts_of
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.inferred import Inferred
from mpifed.data.labels import exact

Key = int | str  # a column by its name, by its number from 0, or by a negative number from the end
MISSING = -1  # the code of a text that is missing
UNNAMED = ("", "Unnamed: 0")  # what a first column without a name is called, in a file and by pandas


class Column(NamedTuple):
    """Numbers (d,), NaN where they are missing; or, with ``texts``, codes (d,) of these, -1 where they are missing.

    ``category``: whether the table itself calls its values levels; ``ordered``: whether the order of ``texts`` is one
    that the table gives them.
    """

    values: Array
    texts: tuple[str, ...] | None = None
    category: bool = False
    ordered: bool = False

    def missing(self) -> Array:
        if self.texts is not None:
            return self.values == MISSING
        return np.isnan(self.values) if self.values.dtype.kind == "f" else np.zeros(len(self.values), bool)

    def rows(self, rows: Array) -> "Column":
        return self._replace(values=self.values[rows])

    def plain(self) -> Array:
        """Numbers, or texts as an array of these; "" where one is missing."""
        return self.values if self.texts is None else np.array([*self.texts, ""])[self.values]

    def shown(self) -> Array:
        """Texts; of numbers 7 in place of 7.0."""
        return self.plain() if self.texts is not None else np.array(exact(self.values))

    def distinct(self) -> tuple[Array, Array]:
        """The values that are not missing, sorted, and the place of each row's among these; −1 where it is missing."""
        known = ~self.missing()
        index = np.full(len(known), -1, np.int64)
        found, index[known] = np.unique(self.values[known], return_inverse=True)
        if self.texts is None:
            return found, index
        # The texts that occur are sorted, not those of all rows.
        names, place = np.unique([self.texts[code] for code in found], return_inverse=True)
        return names, np.append(place, -1)[index]


def in_order(levels: Sequence[Any], codes: Array) -> Column:
    """A category whose levels have an order, of the number of each row's level, below 0 where it is missing."""
    numbers = bool(levels) and all(type(level) in (int, float) for level in levels)
    names = exact(np.array(levels)) if numbers else [str(level).strip() for level in levels]
    place: dict[str, int] = {}
    stripped = [place.setdefault(name, len(place)) for name in names]
    return Column(np.array([*stripped, MISSING], np.int64)[codes], tuple(place), category=True, ordered=True)


class Table:
    """A table of which columns are read when they are asked for.

    ``source``: what error messages call it. ``names``: of its columns. ``header``: whether they are its own; otherwise
    they are numbers.
    """

    key = ""  # the column by which its two parts were matched
    written = False  # whether cells are texts, of which some are numbers; otherwise a column has a type
    inferred: tuple[Inferred, ...] = ()  # what its cells say of all of it

    def __init__(self, source: str, names: Sequence[str], header: bool = True) -> None:
        if not names:
            raise UserError(f"{source} has no columns")
        self.source = source
        self.names = list(names) if header else [str(k) for k in range(len(names))]
        self.header = header
        self.kept: Array | None = None  # the rows in use after some have been left out
        # The first column without a name is what pandas and R write for the names of rows, which are no feature.
        self.row_names = {0} if header and self.names[0] in UNNAMED else set()
        self.places: dict[str, int] = {}
        for k, name in enumerate(self.names):
            if name in self.places:
                raise UserError(f"{source} has several columns {name!r}: each needs a name of its own")
            self.places[name] = k

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[Column]:
        """The columns of these numbers; those of ``as_texts`` may hold numbers and texts, and stay as written."""
        raise NotImplementedError

    def unmatched_cells(self, k: int) -> Column | None:
        """The cells of column k in rows that read() left out."""
        return None

    def row(self, k: int) -> str:
        """What to call the row k of those in use in a message, after read()."""
        return self.place(k if self.kept is None else int(self.kept[k]))

    def place(self, k: int) -> str:
        return f"row {k} (rows are counted from 0)"

    def notes(self) -> list[str]:
        """Sentences about what was read."""
        return []

    def last(self) -> int:
        """The column of labels where none is named."""
        return max((k for k in range(len(self.names)) if k not in self.row_names), default=0)

    def owners(self) -> tuple[Array, list[str]] | None:
        """Whose each row in use is, and the file of each client, where a table has several files."""
        return None

    def called(self, k: int) -> str:
        """What to call column k in a message."""
        return f"the column {self.names[k]!r}" if self.header else f"column {k}"

    def name(self, k: int) -> str:
        """What to call column k among features."""
        return self.names[k] if self.header else f"column {k}"

    def find(self, key: str, wanted: Key) -> int:
        """The number of the column that data.``key`` names; UserError where it does not exist."""
        if isinstance(wanted, int):
            if not -len(self.names) <= wanted < len(self.names):
                found = f"{len(self.names)} columns, counted from 0"
                raise UserError(f"data.{key} = {wanted} is not a column of {self.source}, which has {found}")
            return wanted % len(self.names)
        if wanted in self.places:
            return self.places[wanted]
        found = "columns " + ", ".join(self.names[:8]) + (" …" if len(self.names) > 8 else "")
        near = difflib.get_close_matches(wanted, self.names, 1) if self.header else []
        raise UserError(
            f"data.{key} = {toml_value(wanted)} is not a column of {self.source}, which has "
            + (found if self.header else "no header: name columns by their numbers from 0")
            + (f"; did you mean {near[0]!r}?" if near else "")
        )


class Stacked(Table):
    """Tables with the same columns, one below the other."""

    def __init__(self, parts: Sequence[Table]) -> None:
        first = parts[0]
        for part in parts[1:]:
            if (part.names, part.header) != (first.names, first.header):
                raise UserError(
                    f"files of one table have the same columns: unlike {first.source}, {part.source} has "
                    + difference(first.names, part.names)
                )
        super().__init__(f"{first.source} and {len(parts) - 1} more", first.names, first.header)
        self.parts = parts
        self.row_names = first.row_names
        self.written = all(part.written for part in parts)
        self.sizes = np.zeros(len(parts), np.int64)

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[Column]:
        found = [part.read(wanted, as_texts) for part in self.parts]
        self.inferred = tuple([told for part in self.parts for told in part.inferred])
        self.sizes = np.array([len(columns[0].values) for columns in found])
        return [self.joined(k, columns) for k, columns in zip(wanted, zip(*found, strict=True), strict=True)]

    def joined(self, k: int, columns: Sequence[Column]) -> Column:
        """One column of those of the parts. UserError where some have texts and others numbers."""
        known = [column for column in columns if not column.missing().all()]
        kinds = {column.texts is None for column in known}
        if len(kinds) > 1:
            raise UserError(
                f"{self.called(k)} holds numbers in some of the files {self.source}, and texts in others: for a "
                f"feature data.categories = [{toml_value(self.names[k])}] takes both"
            )
        category = any(column.category for column in columns)
        # A part in which nothing is known may be of either kind.
        if False not in kinds:
            values = [c.values if c.texts is None else np.full(len(c.values), np.nan) for c in columns]
            return Column(np.concatenate(values), category=category)
        texts = tuple(dict.fromkeys(text for column in known for text in column.texts or ()))
        place = {text: code for code, text in enumerate(texts)}
        parts = []
        for column in columns:
            # The last code is that of missing cells, -1: an index from the end finds it.
            codes = np.array([*(place[text] for text in column.texts or ()), MISSING])
            parts.append(codes[column.values if column.texts is not None else np.full(len(column.values), MISSING)])
        # An order that all parts agree on: each has its own texts in that of all.
        places = [[place[text] for text in column.texts or ()] for column in known]
        ordered = all(column.ordered for column in known) and all(own == sorted(own) for own in places)
        return Column(np.concatenate(parts), texts, category, ordered)

    def place(self, k: int) -> str:
        part = int(np.searchsorted(starts_of(self.sizes), k, side="right")) - 1
        return f"{self.parts[part].place(k - int(starts_of(self.sizes)[part]))} of {self.parts[part].source}"

    def owners(self) -> tuple[Array, list[str]]:
        return np.repeat(np.arange(len(self.parts)), self.sizes)[self.kept], [part.source for part in self.parts]


def difference(names: Sequence[str], others: Sequence[str]) -> str:
    lacking = [name for name in names if name not in others]
    if lacking:
        return f"no column {lacking[0]!r}"
    more = [name for name in others if name not in names]
    return f"also a column {more[0]!r}" if more else "them in another order"


class Matched(Table):
    """A table with the columns of ``other`` beside its own, matched by the one column that both have.

    ``unmatched``: how many rows of ``table`` the other one lacks; they are left out.
    """

    def __init__(self, table: Table, other: Table) -> None:
        own, others = (
            [name for k, name in enumerate(one.names) if k not in one.row_names] if one.header else []
            for one in (table, other)
        )
        common = [name for name in own if name in set(others)]
        if len(common) != 1:
            found = f"they share {', '.join(map(repr, common))}" if common else "they share none"
            raise UserError(
                f"{other.source} is matched with {table.source} by one column of the same name, but {found}"
            )
        super().__init__(table.source, [*table.names, *(name for name in others if name != common[0])])
        self.key = common[0]
        self.row_names = table.row_names
        self.written = table.written and other.written
        self.table = table
        self.other = other
        self.left: dict[int, Column] = {}
        self.found = np.zeros(0, np.int64)
        self.unmatched = 0

    def read(self, wanted: Sequence[int], as_texts: Sequence[int]) -> list[Column]:
        own = len(self.table.names)
        mine = [k for k in wanted if k < own]
        keys = [table.places[self.key] for table in (self.table, self.other)]
        others = {k: self.other.places[self.names[k]] for k in wanted if k >= own}
        left = self.table.read([*mine, keys[0]], [*(k for k in as_texts if k < own), keys[0]])
        right = self.other.read([*others.values(), keys[1]], [*(others[k] for k in as_texts if k >= own), keys[1]])
        self.inferred = (*self.table.inferred, *self.other.inferred)
        at = self.match(left[-1], right[-1])
        self.found = np.flatnonzero(at >= 0)
        self.unmatched = len(at) - len(self.found)
        self.left = {k: column.rows(np.flatnonzero(at < 0)) for k, column in zip(mine, left, strict=False)}
        found = {k: column.rows(self.found) for k, column in zip(mine, left, strict=False)}
        found |= {k: column.rows(at[self.found]) for k, column in zip(others, right, strict=False)}
        return [found[k] for k in wanted]

    def unmatched_cells(self, k: int) -> Column | None:
        return self.left.get(k)

    def notes(self) -> list[str]:
        lacking = f"{self.unmatched:,} rows of {self.source} are left out, which {self.other.source} lacks"
        return [lacking] if self.unmatched else []

    def last(self) -> int:
        # Of the table itself, not of what was matched to it, which is often a register of the clients.
        return self.table.last()

    def owners(self) -> tuple[Array, list[str]] | None:
        self.table.kept = self.found[self.kept]
        return self.table.owners()

    def match(self, mine: Column, theirs: Column) -> Array:
        """The row of the other table for each row, -1 where there is none. UserError where there are several."""
        names = theirs.shown()
        order = np.argsort(names, kind="stable")
        order = order[~theirs.missing()[order]]  # a missing key is that of no row
        rising = names[order]
        twice = np.flatnonzero(rising[1:] == rising[:-1])
        if twice.size:
            raise UserError(
                f"{self.other.source} has several rows with {self.key} = {str(rising[twice[0]])!r}: it must have one"
            )
        wanted = mine.shown()
        at = np.searchsorted(rising, wanted)
        same = np.append(rising, "")[at] == wanted
        same &= ~mine.missing()
        if not same.any():
            raise UserError(
                f"no row of {self.table.source} has a row in {self.other.source} with the same {self.key!r}"
            )
        return np.where(same, np.append(order, -1)[at], -1)

    def place(self, k: int) -> str:
        return self.table.place(int(self.found[k]))
