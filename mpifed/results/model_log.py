"""Tables with a row for some of the rounds: the server's models in /models, and numbers of each client in /clients."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from mpifed.core.hdf5 import get_entry, iterate_datasets
from mpifed.core.typing import Array
from mpifed.results.columns import STORED, UNSEEN, ColumnInfo, Columns
from mpifed.results.netcdf import GrowingFile, H5Dataset, H5Group, append_values, create_dataset
from mpifed.results.rounds_table import METADATA
from mpifed.results.validate import check_rounds_rise, read_column, read_columns, require_valid

LONGEST = 1 << 17  # maximum numbers of a row in a chunk
CHUNK = 256  # numbers of rounds in a chunk


class RowLog:
    """A group with the datasets stored_round (k,) and others (k, length), which are created with the first row.

    ``axis`` creates the dimension of these rows, of a given ``length``; ``meaning`` describes a dataset by its name.
    """

    def __init__(
        self, growing: GrowingFile, name: str, axis: Callable[..., H5Dataset], meaning: Callable[[str], ColumnInfo]
    ) -> None:
        self.growing, self.name = growing, name
        self.axis, self.meaning = axis, meaning
        self.last = -1  # round of the last row
        self.group: H5Group | None = None

    def add(self, round: int, rows: Mapping[str, Array]) -> None:
        """Store the rows of ``round``, unless that round is stored already."""
        if round <= self.last:
            return
        size = 0
        for row in rows.values():
            chunk = min(max(1, row.size), LONGEST)
            size += -(-row.size // chunk) * (chunk * row.itemsize + 64) + 2 * METADATA
        self.growing.reserve(size + 8 * CHUNK + 2 * METADATA)
        if self.group is None:
            with self.growing.change_atomically():
                self.group = self._create_group(rows)
        numbers = self.group[STORED]
        count = len(numbers)
        for name, row in rows.items():
            self.group[name].resize((count + 1, row.size))
            self.group[name][count] = row
        append_values(numbers, count, np.array([-1]))
        self.growing.flush()
        # Last, in a separate flush: readers take a row for complete when it has its round.
        numbers[count] = round
        self.growing.flush()
        self.last = round

    def _create_group(self, rows: Mapping[str, Array]) -> H5Group:
        group = self.growing.file.require_group(self.name)
        layout: dict[str, Any] = {"chunks": (CHUNK,), "fillvalue": -1}
        numbers = create_dataset(group, STORED, (0,), np.int64, (), self.meaning(STORED), **layout)
        numbers.make_scale(STORED)
        for name, row in rows.items():
            layout = {"chunks": (1, min(max(1, row.size), LONGEST)), "maxshape": (None, row.size)}
            axes = (numbers, self.axis(group, length=row.size))
            create_dataset(group, name, (0, row.size), row.dtype, axes, self.meaning(name), **layout)
        return group


def read_stored_rounds(group: H5Group, part: str, name: str) -> Array:
    """Return the rounds (k,) of the tables in /``part`` of the result ``name``; −1 for a row that was being written."""
    key = STORED if get_entry(group, STORED, name) is not None else "round"  # its name in format 1
    return read_column(get_entry(group, key, name), f"{part}/{key}", name)


def open_models(file: H5Group, name: str) -> tuple[Array, H5Dataset | None]:
    """Return the rounds (k,) of the stored models, and their dataset, whose first k rows they are; None without one.

    A model without a round was still being written.
    """
    group = get_entry(file, "models", name)
    stored = None if group is None else get_entry(group, "x", name)
    if stored is None:
        return np.zeros(0, np.int64), None
    numbers = read_stored_rounds(group, "models", name)
    numbers = numbers[: min(int(np.count_nonzero(numbers >= 0)), len(stored))]
    check_rounds_rise(numbers, "models", name)
    return numbers, stored


def read_models(file: H5Group, name: str) -> Columns:
    """Return /models of the result ``name``: ``round`` (k,) and ``x`` (k, n)."""
    numbers, stored = open_models(file, name)
    x = np.zeros((0, 0)) if stored is None else read_column(stored, "models/x", name)
    return Columns(round=numbers, x=x[: len(numbers)])


def read_units(file: H5Group, name: str) -> Columns:
    """Return the mean and deviation of each feature from /model of the result ``name``, where they are stored."""
    model = read_columns(file, "model", name)
    return Columns({key: model[key] for key in ("mean", "deviation") if key in model})


def read_by_client(file: H5Group, name: str, part: str = "clients") -> Columns:
    """Return the tables in /clients or /unseen of the result ``name``: ``round`` (k,), and others (k, m) by name."""
    group = get_entry(file, part, name)
    stored_tables = {} if group is None else dict(iterate_datasets(group, name))
    if not {STORED, "round"} & stored_tables.keys():
        return Columns(round=np.zeros(0, np.int64))
    numbers = read_stored_rounds(group, part, name)
    read_table = partial(read_column, name=name, ndim=2)
    tables = {key: read_table(stored, f"{part}/{key}") for key, stored in stored_tables.items() if stored.ndim == 2}
    count = min(int(np.count_nonzero(numbers >= 0)), *map(len, tables.values()), len(numbers))
    check_rounds_rise(numbers[:count], part, name)
    widths = {table.shape[1] for table in tables.values()}
    require_valid(len(widths) <= 1, name, f"the tables of {part} differ in their numbers of clients")
    return Columns(round=numbers[:count], **{key: table[:count] for key, table in tables.items()})


def read_unseen(file: H5Group, name: str) -> Columns:
    """Return /unseen of the result ``name``: its tables, and, once the run is over, ``data_client`` and ``samples``
    (u,).
    """
    tables = read_by_client(file, name, "unseen")
    group = get_entry(file, "unseen", name)
    stored = {} if group is None else dict(iterate_datasets(group, name))
    return Columns(tables | {key: read_column(stored[key], f"unseen/{key}", name) for key in UNSEEN if key in stored})
