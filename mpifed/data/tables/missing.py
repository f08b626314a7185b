"""Missing cells of a table, which are refused, left out with their rows, or filled with a mean."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError, format_count
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.labels import abridge
from mpifed.data.pool import Pool, PoolSamples
from mpifed.data.tables.table import DataTable, TableColumn


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
    if pool.test is not None and pool.test.X is not pool.train.X:
        incomplete = np.union1d(incomplete, np.flatnonzero(np.isnan(pool.test.X).any(axis=0)))
    rows, owner = list_rows(pool.train)
    for j in incomplete.tolist():
        values = pool.train.X[rows, j]
        present = ~np.isnan(values)
        if not present.any():
            raise UserError(
                f"{names[j]!r} of {pool.source} has no training sample in which it is known: name it in data.ignore"
            )
        # Means of training samples alone fill test samples, too: training must not see test samples through a mean.
        means = np.full(pool.m, values[present].mean())
        if by_client:
            counts = np.bincount(owner[present], minlength=pool.m)
            sums = np.bincount(owner[present], weights=values[present], minlength=pool.m)
            means = np.where(counts > 0, sums / np.maximum(counts, 1), means)
        for samples in filter(None, (pool.train, pool.test)):
            rows_here, owner_here = list_rows(samples)
            unknown = np.isnan(samples.X[rows_here, j])
            samples.X[rows_here[unknown], j] = means[owner_here[unknown]]


def list_rows(samples: PoolSamples) -> tuple[Array, Array]:
    """Return the numbers of the rows of samples, client by client, and the client of each."""
    owner = np.repeat(np.arange(len(samples.sizes)), samples.sizes)
    return np.arange(len(owner)) if samples.order is None else samples.order, owner
