"""The result file of a run, written as it grows."""

import contextlib
import os
import threading
import time
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import h5py
import numpy as np
from numpy.typing import ArrayLike

from mpifed.core.errors import RunError, UserError
from mpifed.core.roles import TEST
from mpifed.core.typing import Array
from mpifed.results.certificate_group import write_certificate
from mpifed.results.columns import CLIENTS, EVALUATED_ON, MODEL, MODELS, RANKS, UNKNOWN, UNSEEN, client_column_info
from mpifed.results.model_log import RowLog, open_models
from mpifed.results.netcdf import create_file, require_dimension, require_scale, storable_text, write_dataset
from mpifed.results.provenance import root_attributes, utc_now
from mpifed.results.result import RunRecord, load, read_result_file
from mpifed.results.rounds_table import METADATA, RoundsTable
from mpifed.theory.statements import Certificate

FLUSH_SECONDS = 0.5  # a row is written at once, with all that wait, if the last write is longer ago
FIRST = 1 << 19  # bytes of the first row, about: a disk without them fails before anything is replaced
GROUPS = ("rounds", "ranks", "clients", "model")
# group -> its axis and columns
TABLES = {"ranks": ("rank", RANKS), "clients": ("client", CLIENTS), "unseen": ("client", UNSEEN)}


class Recorder:
    """The writer of a run's result file, on rank 0; as a context manager it records an exception as status ``failed``.

    ``path`` None keeps the file in memory; ``attrs`` are root attributes; ``clients`` is m. An existing file is
    replaced only with ``force``, and only when the new one is complete. A UserError before the end of round 1 removes
    the file, and so does a disk that has no room for the first row. When a run is resumed, the rounds of its earlier
    result, ``before``, are copied up to round ``last``. ``io_seconds`` is the time spent in this class. Raises
    UserError where ``path`` cannot be written, RunError where the disk is full.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        attrs: Mapping[str, Any],
        clients: int,
        force: bool = False,
        before: RunRecord | None = None,
        last: int = -1,
    ) -> None:
        begun = time.perf_counter()
        self.path = None if path is None else os.fspath(path)
        self.m = clients
        self.before = before
        self.at_once = False  # write a row as soon as it is recorded
        self.ended = ("", "")  # status and reason
        self.lost = ""  # the fate of a file that is gone: "removed", "moved to …"
        self._open = True
        self._mine = threading.RLock()  # held by the thread that writes
        self._flushed = -np.inf  # so that row 0 is written at once
        attributes = root_attributes(attrs, clients, before, last)
        with create_file(path, force or before is not None, attributes, GROUPS) as self._growing:
            self.file = self._growing.file
            self._growing.safe = before is not None
            self._rounds = RoundsTable(self._growing, clients)
            if before is not None:
                copy_rounds(before, last, self._rounds, self._models, self._by_client)
                self._write()
            self._growing.reserve(FIRST)
        self.io_seconds = time.perf_counter() - begun

    @cached_property
    def _models(self) -> RowLog:
        return RowLog(self._growing, "models", partial(require_dimension, name="parameter"), MODELS.__getitem__)

    @cached_property
    def _by_client(self) -> dict[str, RowLog]:
        axis = partial(require_scale, name="client")
        roles = {name: str(self.file.attrs.get(key, TEST)) for name, key in EVALUATED_ON.items()}
        return {
            name: RowLog(self._growing, name, axis, partial(client_column_info, role=role))
            for name, role in roles.items()
        }

    @property
    def count(self) -> int:
        return self._rounds.count

    def row(self, values: Mapping[str, float], selected: Array | None) -> None:
        """Record a round: its numbers, and the ids of the clients selected (None: all).

        Row 0 has no clients selected, whatever ``selected`` says. A number that a round lacks is NaN, or 0 in a column
        of integers.
        """
        # Like _clock, without its calls, which every round would pay for.
        with self._mine:
            begun = time.perf_counter()
            many = self._rounds.add(values, selected)
            if many or self.at_once or begun - self._flushed >= FLUSH_SECONDS:
                self._write()
            self.io_seconds += time.perf_counter() - begun

    def flush(self) -> None:
        with self._clock():
            self._write()
            self._growing.flush(lasting=True)

    def earlier_rows(self, every: int) -> dict[str, list[float]]:
        """Return every ``every``-th row of the result that the run was resumed from, by column."""
        if self.before is None:
            return {}
        return {name: column[: self.count : every].tolist() for name, column in self.before.rounds.items()}

    def write_snapshot(self, x: Array, every: int, last: bool = False) -> None:
        """Write the server's model x (n,) to /models if the last row is of an ``every``-th round (0: never).

        ``last``: write it whatever the round, because it is the last one.
        """
        round = self._rounds.last
        if every and (last or round % every == 0):
            with self._clock():
                self._write()
                self._models.add(round, {"x": np.asarray(x).ravel()})

    def by_client(self, table: str, rows: Mapping[str, Array]) -> None:
        """Write numbers of each client (m,) in the last row's round to /clients or /unseen, by name."""
        if table == "clients":
            require_length(rows, self.m)
        with self._clock():
            self._write()
            self._by_client[table].add(self._rounds.last, rows)

    def table(self, name: str, table: Mapping[str, ArrayLike]) -> None:
        """Write /ranks, with a row for each rank, or /clients or /unseen, with a row for each client."""
        axis, meanings = TABLES[name]
        with self._clock():
            columns = {key: np.asarray(values) for key, values in table.items()}
            length = max(map(len, columns.values()), default=0)
            require_length(columns, length)
            self._growing.reserve((len(columns) + 1) * (length * 16 + METADATA))
            group = self.file.require_group(name)
            row_axis = require_scale(group, axis, length)
            for key, values in columns.items():
                write_dataset(group, key, values, (row_axis,), meanings.get(key, UNKNOWN))
            self._growing.flush()

    def best(self, round: int, x: Array | None) -> None:
        """Write the round of the best evaluation and, where given, its model x (n,)."""
        with self._clock():
            self.file.attrs.modify("best_round", round)
            if x is not None:
                group = self.file["model"]
                self._growing.reserve(x.nbytes + METADATA)
                write_dataset(group, "best", x, (require_dimension(group, "parameter", x.size),), MODEL["best"])
            self._growing.flush()

    def model(self, x: Array, personal: Array | None = None) -> None:
        """Write the server's model x (n,) and, where given, the clients' models personal (m, n)."""
        with self._clock():
            x = np.asarray(x).ravel()
            self._growing.reserve(x.nbytes + (0 if personal is None else personal.nbytes + 8 * self.m) + 4 * METADATA)
            group = self.file["model"]
            parameter = require_dimension(group, "parameter", x.size)
            write_dataset(group, "x", x, (parameter,), MODEL["x"])
            if personal is not None:
                axes = (require_scale(group, "client", self.m), parameter)
                write_dataset(group, "personal", personal, axes, MODEL["personal"])
            self._growing.flush()

    def units(self, mean: Array, deviation: Array) -> None:
        """Write the means and deviations (n,) with which the features were standardised."""
        with self._clock():
            group = self.file["model"]
            self._growing.reserve(2 * mean.nbytes + 3 * METADATA)
            feature = require_dimension(group, "feature", mean.size)
            write_dataset(group, "mean", mean, (feature,), MODEL["mean"])
            write_dataset(group, "deviation", deviation, (feature,), MODEL["deviation"])
            self._growing.flush()

    def certificate(self, certificate: Certificate) -> None:
        """Write /certificate: the conditions of a theorem, and the bounds that it proves."""
        with self._clock():
            write_certificate(self._growing, certificate)

    def finish(self, status: str, reason: str, reduction: str = "", **more: str | int) -> None:
        """Write the remaining rows, the status, the reason of stopping, the reduction of sums, and more attributes.

        A file on disk is closed, one in memory stays open.
        """
        if not self._open:
            return
        with self._clock():
            self._open = False
            self.ended = (status, reason)
            try:
                # All at once: the status "finished" means that everything is there.
                with self._growing.change_atomically():
                    self._rounds.finish()
                    if status == "finished" and "checkpoint" in self.file:
                        del self.file["checkpoint"]
                    ended = {"reduction": reduction, "stop_reason": storable_text(reason), "finished": utc_now()}
                    for name, value in (more | ended | {"status": status}).items():
                        self.file.attrs.modify(name, value)
                self._growing.flush()
                self.lost = self._growing.describe_fate()
            finally:
                self._growing.close()

    def abandon(self, reason: str) -> None:
        """Finish as failed, from another thread than that of the rounds, which cannot write any more."""
        # Never released: the thread of the rounds may be within a round, and would write to a closed file.
        self._mine.acquire()
        self.finish("failed", reason)

    def result(self) -> RunRecord:
        if self.path is not None and not self.file:
            return load(self.path)
        self.flush()
        return RunRecord.from_file(self.file, self.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, error_class: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if error_class is None:
            self.finish("finished", "")
            return
        has_sentence = issubclass(error_class, UserError | RunError)
        reason = str(error) if has_sentence else f"{error_class.__name__}: {error}".removesuffix(": ")
        if issubclass(error_class, RunError):
            # There may be no room for the rows, and reserving some would fail again.
            self._rounds.clear_rows()
            self._growing.full = True
        # A full disk must not hide the error that it caused.
        with contextlib.suppress(OSError, RuntimeError, ValueError):
            self.finish("stopped" if issubclass(error_class, KeyboardInterrupt) else "failed", " ".join(reason.split()))
        # A file of a mistaken study, or without any row, is of no use.
        mistake = issubclass(error_class, UserError) and self.before is None and self.count <= 1
        useless = mistake or (self._growing.has_failed and not self._growing.safe)
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
        self.lost = self._growing.describe_fate()
        self._flushed = time.perf_counter()


def copy_rounds(
    before: RunRecord, last: int, rounds: RoundsTable, models: RowLog, by_client: Mapping[str, RowLog]
) -> None:
    """Copy the rounds of ``before`` up to round ``last``, with their models and numbers of clients."""
    names = [name for name in before.rounds if name != "round"]
    for k in range(last + 1):
        ids = before.selected(k)
        # As the run itself wrote them: None lets a table of many clients store "all" as one number.
        if rounds.add({name: before.rounds[name][k] for name in names}, None if len(ids) == before.m else ids):
            rounds.write()
    rounds.write()
    for part, log in by_client.items():
        if before.config.get("evaluate", {}).get(part):
            stored = before.by_client if part == "clients" else before.unseen
            for k, round in enumerate(number for number in stored["round"].tolist() if number <= last):
                log.add(round, {name: table[k] for name, table in stored.items() if table.ndim == 2})
    every = before.config.get("record", {}).get("models", 0)
    if every and before.path is not None:
        read_result_file(before.path, partial(copy_models, models, every, last))


def copy_models(log: RowLog, every: int, last: int, file: h5py.File, name: str) -> None:
    """Copy every ``every``-th model up to round ``last``, except one stored because a run ended there."""
    # One at a time from the open dataset: all models may not fit in memory.
    numbers, models = open_models(file, name)
    for round, x in zip(numbers.tolist(), models or (), strict=False):
        if round <= last and round % every == 0:
            log.add(round, {"x": x})


def require_length(columns: Mapping[str, Array], length: int) -> None:
    """Raise ValueError unless all columns of a table have so many numbers."""
    for name, values in columns.items():
        if len(values) != length:
            raise ValueError(f"{name} has {len(values)} numbers, and its table {length} rows")
