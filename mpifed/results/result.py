"""Result files read back, and results in memory, also as tables of pandas and xarray."""

import io
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import h5py
import numpy as np

from mpifed.core.errors import UserError, import_required, reason
from mpifed.core.files import open_file, replace_file
from mpifed.core.hdf5 import check_heaps, get_entry
from mpifed.core.roles import TEST
from mpifed.core.typing import Array
from mpifed.results.certificate_group import read_certificate
from mpifed.results.columns import ALL, EVALUATED_ON, Columns, client_column_info
from mpifed.results.model_log import read_by_client, read_models, read_units, read_unseen
from mpifed.results.validate import (
    UNREADABLE,
    parse_configuration,
    read_about,
    read_attributes,
    read_column,
    read_columns,
    read_rounds,
    require_valid,
)
from mpifed.theory.statements import Certificate

FORMAT = "mpifed-result"
FORMAT_VERSION = 2  # 1: stored_round was called round
PATIENCE = (0.01, 0.05, 0.2)  # seconds between attempts: a file that is being written may change while it is read


@dataclass(eq=False)
class RunRecord:
    """A record of a run in memory; ``mpifed.Result`` explains the fields.

    ``about``, ``models``, ``by_client``, ``unseen``, ``units`` and ``certificate`` are read from the file when they are
    first used, with a UserError where the file is gone.
    """

    path: str | None
    attrs: dict[str, Any]
    rounds: Columns
    ranks: Columns
    clients: Columns
    selection: Array
    x: Array | None
    personal: Array | None
    image: bytes | None = field(default=None, repr=False)

    @classmethod
    def from_file(cls, file: h5py.File, path: str | os.PathLike[str] | None = None) -> Self:
        """Read an open result file; the image of a file in memory is kept for ``save``."""
        filename = file.filename if path is None and file.driver != "core" else path
        path = None if filename is None else os.fspath(filename)
        name = path or "this file"
        attrs = result_attributes(file, name)
        rounds, selection = read_rounds(file, name, attrs)
        # These are written last: without them a killed run still has its rounds.
        optional = {} if attrs.get("status") != "running" else {"default": Columns()}
        ranks, clients, model = (read_columns(file, group, name, **optional) for group in ("ranks", "clients", "model"))
        m = attrs.get("clients", 0)
        right = attrs.get("status") != "finished" or len(clients.get("samples", range(m))) == m
        require_valid(right, name, f"clients/samples has another length than its {m} clients")
        # A file in memory disappears with the run, but its result is saved, or read further, afterwards.
        image = None
        if file.driver == "core":
            file.flush()
            image = file.id.get_file_image()
        return cls(path, attrs, rounds, ranks, clients, selection, model.get("x"), model.get("personal"), image)

    @property
    def status(self) -> str:
        """The status: running, finished, stopped or failed; a run that was killed stays "running"."""
        return str(self.attrs.get("status", ""))

    @property
    def stop_reason(self) -> str:
        return str(self.attrs.get("stop_reason", ""))

    @cached_property
    def config(self) -> dict[str, Any]:
        """The experiment file as tables."""
        return parse_configuration(self.attrs.get("config", ""), self.path or "the result")

    @cached_property
    def about(self) -> dict[str, tuple[str, str]]:
        """The unit and the description of each column of ``rounds``."""
        return self.read(read_about)

    @cached_property
    def models(self) -> Columns:
        """The models of the server after some rounds, with ``record.models``: ``round`` (k,) and ``x`` (k, n)."""
        return self.read(read_models)

    @cached_property
    def by_client(self) -> Columns:
        """The numbers of each client, with ``evaluate.clients``: ``round`` (k,), ``accuracy`` (k, m) …"""
        return self.read(read_by_client)

    @cached_property
    def unseen(self) -> Columns:
        """The results of the clients that never train, with ``evaluate.unseen``; …_after: after local steps of their
        own.

        ``data_client`` (u,) are their numbers in the data, ``samples`` (u,) the samples that these steps train on.
        """
        return self.read(read_unseen)

    @cached_property
    def units(self) -> Columns:
        """The ``mean`` and ``deviation`` (n,) of each feature of the table, with ``data.standardise``; else none.

        ``x`` belongs to the features (a − mean)/deviation, and ``fit`` prints it for a.
        """
        return self.read(read_units)

    @cached_property
    def certificate(self) -> Certificate | None:
        """The conditions and bounds of the method's theorem, with ``algorithm.certify``; else None."""
        return self.read(read_certificate)

    def read(self, reader: Callable[[h5py.File, str], Any]) -> Any:
        """Apply ``reader`` to the file, or to the image of one in memory."""
        if self.image is None and self.path is not None:
            return read_result_file(self.path, reader)
        with h5py.File(io.BytesIO(self.image or b""), "r") as file:
            return reader(file, "the result")

    @property
    def m(self) -> int:
        """The number of clients, 0 where the file does not tell."""
        return int(self.attrs.get("clients") or len(self.clients.get("samples", ())))

    @property
    def cr(self) -> int:
        """The number of communication rounds: the last round."""
        return int(self.rounds["round"][-1]) if len(self.rounds.get("round", ())) else 0

    @property
    def tct(self) -> float:
        """The total computation time in seconds: the last elapsed_seconds."""
        elapsed = self.rounds.get("elapsed_seconds", np.zeros(0))
        return float(elapsed[-1]) if len(elapsed) else float("nan")

    @property
    def lct(self) -> float:
        """The local computation time in seconds: the mean compute_seconds of a round, without round 0."""
        compute = self.rounds.get("compute_seconds", np.zeros(0))[1:]
        return float(np.mean(compute)) if len(compute) else float("nan")

    def selected(self, round: int) -> Array:
        """Return the ids of the clients selected in a round."""
        ids = self.selection[round]
        return np.arange(self.m) if ids[0] == ALL else ids[ids >= 0]

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the result to a file; an existing one is replaced only with ``force``."""
        with replace_file(path, force) as part:
            if self.image is not None:
                part.write_bytes(self.image)
            else:
                assert self.path is not None
                # An error where it is gone; one of the copy would name ``path``.
                read_result_file(self.path, result_attributes)
                shutil.copyfile(self.path, part)

    def to_pandas(self) -> Any:
        """Return the rounds as a pandas DataFrame, with ``round`` as index."""
        return to_data_frame(self)

    def to_xarray(self) -> Any:
        """Return the rounds as an xarray Dataset over ``round``, with units and descriptions.

        With ``evaluate.clients`` it also has client_accuracy and others over ``round`` and ``client``, NaN where a
        round was not evaluated; with ``evaluate.unseen`` unseen_accuracy and others over ``unseen``.
        """
        return to_data_set(self)


def late(name: str) -> Any:
    """Return a field that is read from the file when it is first used."""
    return cached_property(lambda record: getattr(record.whole, name))


class RoundsFirst(RunRecord):
    """A record of a file of which attributes and rounds are read at once, all else when it is first used."""

    ranks, clients, selection, x, personal = map(late, ("ranks", "clients", "selection", "x", "personal"))

    @classmethod
    def from_file(cls, file: h5py.File, path: str | os.PathLike[str] | None = None) -> Self:
        record = cls.__new__(cls)
        record.path = os.fspath(file.filename if path is None else path)
        record.attrs = result_attributes(file, record.path)
        record.rounds, _ = read_rounds(file, record.path, record.attrs, selected=False)
        return record

    @cached_property
    def whole(self) -> RunRecord:
        assert self.path is not None
        return load(self.path)


def result_attributes(file: h5py.File, name: str) -> dict[str, Any]:
    """Return the root attributes of the file ``name``. UserError for no result, or one of a newer mpifed."""
    attrs = read_attributes(file, name)
    if attrs.get("format") != FORMAT:
        raise UserError(
            f"{name} is an HDF5 file but not a result of mpifed: it lacks the attribute format = {FORMAT!r}"
        )
    if attrs.get("format_version", 0) > FORMAT_VERSION:
        raise UserError(
            f"{name} has result format {attrs['format_version']}, which a newer mpifed wrote: "
            f"this version reads formats up to {FORMAT_VERSION}"
        )
    return attrs


def read_final_model(file: h5py.File, name: str) -> Array:
    status = result_attributes(file, name).get("status")
    group = get_entry(file, "model", name)
    stored = None if group is None else get_entry(group, "x", name)
    if stored is None:
        raise UserError(f"{name} has no final model, for its status is {status}: it must be finished or stopped")
    return read_column(stored, "model/x", name)


def load(path: str | os.PathLike[str], kind: type[RunRecord] = RunRecord) -> RunRecord:
    """Read a result file, finished or still being written. UserError where the file is not a result."""
    record: RunRecord = read_result_file(path, kind.from_file)
    return record


def read_result_file(path: str | os.PathLike[str], reader: Callable[[h5py.File, str], Any]) -> Any:
    """Apply ``reader`` to the open result file and its name. UserError where the file is not a result."""
    name = os.fspath(path)
    try:
        if os.path.isdir(name):
            raise UserError(f"{name} is a folder: name the result files in it, {os.path.join(name, '*.h5')}")
        if not os.path.isfile(name) and os.path.exists(name):
            raise UserError(f"{name} is not a result file: it is a pipe or a device")
        with open_file(name) as file:
            empty = not file.read(1)
    except (OSError, ValueError) as error:
        raise UserError(f"{name} cannot be read: {reason(error)}") from None
    if empty or not h5py.is_hdf5(name):
        raise UserError(f"{name} is not a result file: " + ("it is empty" if empty else "it is not HDF5"))
    for seconds in (*PATIENCE, None):
        # A writer may replace parts of the file between two reads. At any instant the file is valid, so reading again
        # helps; a damaged file stays damaged.
        try:
            check_heaps(name)
            with open_hdf5(name) as file:
                return reader(file, name)
        except UNREADABLE:
            if seconds is not None:
                time.sleep(seconds)
    raise UserError(f"{name} cannot be read: it is damaged or truncated")


@contextmanager
def open_hdf5(name: str) -> Iterator[h5py.File]:
    """Open an HDF5 file without a lock, even if this program has it open otherwise, by xarray for example."""
    with ExitStack() as stack:
        try:
            file = h5py.File(name, "r", locking=False)
        except OSError:
            # HDF5 refuses a file that is open with other flags. It cannot tell which file a file object is.
            file = h5py.File(stack.enter_context(open(name, "rb")), "r")
        yield stack.enter_context(file)


def to_data_frame(result: RunRecord) -> Any:
    pandas = import_required("pandas", "to_pandas needs pandas: pip install pandas")
    frame = pandas.DataFrame({key: values for key, values in result.rounds.items() if key != "round"})
    frame.index = pandas.Index(result.rounds["round"], name="round")
    return frame


def to_data_set(result: RunRecord) -> Any:
    """Return the rounds as an xarray Dataset over ``round``, see ``Result.to_xarray``."""
    xarray = import_required("xarray", "to_xarray needs xarray: pip install xarray")
    about = {key: {"units": unit, "description": words} for key, (unit, words) in result.about.items()}
    variables: dict[str, Any] = {key: ("round", values, about[key]) for key, values in result.rounds.items()}
    evaluate = result.config.get("evaluate", {})
    for option, name, axis in (("clients", "by_client", "client"), ("unseen", "unseen", "unseen")):
        if evaluate.get(option):
            role = str(result.attrs.get(EVALUATED_ON[option], TEST))
            variables |= client_variables(result, getattr(result, name), axis, role)
    return xarray.Dataset(variables, attrs=result.attrs)


def client_variables(result: RunRecord, tables: Columns, axis: str, role: str) -> dict[str, Any]:
    """Return the tables of clients over all rounds and ``axis``, NaN where a round was not evaluated."""
    rounds = tables["round"]
    # A killed run may have written one row more: numbers of clients reach the file before the row of their round.
    complete = rounds < len(result.rounds["round"])
    variables = {}
    for key, values in tables.items():
        if values.ndim == 2:
            table = np.full((len(result.rounds["round"]), values.shape[1]), np.nan)
            table[rounds[complete]] = values[complete]
            meaning = client_column_info(key, role)
            about = {"units": meaning.unit, "description": meaning.description}
            variables[f"{axis}_{key}"] = (("round", axis), table, about)
    return variables
