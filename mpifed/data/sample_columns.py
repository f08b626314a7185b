"""Weights and offsets that samples bring with them: from columns of a table, arrays of a file, or a Python program."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.arrays import starts_of
from mpifed.core.errors import UserError
from mpifed.core.typing import Array

COLUMNS = {"weight": "weights", "frequency": "frequencies", "offset": "offsets", "exposure": "exposures"}  # of samples
RIGHT = {
    "weight": "a weight is a number above 0: leave out the rows of others",
    "frequency": "a frequency is a whole number from 1, how many samples a row stands for: leave out rows with 0; "
    "data.weight takes numbers that are not whole",
    "offset": "an offset is a finite number",
    "exposure": "an exposure is a number above 0",
}


class SampleColumns(NamedTuple):
    """What the samples of m clients bring with them, client by client: weights and what is added to scores.

    ``names``: which of COLUMNS are there. ``train`` (2, d): weights, 1 where there are none, and offsets, of exposures
    their logarithms, 0 where there are none. ``sizes`` (m,): training samples of each client; ``test`` (2, d) and
    ``sizes_test`` (m,) are the same for test samples, or None.
    """

    names: tuple[str, ...]
    train: Array
    sizes: Array
    test: Array | None = None
    sizes_test: Array | None = None

    @property
    def weighted(self) -> bool:
        """Whether samples have weights, or frequencies."""
        return "weight" in self.names or "frequency" in self.names

    def totals(self) -> Array:
        """The sum of the weights of each client's training samples: (m,)."""
        return np.add.reduceat(self.train[0], starts_of(self.sizes)[:-1])

    def padded(self, ids: Array, D: int, test: bool) -> Array:
        """Weights and offsets of the clients ``ids`` (c,), each padded with zeros to D samples: (2, c, D)."""
        # Padding takes the first sample, times 0: an index must be one that is there.
        values, sizes = (self.test, self.sizes_test) if test else (self.train, self.sizes)
        assert values is not None
        assert sizes is not None
        real = np.arange(D) < sizes[ids][:, None]
        rows = np.where(real, starts_of(sizes)[ids][:, None] + np.arange(D), 0)
        return values[:, rows] * real

    def arranged(self, order: Array) -> SampleColumns:
        """The same with client order[i] as client i."""

        def rows(values: Array, sizes: Array) -> Array:
            starts = starts_of(sizes)
            return np.concatenate([values[:, starts[i] : starts[i + 1]] for i in order.tolist()], axis=1)

        test = None if self.test is None or self.sizes_test is None else rows(self.test, self.sizes_test)
        tests = None if self.sizes_test is None else self.sizes_test[order]
        return SampleColumns(self.names, rows(self.train, self.sizes), self.sizes[order], test, tests)

    def note(self) -> str:
        what = " and ".join(COLUMNS[name] for name in self.names)
        return f"samples have {what}, which numpy reads: there are no compiled kernels for them"


def counting(given: Mapping[str, Array]) -> Array:
    """Which samples (d,) have a weight or frequency that is not 0: the others count in no sum."""
    real = np.ones(len(next(iter(given.values()))), bool)
    for name in ("weight", "frequency"):
        if name in given and given[name].dtype.kind in "biuf":
            real &= given[name] != 0
    return real


def combined(given: Mapping[str, Array], called: Callable[[str], str], row: Callable[[int], str]) -> Array:
    """Weights and offsets (2, d) of columns by their names in COLUMNS.

    UserError for numbers that are none of these; ``called`` and ``row`` are what to call a column and a row in it.
    """
    d = len(next(iter(given.values())))
    found = np.zeros((2, d))
    found[0] = 1
    for name, values in given.items():
        if values.dtype.kind not in "biuf":
            raise UserError(f"{called(name)} holds texts, such as {str(values[0])!r}: {RIGHT[name]}")
        values = values.astype(np.float64)
        right = np.isfinite(values)
        if name != "offset":
            right &= values > 0
        if name == "frequency":
            right &= values == np.floor(values)
        if not right.all():
            k = int(right.argmin())
            raise UserError(f"{called(name)} has {values[k]:.10g} in {row(k)}: {RIGHT[name]}")
        if name in ("weight", "frequency"):
            found[0] = values
        else:
            found[1] += values if name == "offset" else np.log(values)
    return found


def in_order(names: tuple[str, ...], train: Array, test: Array | None, pool: Any) -> SampleColumns:
    """Those of a pool of samples, from (2, d) numbers of its rows: of X, and of the X of test samples, if another."""

    def rows(values: Array, order: Array | None) -> Array:
        return values if order is None else values[:, order]

    own = rows(train, pool.train.order)
    if pool.test is None:
        return SampleColumns(names, own, pool.sizes)
    tests = rows(train if test is None else test, pool.test.order)
    return SampleColumns(names, own, pool.sizes, tests, pool.sizes_test)


def added(pool: Any, columns: SampleColumns) -> None:
    pool.columns = columns
    pool.notes = (*pool.notes, columns.note())


def one_for_each(column: Array, pool: Any, called: str) -> Array:
    """The weight of each client of a pool (m,), from a column of its training rows or the weights themselves.

    UserError where the rows of a client differ, or a weight is not above 0.
    """
    if column.dtype.kind not in "biuf":
        raise UserError(f"{called} holds texts, such as {str(column[0])!r}: weights of clients are numbers above 0")
    values = column.astype(np.float64)
    values = values if pool.train.order is None else values[pool.train.order]
    starts = starts_of(pool.sizes)[:-1]
    low = np.minimum.reduceat(values, starts)
    high = np.maximum.reduceat(values, starts)
    if not (low == high).all():
        i = int(np.argmax(low != high))
        name = pool.owners[i] if pool.owners else i
        raise UserError(
            f"{called} has {low[i]:.10g} and {high[i]:.10g} in the rows of client {name}: a weight of clients is the "
            "same in all rows of a client; data.weight takes weights of rows"
        )
    check_weights(low, called)
    return low


def check_weights(values: Array, called: str) -> None:
    """UserError where a weight of clients is not a finite number above 0."""
    wrong = np.flatnonzero(~(values > 0) | ~np.isfinite(values))
    if wrong.size:
        raise UserError(f"{called} has {values[wrong[0]]:.10g}: weights of clients are finite numbers above 0")


def samples_of(data: Any) -> int:
    """How many samples there are, each as often as its frequency says."""
    counts = data.totals if data.columns is not None and "frequency" in data.columns.names else data.sizes
    return int(counts.sum())
