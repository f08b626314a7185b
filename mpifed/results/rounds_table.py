"""/rounds and /selection of a result file: rows that wait in memory, and the growing datasets they are written to."""

import math
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.results.columns import ALL, ALL_LISTED, COLUMNS, SCALES, SELECTION, UNKNOWN, round_column_info
from mpifed.results.netcdf import (
    GrowingFile,
    H5Dataset,
    H5Group,
    append_values,
    count_chunks,
    create_dataset,
    require_dimension,
    to_number_array,
)

CHUNK = 256  # rows of a column in a chunk
BLOCK = 1024  # maximum rows in memory
HELD = 1 << 20  # maximum selected ids in memory
CHUNK_IDS = 1 << 12  # ids in a chunk, unless a row is longer
WIDEST = 1 << 16  # maximum ids of a row in a chunk
METADATA = 1 << 14  # maximum bytes that HDF5 needs to describe a new dataset or its growth


class SelectionLog:
    """/selection: the dataset (rounds, slots) of client ids, padded with -1.

    It is created in the first round that selects a client, because its width is unknown before.
    """

    def __init__(self, file: H5Group, rounds: H5Dataset, clients: int) -> None:
        self.file = file
        self.rounds = rounds
        self.stored: H5Dataset | None = None
        self.width = 0  # ids for which a row of the dataset has room
        self.dtype = np.dtype(np.int32 if clients < 2**31 else np.int64)
        # A million ids a round would take more room than all else in the file; one number says the same.
        self.all_clients = np.arange(clients) if clients <= ALL_LISTED else np.array([ALL])

    def new_bytes(self, ids: Sequence[Array], first: int) -> int:
        """Return the bytes by which the file grows when ``ids`` are appended."""
        width = max(map(len, ids))
        shape = (0, 1) if self.stored is None else self.stored.shape
        chunks = chunk_shape(width) if self.stored is None else self.stored.chunks
        grown = count_chunks((first + len(ids), max(width, shape[1])), chunks) - count_chunks(shape, chunks)
        # Each piece also has an entry in the tree of chunks.
        return grown * (math.prod(chunks) * self.dtype.itemsize + 64)

    def append(self, ids: Sequence[Array], first: int, last_time: bool = False) -> None:
        """Store the ids of the rounds from ``first`` on; with ``last_time`` even if no client was ever selected."""
        width = max(map(len, ids), default=0)
        if self.stored is None:
            if not width and not last_time:
                return
            axes = (self.rounds, require_dimension(self.file, "slot", 0))
            layout = {"chunks": chunk_shape(width), "fillvalue": -1}
            self.stored = create_dataset(self.file, "selection", (0, 1), self.dtype, axes, SELECTION, **layout)
        self.width = max(width, self.stored.shape[1])
        block = np.full((len(ids), self.width), -1, self.dtype)
        for row, selected in zip(block, ids, strict=True):
            row[: len(selected)] = selected
        # The axis first: to a reader of netCDF a dataset that is wider than its axis is damaged.
        self.file["slot"].resize((self.width,))
        self.stored.resize((first + len(ids), self.width))
        self.stored[first:] = block


def chunk_shape(width: int) -> tuple[int, int]:
    """Return the rounds and slots of a chunk, where at most ``width`` clients are selected in a round."""
    slots = min(max(1, width), WIDEST)
    return max(1, CHUNK_IDS // slots), slots


class RoundsTable:
    """/rounds and /selection: for each round a row of the columns, and the clients selected."""

    def __init__(self, growing: GrowingFile, clients: int) -> None:
        self.growing = growing
        self.group = growing.file["rounds"]
        self.count = 0  # rows in the file
        self.rows: list[dict[str, float]] = []  # in memory
        self.selected: list[Array] = []
        self.held = 0  # ids that ``selected`` holds, all clients not counted
        self.columns: dict[str, H5Dataset] = {}
        layout = {"chunks": (CHUNK,), "fillvalue": -1}
        self.numbers = create_dataset(self.group, "round", (0,), np.int64, (), SCALES["round"], **layout)
        self.numbers.make_scale("round")
        self.selections = SelectionLog(growing.file, self.numbers, clients)
        growing.file["round"] = self.numbers  # xarray looks in the root for the dimensions of /selection

    @property
    def last(self) -> int:
        return self.count + len(self.rows) - 1

    def add(self, values: Mapping[str, float], selected: Array | None) -> bool:
        """Keep a row in memory; return whether so much waits that it should be written."""
        # Copies: the run continues and may change these arrays.
        self.rows.append(dict(values))
        if selected is None:
            selected = self.selections.all_clients
        else:
            selected = np.array(selected)
            self.held += selected.size
        self.selected.append(selected if self.last else selected[:0])
        return len(self.rows) >= BLOCK or self.held >= HELD

    def clear_rows(self) -> None:
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
        # A new column, another type, or more slots need other datasets than those in the file, and in no order of
        # changing links and shapes is the file valid at every instant.
        wider = max(map(len, ids)) > self.selections.width
        changed = any(
            name not in self.columns or values.dtype != self.columns[name].dtype for name, values in columns.items()
        )
        # The first rows need not wait for the disk: after a crash of the machine the run starts again at round 0 and
        # little is lost.
        with self.growing.change_atomically(first > 1) if wider or changed else nullcontext():
            self._append(columns, ids, first)
        # Numbers last, after a flush of all else: readers take a row for complete when it has its number.
        self.numbers[first:] = np.arange(first, self.count)
        self.growing.flush()

    def finish(self) -> None:
        """Write the remaining rows; create /selection even if no client was ever selected."""
        self.write()
        self.growing.reserve(4 * METADATA)
        if self.selections.stored is None:
            self.selections.append([np.zeros(0) for _ in range(self.count)], 0, last_time=True)

    def _column(self, name: str) -> Array:
        """Return a column of the rows in memory: integers, unless it has or had other numbers."""
        integer = COLUMNS.get(name, UNKNOWN).integer
        stored = self.columns.get(name)
        values = [row.get(name, 0 if integer else np.nan) for row in self.rows]
        return to_number_array(values, integer and (stored is None or stored.dtype.kind == "i"))

    def _append(self, columns: Mapping[str, Array], ids: Sequence[Array], first: int) -> None:
        last = first + len(self.rows)
        # Room is reserved before anything is written, because HDF5 does not survive a full disk.
        grown = count_chunks((last,), (CHUNK,)) - count_chunks((first,), (CHUNK,))
        size = grown * (len(columns) + 1) * CHUNK * 8 + self.selections.new_bytes(ids, first)
        if size or len(columns) > len(self.columns):
            self.growing.reserve(size + (len(columns) + 2) * METADATA)
        # From here on HDF5 has the rows: kept here, they would be written twice after an error.
        self.clear_rows()
        self.count = last
        for name, values in columns.items():
            self._extend(name, values, first)
        self.selections.append(ids, first)
        append_values(self.numbers, first, np.full(last - first, -1))
        self.growing.flush()

    def _extend(self, name: str, values: Array, first: int) -> None:
        """Write a column from row ``first`` on; if integers get other numbers, store the column anew as float64."""
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
            meaning = round_column_info(name, self.growing.file.attrs)
            stored = create_dataset(self.group, name, (0,), values.dtype, axes, meaning, **layout)
            self.columns[name] = stored
        append_values(stored, first, values)
