"""The result file of a run, written as it grows."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from mpifed.core.errors import RunError, UserError
from mpifed.core.roles import TEST
from mpifed.core.typing import Array
from mpifed.results.certificate_group import write_certificate
from mpifed.results.columns import CLIENTS, EVALUATED_ON, MODEL, MODELS, RANKS, UNKNOWN, UNSEEN, of_client
from mpifed.results.copied_rounds import copy
from mpifed.results.model_log import RowLog
from mpifed.results.netcdf import created, dimension, put, scale, text
from mpifed.results.provenance import now, root_attributes
from mpifed.results.result import Result, load
from mpifed.results.rounds_table import METADATA, RoundsTable
from mpifed.theory.statements import Certificate

FLUSH_SECONDS = 0.5  # a row that comes later than this after the last writing is written at once, with those that wait
FIRST = 1 << 19  # bytes that the first row takes, about: a disk without them is full before anything is replaced
GROUPS = ("rounds", "ranks", "clients", "model")
# group -> its axis and columns
TABLES = {"ranks": ("rank", RANKS), "clients": ("client", CLIENTS), "unseen": ("client", UNSEEN)}


class Recorder:
    """The result file of a run, on rank 0; as a context manager it records an exception as status ``failed``.

    ``path`` None keeps the file in memory; ``attrs`` are root attributes; ``clients`` is m. An existing file is
    replaced only with ``force``, and only when the new one is complete. A UserError before the end of round 1 removes
    the file, and so does a disk that has no room for the first row. When a run is resumed, the rounds of its result so
    far, ``before``, are copied up to round ``last``.
    ``io_seconds`` is the time spent in this class.
    Raises UserError where ``path`` cannot be written, RunError where the disk is full.
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
        self.before = before
        self.at_once = False  # write a row as soon as it is recorded
        self.ended = ("", "")  # status and reason
        self.lost = ""  # what has become of a file that is not there any more: "removed", "moved to …"
        self._open = True
        self._mine = threading.RLock()  # held by the thread that writes
        self._flushed = -np.inf  # so that row 0 is written at once
        attributes = root_attributes(attrs, clients, before, last)
        with created(path, force or before is not None, attributes, GROUPS) as self._growing:
            self.file = self._growing.file
            self._growing.safe = before is not None
            self._rounds = RoundsTable(self._growing, clients)
            if before is not None:
                copy(before, last, self._rounds, self._models, self._by_client)
                self._write()
            self._growing.reserve(FIRST)
        self.io_seconds = time.perf_counter() - begun

    @cached_property
    def _models(self) -> RowLog:
        return RowLog(self._growing, "models", partial(dimension, name="parameter"), MODELS.__getitem__)

    @cached_property
    def _by_client(self) -> dict[str, RowLog]:
        axis = partial(scale, name="client")
        roles = {name: str(self.file.attrs.get(key, TEST)) for name, key in EVALUATED_ON.items()}
        return {name: RowLog(self._growing, name, axis, partial(of_client, role=role)) for name, role in roles.items()}

    @property
    def count(self) -> int:
        return self._rounds.count

    def row(self, values: Mapping[str, float], selected: Array | None) -> None:
        """Record a round: its numbers, and the ids of the clients selected (None: all).

        Row 0 has no clients selected, whatever is given. A number that a round lacks is NaN there, or 0 in a column of
        integers.
        """
        # As _clock does, without its calls, which every round would pay for.
        with self._mine:
            begun = time.perf_counter()
            full = self._rounds.add(values, selected)
            if full or self.at_once or begun - self._flushed >= FLUSH_SECONDS:
                self._write()
            self.io_seconds += time.perf_counter() - begun

    def flush(self) -> None:
        with self._clock():
            self._write()
            self._growing.flush(lasting=True)

    def history(self, every: int) -> dict[str, list[float]]:
        """Every ``every``-th row of the result that the run was resumed from, by column."""
        if self.before is None:
            return {}
        return {name: column[: self.count : every].tolist() for name, column in self.before.rounds.items()}

    def snapshot(self, x: Array, every: int, last: bool = False) -> None:
        """Write the server's model x (n,) to /models if the last row is of an ``every``-th round (0: never).

        ``last``: of any round, for it is the last one.
        """
        round = self._rounds.last
        if every and (last or round % every == 0):
            with self._clock():
                self._write()
                self._models.add(round, {"x": np.asarray(x).ravel()})

    def by_client(self, table: str, rows: Mapping[str, Array]) -> None:
        """Write numbers of each client (m,) in the last row's round to /clients or /unseen, by name."""
        with self._clock():
            self._write()
            self._by_client[table].add(self._rounds.last, rows)

    def table(self, name: str, table: Mapping[str, ArrayLike]) -> None:
        """Write /ranks, a row a rank, or /clients or /unseen, a row a client."""
        axis, meanings = TABLES[name]
        with self._clock():
            columns = {key: np.asarray(values) for key, values in table.items()}
            length = max(map(len, columns.values()), default=0)
            self._growing.reserve((len(columns) + 1) * (length * 16 + METADATA))
            group = self.file.require_group(name)
            along = scale(group, axis, length)
            for key, values in columns.items():
                put(group, key, values, (along,), meanings.get(key, UNKNOWN))
            self._growing.flush()

    def model(self, x: Array, personal: Array | None = None) -> None:
        """Write the server's model x (n,) and, where given, the clients' models personal (m, n)."""
        with self._clock():
            x = np.asarray(x).ravel()
            self._growing.reserve(x.nbytes + (0 if personal is None else personal.nbytes + 8 * self.m) + 4 * METADATA)
            group = self.file["model"]
            parameter = dimension(group, "parameter", x.size)
            put(group, "x", x, (parameter,), MODEL["x"])
            if personal is not None:
                put(group, "personal", personal, (scale(group, "client", self.m), parameter), MODEL["personal"])
            self._growing.flush()

    def units(self, mean: Array, deviation: Array) -> None:
        """Write the means and deviations (n,) with which the features were standardised."""
        with self._clock():
            group = self.file["model"]
            self._growing.reserve(2 * mean.nbytes + 3 * METADATA)
            feature = dimension(group, "feature", mean.size)
            put(group, "mean", mean, (feature,), MODEL["mean"])
            put(group, "deviation", deviation, (feature,), MODEL["deviation"])
            self._growing.flush()

    def certificate(self, certificate: Certificate) -> None:
        """Write /certificate: the conditions of a theorem, and what it proves."""
        with self._clock():
            write_certificate(self._growing, certificate)

    def finish(self, status: str, reason: str, reduction: str = "", **more: str | int) -> None:
        """Write the remaining rows, the status, the reason of stopping, how sums reached rank 0, and more attributes.

        A file on disk is closed, one in memory stays open.
        """
        if not self._open:
            return
        with self._clock():
            self._open = False
            self.ended = (status, reason)
            try:
                # All at once: a reader that finds the status "finished" finds everything.
                with self._growing.renewed():
                    self._rounds.finish()
                    if status == "finished" and "checkpoint" in self.file:
                        del self.file["checkpoint"]
                    ended = {"reduction": reduction, "stop_reason": text(reason), "finished": now(), "status": status}
                    for name, value in (more | ended).items():
                        self.file.attrs.modify(name, value)
                self._growing.flush()
                self.lost = self._growing.fate()
            finally:
                self._growing.close()

    def abandon(self, reason: str) -> None:
        """Finish as failed, from another thread than that of the rounds, which writes nothing any more."""
        # Never released: the thread of the rounds may be in the midst of a round, and would write to a closed file.
        self._mine.acquire()
        self.finish("failed", reason)

    def result(self) -> Result:
        if self.path is not None and not self.file:
            return load(self.path)
        self.flush()
        return Result.from_file(self.file, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if kind is None:
            self.finish("finished", "")
            return
        told = issubclass(kind, UserError | RunError)
        reason = str(error) if told else f"{kind.__name__}: {error}".removesuffix(": ")
        if issubclass(kind, RunError):
            # There may be no room for the rows, and to ask for some would fail again.
            self._rounds.forget()
            self._growing.full = True
        # A full disk must not hide the error that it caused.
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            self.finish("stopped" if issubclass(kind, KeyboardInterrupt) else "failed", " ".join(reason.split()))
        # No use to anybody is a file with a mistake of the user, or without any row.
        mistake = issubclass(kind, UserError) and self.before is None and self.count <= 1
        useless = mistake or (self._growing.refused and not self._growing.safe)
        if useless and self.path and not self.lost:
            Path(self.path).unlink(missing_ok=True)

    @contextlib.contextmanager
    def _clock(self) -> Iterator[None]:
        with self._mine:
            begun = time.perf_counter()
            try:
                yield
            finally:
                self.io_seconds += time.perf_counter() - begun

    def _write(self) -> None:
        self._rounds.write()
        self._growing.safe = self._growing.safe or self.count > 0
        self.lost = self._growing.fate()
        self._flushed = time.perf_counter()
