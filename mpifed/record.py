"""Writing result files: the only file that stores results with h5py."""
from __future__ import annotations

import contextlib
import datetime
import os
import platform
import shlex
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import NDArray

import mpifed
from mpifed.columns import ALL, CLIENTS, COLUMNS, EVERYBODY_LISTED, MODEL, RANKS, SCALES, SELECTION, UNKNOWN, Column
from mpifed.component import UserError
from mpifed.results import FORMAT, FORMAT_VERSION, Result, claim, load, settle

flush_seconds = 0.5      # rows wait at most this long in memory
CHUNK = 512              # rows of a column that are stored together
BLOCK = 4096             # rows that are written at once at most
HELD = 1 << 22           # chosen ids that are held in memory at most
CHUNK_IDS = 1 << 14      # ids of /selection that are stored together, about
METADATA = 1 << 14       # bytes that HDF5 needs at most to describe a new column or its growth
NO_COORDINATE = "This is a netCDF dimension but not a netCDF variable.%10d"

Array = NDArray[Any]
Table = Mapping[str, Sequence[Any] | Array]


class Recorder:
    """The result file of a run, on rank 0; as a context manager it records an exception as status ``failed``.

    ``path`` None keeps the file in memory; ``attrs`` are root attributes; ``clients`` is m. An existing file is
    replaced only with ``force``, and only once the new one stands. ``io_seconds`` are the seconds spent in here.
    Raises UserError where ``path`` cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str] | None, attrs: Mapping[str, Any], clients: int, force: bool = False) -> None:
        self.io_seconds = 0.0
        self.path = None if path is None else os.fspath(path)
        self.m = clients
        self._rows: list[dict[str, float]] = []
        self._chosen: list[Array | None] = []
        self._held = 0
        self._count = 0                                   # rows in the file
        self._flushed = -np.inf                           # so that row 0 is there at once
        self._declared: dict[str, Column] = {}
        self._open = True
        with self._clock():
            self.file = create(path, force, provenance() | dict(attrs) | {
                "format": FORMAT, "format_version": FORMAT_VERSION, "status": "running", "stop_reason": "", "started": now(),
            })
            self._rounds = self.file.create_group("rounds")
            # all links of the root are made before the first row, so that no later one can spoil the listing
            for name in ("ranks", "clients", "model"):
                self.file.create_group(name)
            self._scale = self._dataset(self._rounds, "round", (0,), np.int64, (), SCALES["round"], chunks=(CHUNK,))
            self._scale.make_scale("round")
            self.file["round"] = self._scale              # xarray looks for a dimension of /selection in the root
            self._columns: dict[str, h5py.Dataset] = {}
            self._selection: h5py.Dataset | None = None
            everybody = np.arange(clients) if clients <= EVERYBODY_LISTED else np.array([ALL])
            self._everybody = everybody.astype(np.int32 if clients < 2**31 else np.int64)
            self.file.flush()

    def declare(self, name: str, unit: str, description: str) -> None:
        """Say what a column is that an algorithm reports of itself; names in COLUMNS keep their meaning."""
        self._declared[name] = Column(unit, description)
        if name in self._columns:
            label(self._columns[name], self._column(name))

    def row(self, values: Mapping[str, float], chosen: Array | None) -> None:
        """Record a round: its numbers, and the ids of the chosen clients (None: all; in row 0 nobody whatever is given).

        A number that is missing in some round is NaN there, or 0 in a column of integers.
        """
        begun = time.perf_counter()
        self._rows.append(dict(values))
        if chosen is not None:
            chosen = np.array(chosen)
            self._held += chosen.size
        self._chosen.append(chosen)
        if begun - self._flushed >= flush_seconds or len(self._rows) >= BLOCK or self._held >= HELD:
            self._write()
        self.io_seconds += time.perf_counter() - begun

    def flush(self) -> None:
        """Write the rows that are still in memory."""
        with self._clock():
            self._write()

    def ranks(self, table: Table) -> None:
        """Write /ranks: a row a rank."""
        self._table("ranks", "rank", RANKS, table)

    def clients(self, table: Table) -> None:
        """Write /clients: a row a client."""
        self._table("clients", "client", CLIENTS, table)

    def model(self, x: Array, personal: Array | None = None) -> None:
        """Write the server's model x (n,) and the clients' models personal (m, n)."""
        with self._clock():
            group, x = self.file["model"], np.asarray(x)
            self._reserve(x.nbytes + (0 if personal is None else np.asarray(personal).nbytes) + 8 * self.m + 4 * METADATA)
            parameter = self._dimension(group, "parameter", x.size, MODEL)
            self._put(group, "x", x.ravel(), (parameter,), MODEL["x"])
            if personal is not None:
                self._put(group, "personal", np.asarray(personal), (self._ids(group, "client", len(personal)), parameter),
                          MODEL["personal"])
            self.file.flush()

    def finish(self, status: str, reason: str) -> None:
        """Write the rest, the status and why the run stopped; close a file on disk, keep one in memory open."""
        if not self._open:
            return
        with self._clock():
            self._open = False
            try:
                self._write()
                if self._selection is None:
                    self._select([np.zeros(0, np.int32)] * self._count, 0)
                self.file.flush()
                for name, value in (("stop_reason", reason), ("finished", now()), ("status", status)):
                    self.file.attrs[name] = text(value)
                self.file.flush()
            finally:
                if self.path is not None:
                    self.file.close()

    def result(self) -> Result:
        """What has been recorded so far."""
        if self.path is not None and not self.file:
            return load(self.path)
        if self._open:
            self.flush()
        return Result.from_file(self.file, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if error is None or kind is None:
            self.finish("finished", "")
            return
        reason = str(error) if isinstance(error, UserError) else f"{kind.__name__}: {error}".rstrip(": ")
        with contextlib.suppress(OSError, RuntimeError, ValueError):   # a full disk must not hide the error it caused
            self.finish("stopped" if issubclass(kind, KeyboardInterrupt) else "failed", reason)

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.io_seconds += time.perf_counter() - begun

    def _column(self, name: str) -> Column:
        return COLUMNS.get(name) or self._declared.get(name, UNKNOWN)

    def _write(self) -> None:
        """Append the rows in memory to the file."""
        rows, chosen, first = self._rows, self._chosen, self._count
        last = first + len(rows)
        if rows:
            self._rows, self._chosen, self._held = [], [], 0
            names: dict[str, Any] = dict.fromkeys(self._columns)
            for row in rows:
                names.update(row)
            grown = -(-last // CHUNK) + -(-first // CHUNK)
            if grown or len(names) > len(self._columns):
                self._reserve((len(names) + 1) * ((grown + 1) * CHUNK * 8 + METADATA))
            for name in names:
                self._append(name, first, last, rows)
            append(self._scale, first, last, np.arange(first, last))
            self._count = last
            ids = [self._everybody if some is None else some for some in chosen]
            if first == 0:
                ids[0] = ids[0][:0]
            self._select(ids, first)
            self.file.flush()
        self._flushed = time.perf_counter()

    def _append(self, name: str, first: int, last: int, rows: Sequence[Mapping[str, float]]) -> None:
        """The rows ``first`` <= r < ``last`` of a column, which is made where it is new."""
        column = self._column(name)
        missing = 0 if column.integer else np.nan
        values = np.array([row.get(name, missing) for row in rows])
        whole = column.integer and (values.dtype.kind in "iub" or bool(np.all(values == np.floor(values))))
        if not whole:
            values = values.astype(np.float64)
        dataset = self._columns.get(name)
        if dataset is not None and not whole and dataset.dtype.kind == "i":
            dataset = self._drop(name)
        if dataset is None:
            dataset = self._dataset(self._rounds, name, (0,), np.int64 if whole else np.float64, (self._scale,), column,
                                    chunks=(CHUNK,), fillvalue=missing if whole else np.nan)
            self._columns[name] = dataset
        append(dataset, first, last, values)
