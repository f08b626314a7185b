"""/rounds and /selection of a result file: rows that wait in memory, and the growing datasets they are written to."""

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.results.columns import ALL, ALL_LISTED, COLUMNS, SCALES, SELECTION, UNKNOWN
from mpifed.results.netcdf import Dataset, Group, Growing, append, dataset, dimension, numbers, pieces

CHUNK = 256  # rows of a column that are stored together
BLOCK = 1024  # rows that wait in memory at most
HELD = 1 << 20  # selected ids that wait in memory at most
CHUNK_IDS = 1 << 12  # ids that are stored together, where a row is not longer
WIDEST = 1 << 16  # most ids of a row that are stored together
METADATA = 1 << 14  # bytes that HDF5 needs at most to describe a new dataset or its growth


class SelectionLog:
    """/selection: the dataset (rounds, slots) of client ids, padded with -1.

    It is created with the first round in which a client is selected, because its width is known only then.
    """

    def __init__(self, file: Group, rounds: Dataset, clients: int) -> None:
        self.file = file
        self.rounds = rounds
        self.stored: Dataset | None = None
        self.dtype = np.dtype(np.int32 if clients < 2**31 else np.int64)
        self.all_clients = np.arange(clients) if clients <= ALL_LISTED else np.array([ALL])

    def rows(self, selected: Sequence[Array | None], first: int) -> list[Array]:
        """The ids to store for the rounds from ``first`` on (None: all clients); none for round 0."""
        ids = [self.all_clients if some is None else some for some in selected]
        return [self.all_clients[:0], *ids[1:]] if first == 0 else ids

    def width(self) -> int:
        """Most ids that a row of the dataset has room for."""
        return 0 if self.stored is None else int(self.stored.shape[1])

    def growth(self, ids: Sequence[Array], first: int) -> int:
        """Bytes by which the file grows when ``ids`` are appended."""
        width = widest(ids)
        shape = (0, 1) if self.stored is None else self.stored.shape
        chunks = chunk(width) if self.stored is None else self.stored.chunks
        grown = pieces((first + len(ids), max(width, shape[1])), chunks) - pieces(shape, chunks)
        return grown * (math.prod(chunks) * self.dtype.itemsize + 64)  # and an entry in the tree of chunks for each

    def append(self, ids: Sequence[Array], first: int, last_time: bool = False) -> None:
        """Store the ids of the rounds from ``first`` on; ``last_time``: even if no client was ever selected."""
        width = widest(ids)
        if self.stored is None:
            if not width and not last_time:
                return
            axes = (self.rounds, dimension(self.file, "slot", 0))
            layout = {"chunks": chunk(width), "fillvalue": -1}
            self.stored = dataset(self.file, "selection", (0, 1), self.dtype, axes, SELECTION, **layout)
        wide = max(width, self.stored.shape[1])
        block = np.full((len(ids), wide), -1, self.dtype)
        for row, some in zip(block, ids, strict=True):
            row[: len(some)] = some
        self.file["slot"].resize((wide,))
        self.stored.resize((first + len(ids), wide))
        self.stored[first:] = block


def widest(ids: Sequence[Array]) -> int:
    return max(map(len, ids), default=0)


def chunk(width: int) -> tuple[int, int]:
    """Rounds and slots that are stored together, where at most ``width`` clients are selected in a round."""
    slots = min(max(1, width), WIDEST)
    return max(1, CHUNK_IDS // slots), slots


class RoundsTable:
    """A row a round: its columns, and in /selection the clients selected."""

    def __init__(self, growing: Growing, clients: int) -> None:
        self.growing = growing
        self.group = growing.file["rounds"]
        self.count = 0  # rows in the file
        self.rows: list[dict[str, float]] = []  # in memory
        self.selected: list[Array | None] = []
        self.held = 0  # ids in ``selected``
        self.columns: dict[str, Dataset] = {}
        layout = {"chunks": (CHUNK,), "fillvalue": -1}
        self.numbers = dataset(self.group, "round", (0,), np.int64, (), SCALES["round"], **layout)
        self.numbers.make_scale("round")
        self.selections = SelectionLog(growing.file, self.numbers, clients)
        growing.file["round"] = self.numbers  # xarray looks in the root for the dimensions of /selection

    @property
    def last(self) -> int:
        return self.count + len(self.rows) - 1

    def add(self, values: Mapping[str, float], selected: Array | None) -> bool:
        """Keep a row in memory; whether so much waits there that it should be written."""
        self.rows.append(dict(values))
        if selected is not None:
            selected = np.array(selected)
            self.held += selected.size
        self.selected.append(selected)
        return len(self.rows) >= BLOCK or self.held >= HELD

    def forget(self) -> None:
        self.rows = []
        self.selected = []
        self.held = 0

    def write(self) -> None:
        if not self.rows:
            return
        first = self.count
        names: dict[str, Any] = dict.fromkeys(self.columns)
        for row in self.rows:
            names.update(row)
        columns = {name: self._column(name) for name in names}
        ids = self.selections.rows(self.selected, first)
        # a new column, another type, or more slots: the rows need other datasets than those in the file
        anew = widest(ids) > self.selections.width() or any(
            name not in self.columns or values.dtype != self.columns[name].dtype for name, values in columns.items()
        )
        with self.growing.renewed(first > 1) if anew else nullcontext():
            self._append(columns, ids, first)
        self.numbers[first:] = np.arange(first, self.count)  # last: a row that has its number is complete
        self.growing.flush()

    def finish(self) -> None:
        """Write the rest; /selection is there even if no client was ever selected."""
        self.write()
        self.growing.reserve(4 * METADATA)
        if self.selections.stored is None:
            self.selections.append([np.zeros(0)] * self.count, 0, last_time=True)

    def _column(self, name: str) -> Array:
        """A column of the rows in memory: integers, unless it has had or has other numbers."""
        integer = COLUMNS.get(name, UNKNOWN).integer
        stored = self.columns.get(name)
        values = [row.get(name, 0 if integer else np.nan) for row in self.rows]
        return numbers(values, integer and (stored is None or stored.dtype.kind == "i"))

    def _append(self, columns: Mapping[str, Array], ids: Sequence[Array], first: int) -> None:
        last = first + len(self.rows)
        grown = pieces((last,), (CHUNK,)) - pieces((first,), (CHUNK,))
        size = grown * (len(columns) + 1) * CHUNK * 8 + self.selections.growth(ids, first)
        if size or len(columns) > len(self.columns):
            self.growing.reserve(size + (len(columns) + 2) * METADATA)
        self.forget()
        self.count = last
        for name, values in columns.items():
            self._extend(name, values, first)
        self.selections.append(ids, first)
        append(self.numbers, first, np.full(last - first, -1))
        self.growing.flush()

    def _extend(self, name: str, values: Array, first: int) -> None:
        """Write a column from row ``first`` on; one of integers that gets other numbers is stored anew as float64."""
        stored = self.columns.get(name)
        if stored is not None and stored.dtype != values.dtype:
            values = np.concatenate([stored[:first], values])
            first = 0
            stored.dims[0].detach_scale(self.numbers)
            del self.group[name]
            stored = None
        if stored is None:
            layout = {"chunks": (CHUNK,), "fillvalue": 0 if values.dtype.kind == "i" else np.nan}
            axes = (self.numbers,)
            stored = dataset(self.group, name, (0,), values.dtype, axes, COLUMNS.get(name, UNKNOWN), **layout)
            self.columns[name] = stored
        append(stored, first, values)
