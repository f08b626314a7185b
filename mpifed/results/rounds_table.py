"""/rounds and /selection of a result file: rows that wait in memory, and the growing datasets they are written to."""

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.results.columns import ALL, ALL_LISTED, COLUMNS, SCALES, SELECTION, UNKNOWN, of_round
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
        self.width = 0  # ids that a row of the dataset has room for
        self.dtype = np.dtype(np.int32 if clients < 2**31 else np.int64)
        # A million ids a round would take more room than all else in the file, and they say what one number does.
        self.all_clients = np.arange(clients) if clients <= ALL_LISTED else np.array([ALL])

    def growth(self, ids: Sequence[Array], first: int) -> int:
        """Bytes by which the file grows when ``ids`` are appended."""
        width = max(map(len, ids))
        shape = (0, 1) if self.stored is None else self.stored.shape
        chunks = chunk(width) if self.stored is None else self.stored.chunks
        grown = pieces((first + len(ids), max(width, shape[1])), chunks) - pieces(shape, chunks)
        # Each piece also has an entry in the tree of chunks.
        return grown * (math.prod(chunks) * self.dtype.itemsize + 64)

    def append(self, ids: Sequence[Array], first: int, last_time: bool = False) -> None:
        """Store the ids of the rounds from ``first`` on; ``last_time``: even if no client was ever selected."""
        width = max(map(len, ids), default=0)
        if self.stored is None:
            if not width and not last_time:
                return
            axes = (self.rounds, dimension(self.file, "slot", 0))
            layout = {"chunks": chunk(width), "fillvalue": -1}
            self.stored = dataset(self.file, "selection", (0, 1), self.dtype, axes, SELECTION, **layout)
        self.width = max(width, self.stored.shape[1])
        block = np.full((len(ids), self.width), -1, self.dtype)
        for row, some in zip(block, ids, strict=True):
            row[: len(some)] = some
        # The axis first: to a reader of netCDF a dataset that is wider than its axis is damaged.
        self.file["slot"].resize((self.width,))
        self.stored.resize((first + len(ids), self.width))
        self.stored[first:] = block


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
        self.selected: list[Array] = []
        self.held = 0  # ids in ``selected``, of rows that have their own
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
        # Copies: the run goes on and may write to what it has handed over.
        self.rows.append(dict(values))
        if selected is None:
            selected = self.selections.all_clients
        else:
            selected = np.array(selected)
            self.held += selected.size
        self.selected.append(selected if self.last else selected[:0])
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
        ids = self.selected
        # A new column, another type, or more slots: the rows need other datasets than those in the file, and links and
        # shapes cannot be changed in an order in which every state between is a valid file.
        wider = max(map(len, ids)) > self.selections.width
        changed = any(
            name not in self.columns or values.dtype != self.columns[name].dtype for name, values in columns.items()
        )
        # The first rows are not worth waiting for the disk: a crash of the machine then leaves a run that can start
        # again at round 0 at no loss.
        with self.growing.renewed(first > 1) if wider or changed else nullcontext():
            self._append(columns, ids, first)
        # Numbers last, after a flush of all else: a row that has its number is complete.
        self.numbers[first:] = np.arange(first, self.count)
        self.growing.flush()

    def finish(self) -> None:
        """Write the rest; /selection is there even if no client was ever selected."""
        self.write()
        self.growing.reserve(4 * METADATA)
        if self.selections.stored is None:
            self.selections.append([np.zeros(0) for _ in range(self.count)], 0, last_time=True)

    def _column(self, name: str) -> Array:
        """A column of the rows in memory: integers, unless it has had or has other numbers."""
        integer = COLUMNS.get(name, UNKNOWN).integer
        stored = self.columns.get(name)
        values = [row.get(name, 0 if integer else np.nan) for row in self.rows]
        return numbers(values, integer and (stored is None or stored.dtype.kind == "i"))

    def _append(self, columns: Mapping[str, Array], ids: Sequence[Array], first: int) -> None:
        last = first + len(self.rows)
        # All room that is needed is taken before anything is written, because HDF5 does not survive a full disk.
        grown = pieces((last,), (CHUNK,)) - pieces((first,), (CHUNK,))
        size = grown * (len(columns) + 1) * CHUNK * 8 + self.selections.growth(ids, first)
        if size or len(columns) > len(self.columns):
            self.growing.reserve(size + (len(columns) + 2) * METADATA)
        # From here on the rows are HDF5's: were they kept, writing again after an error would have them twice.
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
            meaning = of_round(name, self.growing.file.attrs)
            stored = dataset(self.group, name, (0,), values.dtype, axes, meaning, **layout)
            self.columns[name] = stored
        append(stored, first, values)
