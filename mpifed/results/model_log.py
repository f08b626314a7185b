"""Tables with a row for some of the rounds: the server's models in /models, and numbers of each client in /clients."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.hdf5 import datasets, entry
from mpifed.core.typing import Array
from mpifed.results.columns import STORED, UNSEEN, Column, Columns
from mpifed.results.netcdf import Dataset, Group, Growing, append, dataset
from mpifed.results.rounds_table import METADATA
from mpifed.results.validate import check_rising, column, columns

LONGEST = 1 << 17  # most numbers of a row that are stored together
CHUNK = 256  # numbers of rounds that are stored together


class RowLog:
    """The datasets stored_round (k,) and others (k, length) of a group; they are created with the first row.

    ``axis`` makes the dimension of these rows in a group, of a given ``length``; ``meaning`` says what a dataset is.
    """

    def __init__(
        self, growing: Growing, name: str, axis: Callable[..., Dataset], meaning: Callable[[str], Column]
    ) -> None:
        self.growing, self.name = growing, name
        self.axis, self.meaning = axis, meaning
        self.last = -1  # round of the last row
        self.group: Group | None = None

    def add(self, round: int, rows: Mapping[str, Array]) -> None:
        """Store the rows of ``round``, unless they are there."""
        if round <= self.last:
            return
        size = 0
        for row in rows.values():
            chunk = min(max(1, row.size), LONGEST)
            size += -(-row.size // chunk) * (chunk * row.itemsize + 64) + 2 * METADATA
        self.growing.reserve(size + 8 * CHUNK + 2 * METADATA)
        if self.group is None:
            with self.growing.renewed():
                self.group = self._created(rows)
        numbers = self.group[STORED]
        count = len(numbers)
        for name, row in rows.items():
            self.group[name].resize((count + 1, row.size))
            self.group[name][count] = row
        append(numbers, count, np.array([-1]))
        self.growing.flush()
        # Last, and in a flush of its own: a row that has its round is complete.
        numbers[count] = round
        self.growing.flush()
        self.last = round

    def _created(self, rows: Mapping[str, Array]) -> Group:
        group = self.growing.file.require_group(self.name)
        layout: dict[str, Any] = {"chunks": (CHUNK,), "fillvalue": -1}
        numbers = dataset(group, STORED, (0,), np.int64, (), self.meaning(STORED), **layout)
        numbers.make_scale(STORED)
        for name, row in rows.items():
            layout = {"chunks": (1, min(max(1, row.size), LONGEST)), "maxshape": (None, row.size)}
            axes = (numbers, self.axis(group, length=row.size))
            dataset(group, name, (0, row.size), row.dtype, axes, self.meaning(name), **layout)
        return group


def stored_rounds(group: Group, part: str, name: str) -> Array:
    """The rounds (k,) of the tables in /``part`` of the result ``name``; −1 for a row that was being written."""
    key = STORED if entry(group, STORED, name) is not None else "round"  # as format 1 calls it
    return column(entry(group, key, name), f"{part}/{key}", name)


def stored_models(file: Group, name: str) -> tuple[Array, Dataset | None]:
    """The rounds (k,) of the models in a result, and the dataset that holds these models in its first k rows, if any.

    A model without a round was being written.
    """
    group = entry(file, "models", name)
    stored = None if group is None else entry(group, "x", name)
    if stored is None:
        return np.zeros(0, np.int64), None
    numbers = stored_rounds(group, "models", name)
    numbers = numbers[: min(int(np.count_nonzero(numbers >= 0)), len(stored))]
    check_rising(numbers, "models", name)
    return numbers, stored


def read_models(file: Group, name: str) -> Columns:
    """/models of the result ``name``: ``round`` (k,) and ``x`` (k, n)."""
    numbers, stored = stored_models(file, name)
    x = np.zeros((0, 0)) if stored is None else column(stored, "models/x", name)
    return Columns(round=numbers, x=x[: len(numbers)])


def read_units(file: Group, name: str) -> Columns:
    """Mean and deviation of features in /model of the result ``name``, where they are there."""
    model = columns(file, "model", name)
    return Columns({key: model[key] for key in ("mean", "deviation") if key in model})


def read_by_client(file: Group, name: str, part: str = "clients") -> Columns:
    """The tables in /clients or /unseen of the result ``name``: ``round`` (k,), and others (k, m) by name."""
    group = entry(file, part, name)
    found = {} if group is None else dict(datasets(group, name))
    if not {STORED, "round"} & found.keys():
        return Columns(round=np.zeros(0, np.int64))
    numbers = stored_rounds(group, part, name)
    read = partial(column, name=name, ndim=2)
    tables = {key: read(stored, f"{part}/{key}") for key, stored in found.items() if stored.ndim == 2}
    count = min(int(np.count_nonzero(numbers >= 0)), *map(len, tables.values()), len(numbers))
    check_rising(numbers[:count], part, name)
    if len({table.shape[1] for table in tables.values()}) > 1:
        raise UserError(f"{name} is not a valid result: the tables of {part} differ in their numbers of clients")
    return Columns(round=numbers[:count], **{key: table[:count] for key, table in tables.items()})


def read_unseen(file: Group, name: str) -> Columns:
    """/unseen of the result ``name``: the same, and ``data_client`` and ``samples`` (u,) where the run has ended."""
    found = read_by_client(file, name, "unseen")
    group = entry(file, "unseen", name)
    stored = {} if group is None else dict(datasets(group, name))
    return Columns(found | {key: column(stored[key], f"unseen/{key}", name) for key in UNSEEN if key in stored})
