"""Features of a table: missing cells, numbers as they are, and categories as columns of zeros and ones."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError, format_count
from mpifed.core.memory import bytes_of_shape, check_memory
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import TableFeature
from mpifed.data.formats.lines import group_equal_numbers, is_number
from mpifed.data.labels import abridge, format_exactly
from mpifed.data.pool import Pool, PoolSamples
from mpifed.data.tables.table import DataTable, TableColumn

MANY = 20  # levels that a column of texts may have in any table
SHARE = 10  # rows for each level, on average, in a table with more levels
ROWS = 1 << 15  # rows examined at a time
DATE = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?([T ].*)?|\d\d?[-/.]\d\d?[-/.]\d{4}([T ].*)?")


class RowSelection(NamedTuple):
    """Mask of the rows to keep (d,), numbers of missing cells by column, and notes."""

    rows: Array
    missing: dict[int, int]
    notes: tuple[str, ...]


class MissingCells(UserError):
    """Error for missing cells where data.missing does not say what to do.

    ``counts``: missing cells of each column that has any. ``complete``: number of rows, of all ``rows``, without any.
    """

    def __init__(self, sentence: str, counts: dict[str, int], either: Array) -> None:
        super().__init__(sentence)
        self.counts = counts
        self.complete = int((~either).sum())
        self.rows = len(either)


def select_rows(table: DataTable, columns: dict[int, TableColumn], special: Sequence[int], how: str) -> RowSelection:
    """Return the rows to keep, only complete ones with ``how`` = "drop", and the numbers of missing cells.

    Raises UserError for missing cells if ``how`` is "refuse", or if cells of ``special`` columns would be filled.
    """
    masks = {k: mask for k, column in columns.items() if (mask := column.missing()).any()}
    d = len(next(iter(columns.values())).values)
    if not masks:
        return RowSelection(np.ones(d, bool), {}, ())
    counts = {k: int(mask.sum()) for k, mask in masks.items()}
    by_name = {table.name(k): count for k, count in counts.items()}
    named = ", ".join(abridge([f"{name!r} ({count:,})" for name, count in by_name.items()]))
    cells = format_count(sum(counts.values()), "missing cell")
    either = np.logical_or.reduce(list(masks.values()))
    if how == "refuse":
        k, first = next((k, int(mask.argmax())) for k, mask in masks.items())
        said = f"{table.source} has {cells}: {named}, the first one in {table.cite(k)} in {table.cite_row(first)}"
        right = 'data.missing = "drop" leaves out such rows, "mean" or "client-mean" fill in means'
        raise MissingCells(f"{said}; {right}", by_name, either)
    if how == "drop":
        if either.all():
            raise UserError(f"every row of {table.source} has a missing cell: {named}; data.ignore leaves columns out")
        return RowSelection(~either, counts, (f"{int(either.sum()):,} of {d:,} rows are left out: {cells} in {named}",))
    empty = next((k for k, count in counts.items() if count == d), None)
    if empty is not None:
        shown = toml_value(table.names[empty]) if table.header else str(empty)
        raise UserError(
            f"{table.cite(empty)} of {table.source} has no known cell: data.ignore = [{shown}] leaves it out"
        )
    for k in special:
        if k in masks:
            where = table.cite_row(int(masks[k].argmax()))
            raise UserError(
                f"{table.source} has missing cells in {table.cite(k)}, the first one in {where}: "
                'it is no feature, which a mean could fill; data.missing = "drop" leaves out such rows'
            )
    whose = "the client's training samples" if how == "client-mean" else "all training samples"
    note = f"{cells} in {int(either.sum()):,} of {d:,} rows hold the mean of {whose}: {named}"
    return RowSelection(np.ones(d, bool), counts, (note,))


def fill(pool: Pool, names: Sequence[str], by_client: bool) -> None:
    """Replace NaN in X by means of the training samples, in place: of all or, where it has any, of the client."""
    incomplete: Array = np.flatnonzero(np.isnan(pool.train.X).any(axis=0))
    for part in pool.samples.values():
        if part.X is not pool.train.X:
            incomplete = np.union1d(incomplete, np.flatnonzero(np.isnan(part.X).any(axis=0)))
    rows, owner = list_rows(pool.train)
    for j in incomplete.tolist():
        values = pool.train.X[rows, j]
        present = ~np.isnan(values)
        if not present.any():
            raise UserError(
                f"{names[j]!r} of {pool.source} has no training sample in which it is known: name it in data.ignore"
            )
        # Means of training samples alone fill the others, too: training must not see test samples through a mean.
        means = np.full(pool.m, values[present].mean())
        if by_client:
            counts = np.bincount(owner[present], minlength=pool.m)
            sums = np.bincount(owner[present], weights=values[present], minlength=pool.m)
            means = np.where(counts > 0, sums / np.maximum(counts, 1), means)
        for samples in pool.samples.values():
            rows_here, owner_here = list_rows(samples)
            unknown = np.isnan(samples.X[rows_here, j])
            samples.X[rows_here[unknown], j] = means[owner_here[unknown]]


def list_rows(samples: PoolSamples) -> tuple[Array, Array]:
    """Return the numbers of the rows of samples, client by client, and the client of each."""
    owner = np.repeat(np.arange(len(samples.sizes)), samples.sizes)
    return np.arange(len(owner)) if samples.order is None else samples.order, owner


class CodedTable(NamedTuple):
    """The features X (d, n) of a table, NaN where they are missing, with their descriptions and notes."""

    X: Array
    features: tuple[TableFeature, ...]
    notes: tuple[str, ...]


def code_columns(
    table: DataTable, columns: dict[int, TableColumn], listed: Sequence[int], levels: str, missing: dict[int, int]
) -> CodedTable:
    """Return the features of columns by number, in which texts and the ``listed`` columns are categories.

    The levels of a category are those of the full table, in the table's own order or sorted. Each level has a column
    that is 1 where a row has it, except the first with levels = "drop-first". ``missing``: number of cells by column.
    """
    parts: list[tuple[TableColumn, Array | None]] = []
    features: list[TableFeature] = []
    alone = []
    merged: list[str] = []
    first = 0
    categories = set(listed)
    for k, column in columns.items():
        name = table.name(k)
        cells = missing.get(k, 0)
        category = column.category or k in categories
        if column.texts is None and not category:
            features.append(TableFeature(name, (), None, first, 1, cells))
            parts.append((column, None))
            first += 1
            continue
        texts, codes = find_levels(table, k, column, category)
        if column.texts is not None and not column.ordered:
            merged += [f"{pair} of {name!r}" for pair in group_equal_numbers(column.distinct()[0].tolist())]
        dropped = texts[0] if texts and levels == "drop-first" else None  # "" is a level, too
        coded = texts if dropped is None else texts[1:]
        alone += [f"{name!r} ({texts[0]!r})"] if len(texts) == 1 else []
        features.append(TableFeature(name, tuple(coded), dropped, first, len(coded), cells))
        # Codes below 0 set no column: −2 or −3 of a missing cell, and −1, which the dropped level gets in place of 0.
        parts.append((column, codes - (dropped is not None)))
        first += len(coded)
    notes = [f"one level in all rows: {', '.join(alone)}"] if alone else []
    notes += [f"one level, for they are one number: {', '.join(abridge(merged))}"] if merged else []
    return CodedTable(build_matrix(table, parts, features, first), tuple(features), tuple(notes))


def build_matrix(
    table: DataTable, parts: list[tuple[TableColumn, Array | None]], features: list[TableFeature], n: int
) -> Array:
    """Return X (d, n) of the columns, each with the codes of its levels if it is a category."""
    types = [np.dtype(np.int8) if codes is not None else column.values.dtype for column, codes in parts]
    masks = [column.missing() for column, _ in parts]
    has_missing = any(mask.any() for mask in masks)
    d = 0 if table.rows_in_use is None else len(table.rows_in_use)
    types += [np.dtype(np.float64)] if has_missing or not types else []
    dtype = np.result_type(*types)
    check_memory(bytes_of_shape((d, n), dtype.itemsize), f"the {d:,} rows and {n:,} features of {table.source}")
    X = np.zeros((d, n), dtype)
    for (column, codes), feature, missing in zip(parts, features, masks, strict=True):
        if codes is None:
            X[:, feature.first] = column.values
            continue
        rows = np.flatnonzero(codes >= 0)
        X[rows, feature.first + codes[rows]] = 1
        if has_missing:
            X[missing, feature.first : feature.first + feature.width] = np.nan
    return X


def find_levels(table: DataTable, k: int, column: TableColumn, listed: bool) -> tuple[list[str], Array]:
    """Return the levels that occur in column k, in order, and the code of each row, −2 where it is missing."""
    missing = column.missing()
    if column.texts is None:
        values, codes = np.unique(column.values[~missing], return_inverse=True)
        all_codes = np.full(len(missing), -2, np.int64)
        all_codes[~missing] = codes
        return format_exactly(values), all_codes
    used = [column.texts[code] for code in np.unique(column.values[~missing])]
    if not listed:
        check_texts(table, k, used, len(missing))
    # As numbers, 1 and 1.0 are one level, and 2 comes before 10.
    if used and not column.ordered and all(map(is_number, used)):
        numbers = np.array([float(text) if is_number(text) else np.nan for text in (*column.texts, "nan")])
        return find_levels(table, k, TableColumn(numbers[column.values]), listed)
    levels = used if column.ordered else sorted(used)
    code_of = {text: code for code, text in enumerate(levels)}
    codes = np.array([*(code_of.get(text, -1) for text in column.texts), -1])
    return levels, np.where(missing, -2, codes[column.values])


def check_texts(table: DataTable, k: int, texts: Sequence[str], d: int) -> None:
    """Raise UserError where the texts in the d rows of column k cannot be the levels of a category."""
    label = f"{table.cite(k)} of {table.source}"
    shown = toml_value(table.names[k]) if table.header else str(k)
    right = f"data.ignore = [{shown}] leaves it out, data.categories = [{shown}] makes a level of each"
    if texts and all(DATE.fullmatch(text) for text in texts):
        raise UserError(
            f"{label} holds dates such as {texts[0]!r}: replace them by numbers, such as days since the first; {right}"
        )
    if texts and all(map(is_number, texts)):
        raise UserError(f"{label} holds numbers as texts, such as {texts[0]!r}: convert them to numbers; {right}")
    if len(texts) > max(MANY, d // SHARE):
        raise UserError(f"{label} has {len(texts):,} different texts in {d:,} rows, such as {texts[0]!r}: {right}")


def list_names(features: Sequence[TableFeature]) -> tuple[str, ...]:
    """Return the name of each column of X, such as age or sex=male."""
    return tuple(name for feature in features for name in feature.names())


def note_training(features: Sequence[TableFeature], X: Array, rows: Array) -> tuple[str, ...]:
    """Return notes on the features in the training ``rows`` of X: constant numbers, and levels that no row has."""
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    minimum = np.full(len(features), np.inf)
    dropped = [
        (k, slice(f.first, f.first + f.width)) for k, f in enumerate(features) if f.dropped is not None and f.width
    ]
    for first in range(0, len(rows), ROWS):
        part = X[rows[first : first + ROWS]]
        low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
        for k, levels in dropped:
            minimum[k] = min(minimum[k], part[:, levels].sum(axis=1).min())
    same = [f.name for f in features if not f.category and low[f.first] == high[f.first]]
    notes = [f"constant in the training samples: {', '.join(map(repr, abridge(same)))}"] if same else []
    for k, feature in enumerate(features):
        maxima = high[feature.first : feature.first + feature.width].tolist()
        absent = [name for name, top in zip(feature.names(), maxima, strict=True) if feature.levels and top == 0]
        absent += [f"{feature.name}={feature.dropped}"] if 0 < minimum[k] < np.inf else []
        if absent:
            shown = ", ".join(abridge(absent))
            notes.append(f"no training sample has {shown}, but others do: training says nothing of it")
    return tuple(notes)


def note_row_numbers(features: Sequence[TableFeature], X: Array, source: str) -> tuple[str, ...]:
    """Return a note on each feature of a table that numbers its rows, such as the number of a record."""
    rows = np.arange(len(X))
    columns = [f.first for f in features if not f.category] if len(X) > 2 else []
    return tuple(
        f"feature {j} of {source} (counted from 0) numbers the rows: take the column out of the file, or name it in "
        "data.ignore, if it is no feature"
        for j in columns
        if np.isfinite(X[0, j]) and X[1, j] == X[0, j] + 1 and np.array_equal(X[:, j] - X[0, j], rows)
    )
