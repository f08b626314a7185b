"""Weights and offsets of samples, from columns of a table, arrays of a file, or a Python program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.arrays import row_offsets
from mpifed.core.errors import UserError
from mpifed.core.promises import OptionPromises, PromisesByOption, Supports, supporting
from mpifed.core.roles import TRAINING
from mpifed.core.typing import Array

COLUMNS = {"weight": "weights", "frequency": "frequencies", "offset": "offsets", "exposure": "exposures"}  # of samples
RIGHT = {
    "weight": "a weight is a number above 0: leave out the rows of others",
    "frequency": "a frequency is a whole number from 1, how many samples a row stands for: leave out rows with 0; "
    "data.weight takes numbers that are not whole",
    "offset": "an offset is a finite number",
    "exposure": "an exposure is a number above 0",
}
WEIGHTED = {Supports.PRIVACY: "the privacy that {name} guarantees here is that of samples without"}
COLUMN_PROMISES: PromisesByOption = {
    # Noise is scaled for samples of equal weight.
    "weight": OptionPromises(Supports.EVERYTHING & ~Supports.PRIVACY, WEIGHTED),
    "frequency": OptionPromises(Supports.EVERYTHING & ~Supports.PRIVACY, WEIGHTED),
    # An offset is part of its sample.
    **supporting("offset", "exposure"),
}


class WeightsAndOffsets(NamedTuple):
    """Weights of the samples of m clients, and offsets that are added to their scores, client by client.

    ``names``: which of COLUMNS are there. ``values`` by role (2, d): weights, 1 by default, and offsets, 0 by default;
    an exposure has its logarithm as offset. ``sizes`` by role (m,): number of such samples of each client.
    """

    names: tuple[str, ...]
    values: dict[str, Array]
    sizes: dict[str, Array]

    @property
    def weighted(self) -> bool:
        """True if samples have weights or frequencies."""
        return "weight" in self.names or "frequency" in self.names

    def totals(self) -> Array:
        """Return the sum of the weights of each client's training samples: (m,)."""
        return np.add.reduceat(self.values[TRAINING][0], row_offsets(self.sizes[TRAINING])[:-1])

    def padded(self, ids: Array, D: int, role: str) -> Array:
        """Return weights and offsets of the clients ``ids`` (c,), each padded with zeros to D samples: (2, c, D)."""
        # Padding takes the first sample times 0, because an index must exist.
        values, sizes = self.values[role], self.sizes[role]
        real = np.arange(D) < sizes[ids][:, None]
        rows = np.where(real, row_offsets(sizes)[ids][:, None] + np.arange(D), 0)
        return values[:, rows] * real

    def reorder(self, order: Array) -> WeightsAndOffsets:
        """Return the columns with client order[i] as client i."""

        def rows(values: Array, sizes: Array) -> Array:
            starts = row_offsets(sizes)
            return np.concatenate([values[:, starts[i] : starts[i + 1]] for i in order.tolist()], axis=1)

        values = {role: rows(values, self.sizes[role]) for role, values in self.values.items()}
        return WeightsAndOffsets(self.names, values, {role: sizes[order] for role, sizes in self.sizes.items()})

    def note(self) -> str:
        columns = " and ".join(COLUMNS[name] for name in self.names)
        return f"samples have {columns}, which numpy reads: there are no compiled kernels for them"


def refuse_both_weights(names: Iterable[str], prefix: str = "") -> None:
    """Raise UserError where samples have both weights and frequencies."""
    if {"weight", "frequency"} <= set(names):
        raise UserError(f"{prefix}weight and {prefix}frequency are both weights of samples: give one of them")


def find_nonzero_weights(columns: Mapping[str, Array]) -> Array:
    """Return a mask (d,) of samples whose weight or frequency is not 0; the others count in no sum."""
    real = np.ones(len(next(iter(columns.values()))), bool)
    for name in ("weight", "frequency"):
        if name in columns and columns[name].dtype.kind in "biuf":
            real &= columns[name] != 0
    return real


def combine_columns(columns: Mapping[str, Array], label: Callable[[str], str], row: Callable[[int], str]) -> Array:
    """Return weights and offsets (2, d) of columns; UserError, naming ``label`` and ``row``, for wrong numbers."""
    d = len(next(iter(columns.values())))
    combination = np.zeros((2, d))
    combination[0] = 1
    for name, values in columns.items():
        if values.dtype.kind not in "biuf":
            raise UserError(f"{label(name)} holds texts, such as {str(values[0])!r}: {RIGHT[name]}")
        values = values.astype(np.float64)
        right = np.isfinite(values)
        if name != "offset":
            right &= values > 0
        if name == "frequency":
            right &= values == np.floor(values)
        if not right.all():
            k = int(right.argmin())
            raise UserError(f"{label(name)} has {values[k]:.10g} in {row(k)}: {RIGHT[name]}")
        if name in ("weight", "frequency"):
            combination[0] = values
        else:
            combination[1] += values if name == "offset" else np.log(values)
    return combination


def columns_of_pool(names: tuple[str, ...], train: Array, others: Mapping[str, Array], pool: Any) -> WeightsAndOffsets:
    """Return the columns of a pool from those (2, d) of the rows of X, and of the ``others`` by role with an own X."""
    values = {}
    for role, part in pool.samples.items():
        columns = others.get(role, train)
        values[role] = columns if part.order is None else columns[:, part.order]
    return WeightsAndOffsets(names, values, {role: np.asarray(part.sizes) for role, part in pool.samples.items()})


def attach_columns(pool: Any, columns: WeightsAndOffsets) -> None:
    """Give a pool weights and offsets of samples, and a note on them; in place."""
    pool.columns = columns
    pool.notes = (*pool.notes, columns.note())


def reduce_to_clients(column: Array, pool: Any, label: str) -> Array:
    """Return the weight of each client (m,) from those of its training rows; UserError where these differ or are 0."""
    if column.dtype.kind not in "biuf":
        raise UserError(f"{label} holds texts, such as {str(column[0])!r}: weights of clients are numbers above 0")
    values = column.astype(np.float64)
    values = values if pool.train.order is None else values[pool.train.order]
    starts = row_offsets(pool.sizes)[:-1]
    low = np.minimum.reduceat(values, starts)
    high = np.maximum.reduceat(values, starts)
    if not (low == high).all():
        i = int(np.argmax(low != high))
        name = pool.owners[i] if pool.owners else i
        raise UserError(
            f"{label} has {low[i]:.10g} and {high[i]:.10g} in the rows of client {name}: a weight of clients is the "
            "same in all rows of a client; data.weight takes weights of rows"
        )
    check_weights(low, label)
    return low


def check_weights(values: Array, label: str) -> None:
    """Raise UserError where a weight of clients is not a finite number above 0."""
    wrong = np.flatnonzero(~(values > 0) | ~np.isfinite(values))
    if wrong.size:
        raise UserError(f"{label} has {values[wrong[0]]:.10g}: weights of clients are finite numbers above 0")


def count_samples(data: Any) -> int:
    """Return the number of samples, each counted as often as its frequency says."""
    counts = data.totals if data.columns is not None and "frequency" in data.columns.names else data.sizes
    return int(counts.sum())
