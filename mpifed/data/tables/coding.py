"""Columns of a table as features: numbers as they are, categories as columns of zeros and ones."""

import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory, size_of
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import Feature
from mpifed.data.formats.lines import is_number, one_number
from mpifed.data.labels import exact, folded
from mpifed.data.tables.table import Column, Table

MANY = 20  # levels that a column of texts may have in any table; in a long one, a share of its rows
SHARE = 10  # rows a level, at least, on average
ROWS = 1 << 15  # looked at at a time
DATE = re.compile(r"\d{4}[-/.]\d\d?[-/.]\d\d?([T ].*)?|\d\d?[-/.]\d\d?[-/.]\d{4}([T ].*)?")


class Coded(NamedTuple):
    """The features X (d, n) of a table, NaN where they are missing, and what its columns are."""

    X: Array
    features: tuple[Feature, ...]
    notes: tuple[str, ...]


def coded(table: Table, columns: dict[int, Column], listed: Sequence[int], levels: str, lost: dict[int, int]) -> Coded:
    """X of the columns by number; texts and the ``listed`` columns are categories.

    The levels of a category are those of the whole table, in the table's own order or sorted. Each gets a column that
    is 1 where a row has it, but for the first one with levels = "drop-first". ``lost``: how many cells of a column were
    missing.
    """
    parts: list[tuple[Column, Array | None]] = []
    features: list[Feature] = []
    alone = []
    merged: list[str] = []
    first = 0
    called = set(listed)
    for k, column in columns.items():
        name = table.name(k)
        cells = lost.get(k, 0)
        category = column.category or k in called
        if column.texts is None and not category:
            features.append(Feature(name, (), None, first, 1, cells))
            parts.append((column, None))
            first += 1
            continue
        texts, codes = levels_of(table, k, column, category)
        if column.texts is not None and not column.ordered:
            merged += [f"{pair} of {name!r}" for pair in one_number(column.distinct()[0].tolist())]
        dropped = texts[0] if texts and levels == "drop-first" else None  # "" is a level, too
        kept = texts if dropped is None else texts[1:]
        alone += [f"{name!r} ({texts[0]!r})"] if len(texts) == 1 else []
        features.append(Feature(name, tuple(kept), dropped, first, len(kept), cells))
        # A missing cell has −2, which stays below 0: of a dropped level, 0 becomes −1, and neither sets a column.
        parts.append((column, codes - (dropped is not None)))
        first += len(kept)
    notes = [f"one level in all rows: {', '.join(alone)}"] if alone else []
    notes += [f"one level, for they are one number: {', '.join(folded(merged))}"] if merged else []
    return Coded(matrix(table, parts, features, first), tuple(features), tuple(notes))


def matrix(table: Table, parts: list[tuple[Column, Array | None]], features: list[Feature], n: int) -> Array:
    kinds = [np.dtype(np.int8) if codes is not None else column.values.dtype for column, codes in parts]
    masks = [column.missing() for column, _ in parts]
    lost = any(mask.any() for mask in masks)
    d = 0 if table.kept is None else len(table.kept)
    kinds += [np.dtype(np.float64)] if lost or not kinds else []
    kind = np.result_type(*kinds)
    check_memory(size_of((d, n), kind.itemsize), f"the {d:,} rows and {n:,} features of {table.source}")
    X = np.zeros((d, n), kind)
    for (column, codes), feature, missing in zip(parts, features, masks, strict=True):
        if codes is None:
            X[:, feature.first] = column.values
            continue
        rows = np.flatnonzero(codes >= 0)
        X[rows, feature.first + codes[rows]] = 1
        if lost:
            X[missing, feature.first : feature.first + feature.width] = np.nan
    return X


def levels_of(table: Table, k: int, column: Column, listed: bool) -> tuple[list[str], Array]:
    """The levels that occur in column k, in order, and the code of each row, below 0 where it is missing."""
    missing = column.missing()
    if column.texts is None:
        values, codes = np.unique(column.values[~missing], return_inverse=True)
        found = np.full(len(missing), -2, np.int64)
        found[~missing] = codes
        return exact(values), found
    used = [column.texts[code] for code in np.unique(column.values[~missing])]
    if not listed:
        check_texts(table, k, used, len(missing))
    # As numbers, 1 and 1.0 are one level, and 2 comes before 10.
    if used and not column.ordered and all(map(is_number, used)):
        numbers = np.array([float(text) if is_number(text) else np.nan for text in (*column.texts, "nan")])
        return levels_of(table, k, Column(numbers[column.values]), listed)
    levels = used if column.ordered else sorted(used)
    place = {text: code for code, text in enumerate(levels)}
    codes = np.array([*(place.get(text, -1) for text in column.texts), -1])
    return levels, np.where(missing, -2, codes[column.values])


def check_texts(table: Table, k: int, texts: Sequence[str], d: int) -> None:
    """UserError where the texts in the d rows of column k are not the levels of a category."""
    what = f"{table.called(k)} of {table.source}"
    shown = toml_value(table.names[k]) if table.header else str(k)
    right = f"data.ignore = [{shown}] leaves it out, data.categories = [{shown}] makes a level of each"
    if texts and all(DATE.fullmatch(text) for text in texts):
        raise UserError(
            f"{what} holds dates such as {texts[0]!r}: replace them by numbers, such as days since the first; {right}"
        )
    if texts and all(map(is_number, texts)):
        raise UserError(f"{what} holds numbers as texts, such as {texts[0]!r}: convert them to numbers; {right}")
    if len(texts) > max(MANY, d // SHARE):
        raise UserError(f"{what} has {len(texts):,} different texts in {d:,} rows, such as {texts[0]!r}: {right}")


def names_of(features: Sequence[Feature]) -> tuple[str, ...]:
    """The name of each column of X: age, sex=male."""
    return tuple(name for feature in features for name in feature.names())


def train_notes(features: Sequence[Feature], X: Array, rows: Array) -> tuple[str, ...]:
    """Sentences about the features in the training ``rows`` of X: constant numbers, and levels that no row has."""
    low, high = np.full(X.shape[1], np.inf), np.full(X.shape[1], -np.inf)
    least = np.full(len(features), np.inf)
    dropped = [
        (k, slice(f.first, f.first + f.width)) for k, f in enumerate(features) if f.dropped is not None and f.width
    ]
    for first in range(0, len(rows), ROWS):
        part = X[rows[first : first + ROWS]]
        low, high = np.minimum(low, part.min(axis=0)), np.maximum(high, part.max(axis=0))
        for k, own in dropped:
            least[k] = min(least[k], part[:, own].sum(axis=1).min())
    same = [f.name for f in features if not f.category and low[f.first] == high[f.first]]
    notes = [f"constant in the training samples: {', '.join(map(repr, folded(same)))}"] if same else []
    for k, feature in enumerate(features):
        most = high[feature.first : feature.first + feature.width].tolist()
        absent = [name for name, top in zip(feature.names(), most, strict=True) if feature.levels and top == 0]
        absent += [f"{feature.name}={feature.dropped}"] if 0 < least[k] < np.inf else []
        if absent:
            shown = ", ".join(folded(absent))
            notes.append(f"no training sample has {shown}, but test samples do: training says nothing of it")
    return tuple(notes)


def numbering(features: Sequence[Feature], X: Array, source: str) -> tuple[str, ...]:
    """A sentence for each feature of a table that counts its rows, as the number of a record does."""
    rows = np.arange(len(X))
    columns = [f.first for f in features if not f.category] if len(X) > 2 else []
    return tuple(
        f"feature {j} of {source} (counted from 0) numbers the rows: take the column out of the file, or name it in "
        "data.ignore, if it is no feature"
        for j in columns
        if np.isfinite(X[0, j]) and X[1, j] == X[0, j] + 1 and np.array_equal(X[:, j] - X[0, j], rows)
    )
