"""Cells of a table in which nothing is known: refused, left out with their rows, or filled with a mean."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError, counted
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.labels import folded
from mpifed.data.pool import Pool, Samples
from mpifed.data.tables.table import Column, Table


class Known(NamedTuple):
    """Which rows to keep (d,), how many cells of each column are missing, and notes."""

    rows: Array
    lost: dict[int, int]
    notes: tuple[str, ...]


class MissingCells(UserError):
    """Refused: cells are missing, and data.missing does not say what to do.

    ``counts``: missing cells of each column that has any. ``complete``: how many of all ``rows`` have none.
    """

    def __init__(self, sentence: str, counts: dict[str, int], either: Array) -> None:
        super().__init__(sentence)
        self.counts = counts
        self.complete = int((~either).sum())
        self.rows = len(either)


def known_rows(table: Table, columns: dict[int, Column], special: Sequence[int], how: str) -> Known:
    """The rows to keep and what is missing: "drop" keeps the rows that are complete.

    UserError where cells are missing and ``how`` is "refuse", or where they cannot be filled: those of ``special``.
    """
    masks = {k: mask for k, column in columns.items() if (mask := column.missing()).any()}
    d = len(next(iter(columns.values())).values)
    if not masks:
        return Known(np.ones(d, bool), {}, ())
    counts = {k: int(mask.sum()) for k, mask in masks.items()}
    by_name = {table.name(k): count for k, count in counts.items()}
    named = ", ".join(folded([f"{name!r} ({count:,})" for name, count in by_name.items()]))
    cells = counted(sum(counts.values()), "missing cell")
    either = np.logical_or.reduce(list(masks.values()))
    if how == "refuse":
        k, first = next((k, int(mask.argmax())) for k, mask in masks.items())
        said = f"{table.source} has {cells}: {named}, the first one in {table.called(k)} in {table.row(first)}"
        right = 'data.missing = "drop" leaves out such rows, "mean" or "client-mean" fill in means'
        raise MissingCells(f"{said}; {right}", by_name, either)
    if how == "drop":
        if either.all():
            raise UserError(f"every row of {table.source} has a missing cell: {named}; data.ignore leaves columns out")
        return Known(~either, counts, (f"{int(either.sum()):,} of {d:,} rows are left out: {cells} in {named}",))
    empty = next((k for k, count in counts.items() if count == d), None)
    if empty is not None:
        shown = toml_value(table.names[empty]) if table.header else str(empty)
        raise UserError(
            f"{table.called(empty)} of {table.source} has no known cell: data.ignore = [{shown}] leaves it out"
        )
    for k in special:
        if k in masks:
            where = table.row(int(masks[k].argmax()))
            raise UserError(
                f"{table.source} has missing cells in {table.called(k)}, the first one in {where}: "
                'it is no feature, which a mean could fill; data.missing = "drop" leaves out such rows'
            )
    whose = "the client's training samples" if how == "client-mean" else "all training samples"
    note = f"{cells} in {int(either.sum()):,} of {d:,} rows hold the mean of {whose}: {named}"
    return Known(np.ones(d, bool), counts, (note,))


def fill(pool: Pool, names: Sequence[str], by_client: bool) -> None:
    """Put means of the training samples, of all or of each client, where X has NaN; in place.

    A client of which nothing is known in a column gets the mean of all.
    """
    lost: Array = np.flatnonzero(np.isnan(pool.train.X).any(axis=0))
    if pool.test is not None and pool.test.X is not pool.train.X:
        lost = np.union1d(lost, np.flatnonzero(np.isnan(pool.test.X).any(axis=0)))
    rows, owner = rows_of(pool.train)
    for j in lost.tolist():
        values = pool.train.X[rows, j]
        known = ~np.isnan(values)
        if not known.any():
            raise UserError(
                f"{names[j]!r} of {pool.source} has no training sample in which it is known: name it in data.ignore"
            )
        # Of training samples alone, also where test samples are filled: a mean with test samples in it would let
        # training see them.
        means = np.full(pool.m, values[known].mean())
        if by_client:
            counts = np.bincount(owner[known], minlength=pool.m)
            sums = np.bincount(owner[known], weights=values[known], minlength=pool.m)
            means = np.where(counts > 0, sums / np.maximum(counts, 1), means)
        for samples in filter(None, (pool.train, pool.test)):
            own_rows, own = rows_of(samples)
            unknown = np.isnan(samples.X[own_rows, j])
            samples.X[own_rows[unknown], j] = means[own[unknown]]


def rows_of(samples: Samples) -> tuple[Array, Array]:
    owner = np.repeat(np.arange(len(samples.sizes)), samples.sizes)
    return np.arange(len(owner)) if samples.order is None else samples.order, owner
