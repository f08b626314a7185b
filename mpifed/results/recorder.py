"""Writing result files: the only file that stores results with h5py."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import ArrayLike

from mpifed.core.errors import Trouble, UserError
from mpifed.core.files import synchronise
from mpifed.core.typing import Array
from mpifed.results.columns import CLIENTS, COLUMNS, MODEL, RANKS, SCALES, UNKNOWN, Column
from mpifed.results.netcdf import append, created, dataset, describe, dimension, numbers, pieces, put, scale, text
from mpifed.results.provenance import now, provenance
from mpifed.results.result import FORMAT, FORMAT_VERSION, Result, load
from mpifed.results.selection_log import Chosen, widest

FLUSH_SECONDS = 0.5  # rows wait at most this long in memory
CHUNK = 256  # rows of a column that are stored together
BLOCK = 4096  # rows that wait in memory at most
HELD = 1 << 22  # chosen ids that wait in memory at most
METADATA = 1 << 14  # bytes that HDF5 needs at most to describe a new dataset or its growth
GROUPS = ("rounds", "ranks", "clients", "model")

Table = Mapping[str, ArrayLike]


class Recorder:
    """The result file of a run, on rank 0; as a context manager it records an exception as status ``failed``.

    ``path`` None keeps the file in memory; ``attrs`` are root attributes; ``clients`` is m. An existing file is
    replaced only with ``force``, and only once the new one stands. Of ``before``, a run that is resumed, the rounds up to
    ``last`` are taken over. ``io_seconds`` are the seconds spent in here.
    Raises UserError where ``path`` cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        attrs: Mapping[str, Any],
        clients: int,
        force: bool = False,
        before: Result | None = None,
        last: int = -1,
    ) -> None:
        begun = time.perf_counter()
        self.path = None if path is None else os.fspath(path)
        self.m = clients
        self._rows: list[dict[str, float]] = []
        self._picks: list[Array | None] = []
        self._held = 0
        self.count = 0  # rows in the file
        self._flushed = -np.inf  # so that row 0 is there at once
        self._declared: dict[str, Column] = {}
        self._columns: dict[str, h5py.Dataset] = {}
        self._open, self.ended = True, ("", "")  # status and reason
        self.before = before
        attributes = (
            provenance()
            | dict(attrs)
            | {
                "format": FORMAT,
                "format_version": FORMAT_VERSION,
                "clients": clients,
                "status": "running",
                "stop_reason": "",
                "started": now(),
                "finished": "",
            }
        )
        if before is not None:
            again = f"{now()} from round {last} on {attributes.get('ranks', 1)} ranks"
            attributes |= {
                "started": before.attrs["started"],
                "resumed": f"{before.attrs.get('resumed', '')}\n{again}".strip(),
            }
        with created(path, force or before is not None, attributes, GROUPS) as self._growing:
            self.file = self._growing.file
            self._rounds = self.file["rounds"]
            self._scale = dataset(
                self._rounds, "round", (0,), np.int64, (), SCALES["round"], chunks=(CHUNK,), fillvalue=-1
            )
            self._scale.make_scale("round")
            self._chosen = Chosen(self.file, self._scale, clients)
            self.file["round"] = self._scale  # xarray looks in the root for the dimensions of /selection
            if before is not None:
                self._copy(before, last)
        self.io_seconds = time.perf_counter() - begun

    def declare(self, name: str, unit: str, description: str) -> None:
        """Say what a column is that an algorithm reports of itself; names in COLUMNS keep their meaning."""
        self._declared[name] = Column(unit, description)
        if name in self._columns:
            describe(self._columns[name], self._meaning(name))

    def row(self, values: Mapping[str, float], chosen: Array | None) -> None:
        """Record a round: its numbers, and the ids of the clients chosen (None: all).

        In row 0 nobody is chosen whatever is given. A number that is missing in some round is NaN there, or 0 in a
        column of integers.
        """
        begun = time.perf_counter()
        self._rows.append(dict(values))
        if chosen is not None:
            chosen = np.array(chosen)
            self._held += chosen.size
        self._picks.append(chosen)
        if begun - self._flushed >= FLUSH_SECONDS or len(self._rows) >= BLOCK or self._held >= HELD:
            self._write()
        self.io_seconds += time.perf_counter() - begun

    def flush(self) -> None:
        """Write the rows that still wait in memory, down to the disk."""
        with self._clock():
            self._write()
            if self.path is not None:
                synchronise(self.path)

    def history(self, every: int) -> dict[str, list[float]]:
        """Every ``every``-th row of those that were taken over, by column."""
        rounds = self.before.rounds if self.before is not None else {}
        return {name: column[: self.count : every].tolist() for name, column in rounds.items()}

    def ranks(self, table: Table) -> None:
        """Write /ranks: a row a rank."""
        self._table("ranks", "rank", RANKS, table)

    def clients(self, table: Table) -> None:
        """Write /clients: a row a client."""
        self._table("clients", "client", CLIENTS, table)

    def model(self, x: Array, personal: Array | None = None) -> None:
        """Write the server's model x (n,) and, where given, the clients' models personal (m, n)."""
        with self._clock():
            group, x = self.file["model"], np.asarray(x).ravel()
            self._growing.reserve(x.nbytes + (0 if personal is None else personal.nbytes + 8 * self.m) + 4 * METADATA)
            parameter = dimension(group, "parameter", x.size)
            put(group, "x", x, (parameter,), MODEL["x"])
            if personal is not None:
                put(group, "personal", personal, (scale(group, "client", self.m), parameter), MODEL["personal"])
            self._growing.flush()

    def finish(self, status: str, reason: str) -> None:
        """Write the rest, the status and why the run stopped; close a file on disk, keep one in memory open."""
        if not self._open:
            return
        with self._clock():
            self._open, self.ended = False, (status, reason)
            try:
                with self._growing.renewed():
                    self._write()
                    self._growing.reserve(4 * METADATA)
                    if self._chosen.stored is None:
                        self._chosen.append([np.zeros(0)] * self.count, 0, last_time=True)
                    if status == "finished" and "checkpoint" in self.file:
                        del self.file["checkpoint"]
                    for name, value in (("stop_reason", text(reason)), ("finished", now()), ("status", status)):
                        self.file.attrs.modify(name, value)
                self._growing.flush()
            finally:
                self._growing.close()

    def result(self) -> Result:
        """What has been recorded so far."""
        if self.path is not None and not self.file:
            return load(self.path)
        self.flush()
        return Result.from_file(self.file, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.finish("finished", "")
            return
        reason = str(error) if issubclass(kind, UserError | Trouble) else f"{kind.__name__}: {error}".removesuffix(": ")
        if issubclass(kind, Trouble):
            self._rows, self._picks, self._growing.full = [], [], True  # there may be no room for them
        with contextlib.suppress(OSError, RuntimeError, ValueError):  # a full disk must not hide the error it caused
            self.finish("stopped" if issubclass(kind, KeyboardInterrupt) else "failed", " ".join(reason.split()))

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        begun = time.perf_counter()
        try:
            yield
        finally:
            self.io_seconds += time.perf_counter() - begun

    def _meaning(self, name: str) -> Column:
        return COLUMNS.get(name) or self._declared.get(name, UNKNOWN)

    def _write(self) -> None:
        """Append the rows in memory to the file."""
        if self._rows:
            rows, first = self._rows, self.count
            names: dict[str, Any] = dict.fromkeys(self._columns)
            for row in rows:
                names.update(row)
            columns = {name: self._column(name, rows) for name in names}
            ids = self._chosen.rows(self._picks, first)
            with self._growing.renewed(first > 1) if self._needs_more(columns, ids) else contextlib.nullcontext():
                self._append(columns, ids, first, first + len(rows))
            self._scale[first:] = np.arange(first, self.count)  # last: a row that has its number is complete
            self._growing.flush()
        self._flushed = time.perf_counter()

    def _column(self, name: str, rows: Sequence[Mapping[str, float]]) -> Array:
        """A column of the rows, of integers unless it had or has other numbers."""
        integer, known = self._meaning(name).integer, self._columns.get(name)
        values = [row.get(name, 0 if integer else np.nan) for row in rows]
        return numbers(values, integer and (known is None or known.dtype.kind == "i"))

    def _needs_more(self, columns: Mapping[str, Array], ids: Sequence[Array]) -> bool:
        """Whether the rows need other datasets than those that the file has."""
        width = 0 if self._chosen.stored is None else self._chosen.stored.shape[1]
        return widest(ids) > width or any(
            name not in self._columns or values.dtype != self._columns[name].dtype for name, values in columns.items()
        )

    def _append(self, columns: Mapping[str, Array], ids: Sequence[Array], first: int, last: int) -> None:
        """The rows ``first`` <= r < ``last``, all but their numbers."""
        grown = pieces((last,), (CHUNK,)) - pieces((first,), (CHUNK,))
        size = grown * (len(columns) + 1) * CHUNK * 8 + self._chosen.growth(ids, first)
        if size or len(columns) > len(self._columns):
            self._growing.reserve(size + (len(columns) + 2) * METADATA)
        self._rows, self._picks, self._held, self.count = [], [], 0, last
        for name, values in columns.items():
            known, begin = self._columns.get(name), first
            if known is not None and known.dtype != values.dtype:  # integers so far, no more
                values, begin = np.concatenate([known[:first], values]), 0
                known.dims[0].detach_scale(self._scale)
                del self._rounds[name]
                known = None
            if known is None:
                known = self._columns[name] = dataset(
                    self._rounds,
                    name,
                    (0,),
                    values.dtype,
                    (self._scale,),
                    self._meaning(name),
                    chunks=(CHUNK,),
                    fillvalue=0 if values.dtype.kind == "i" else np.nan,
                )
            append(known, begin, values)
        self._chosen.append(ids, first)
        append(self._scale, first, np.full(last - first, -1))
        self._growing.flush()

    def _copy(self, before: Result, last: int) -> None:
        """Take over the rounds of another result up to ``last``."""
        names = [name for name in before.rounds if name != "round"]
        for name in names:
            self.declare(name, *before.about[name])
        for k in range(last + 1):
            ids = before.chosen(k) if k else np.zeros(0)
            self._rows.append({name: before.rounds[name][k] for name in names})
            self._picks.append(None if k and len(ids) == self.m else ids)
            if len(self._rows) >= BLOCK:
                self._write()
        self._write()

    def _table(self, name: str, axis: str, meanings: Mapping[str, Column], table: Table) -> None:
        with self._clock():
            group, columns = self.file[name], {key: np.asarray(values) for key, values in table.items()}
            length = max((len(values) for values in columns.values()), default=0)
            self._growing.reserve((len(columns) + 1) * (length * 16 + METADATA))
            along = scale(group, axis, length)
            for key, values in columns.items():
                put(group, key, values, (along,), meanings.get(key, UNKNOWN))
            self._growing.flush()
