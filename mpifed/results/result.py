"""Reading results back, from files and from memory."""

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

from mpifed.core.errors import UserError, reason
from mpifed.core.files import open_file, replacing
from mpifed.core.hdf5 import check_heaps, entry
from mpifed.core.typing import Array
from mpifed.results.certificate_group import read_certificate
from mpifed.results.columns import ALL, Columns
from mpifed.results.frames import data_frame, data_set
from mpifed.results.model_log import read_by_client, read_models, read_units, read_unseen
from mpifed.results.validate import UNREADABLE, attributes, column, columns, configuration, recorded_rounds
from mpifed.theory.statements import Certificate

FORMAT = "mpifed-result"
FORMAT_VERSION = 2  # 1: stored_round was called round
PATIENCE = (0.01, 0.05, 0.2)  # seconds between attempts: a file that is being written may change under the reader


@dataclass(eq=False)
class Result:
    """Everything that a run recorded; ``mpifed.Result`` says what the fields are.

    ``models``, ``by_client``, ``unseen``, ``units`` and ``certificate`` are read from the file when they are first
    asked for, with a UserError where it is no longer there.
    """

    path: str | None
    attrs: dict[str, Any]
    rounds: Columns
    ranks: Columns
    clients: Columns
    selection: Array
    x: Array | None
    personal: Array | None
    about: dict[str, tuple[str, str]]
    image: bytes | None = field(default=None, repr=False)

    @classmethod
    def from_file(cls, file: h5py.File, path: str | os.PathLike[str] | None = None) -> Self:
        """Read an open result file; the image of a file in memory is kept for ``save``."""
        place = file.filename if path is None and file.driver != "core" else path
        path = None if place is None else os.fspath(place)
        name = path or "this file"
        attrs = ours(file, name)
        rounds, about, selection = recorded_rounds(file, name, attrs)
        # These are written last: a run that was killed while writing them still has its rounds.
        late = {} if attrs.get("status") != "running" else {"default": Columns()}
        ranks, clients, model = (columns(file, group, name, **late) for group in ("ranks", "clients", "model"))
        m = attrs.get("clients", 0)
        if "samples" in clients and attrs.get("status") == "finished" and len(clients["samples"]) != m:
            raise UserError(f"{name} is not a valid result: clients/samples has another length than its {m} clients")
        # The file in memory is gone with the run, and a result is to be saved, or read further, after it.
        image = None
        if file.driver == "core":
            file.flush()
            image = file.id.get_file_image()
        final = (model.get("x"), model.get("personal"))
        return cls(path, attrs, rounds, ranks, clients, selection, *final, about, image)

    @property
    def status(self) -> str:
        """running, finished, stopped or failed; a run that was killed stays "running"."""
        return str(self.attrs.get("status", ""))

    @property
    def stop_reason(self) -> str:
        return str(self.attrs.get("stop_reason", ""))

    @cached_property
    def config(self) -> dict[str, Any]:
        """The experiment file."""
        return configuration(self.attrs.get("config", ""), self.path or "the result")

    @cached_property
    def models(self) -> Columns:
        """Models of the server after some rounds, as ``record.models`` says: ``round`` (k,) and ``x`` (k, n)."""
        return self._stored(read_models)

    @cached_property
    def by_client(self) -> Columns:
        """What was evaluated of each client, with ``evaluate.clients``: ``round`` (k,), ``accuracy`` (k, m) …"""
        return self._stored(read_by_client)

    @cached_property
    def unseen(self) -> Columns:
        """The same of the clients that never train, of a run with ``evaluate.unseen``, also …_after steps of their own.

        ``data_client`` (u,) are their numbers in the data, ``samples`` (u,) what they train on in these steps.
        """
        return self._stored(read_unseen)

    @cached_property
    def units(self) -> Columns:
        """The ``mean`` and ``deviation`` (n,) of each feature in the table, with ``data.standardise``; else none.

        ``x`` is of the features (a − mean)/deviation, and ``fit`` prints it for a.
        """
        return self._stored(read_units)

    @cached_property
    def certificate(self) -> Certificate | None:
        """The conditions of the method's theorem and what it proves, of a run with ``algorithm.certify``; else None."""
        return self._stored(read_certificate)

    def _stored(self, wanted: Callable[[h5py.File, str], Any]) -> Any:
        """Call ``wanted`` on the file, or on the image of one in memory."""
        if self.image is None and self.path is not None:
            return read(self.path, wanted)
        with h5py.File(io.BytesIO(self.image or b""), "r") as file:
            return wanted(file, "the result")

    @property
    def m(self) -> int:
        """Number of clients, 0 where the file does not tell."""
        return int(self.attrs.get("clients") or len(self.clients.get("samples", ())))

    @property
    def cr(self) -> int:
        """Communication rounds: the last round."""
        return int(self.rounds["round"][-1]) if len(self.rounds.get("round", ())) else 0

    @property
    def tct(self) -> float:
        """Total computation time in seconds: the last elapsed_seconds."""
        elapsed = self.rounds.get("elapsed_seconds", np.zeros(0))
        return float(elapsed[-1]) if len(elapsed) else float("nan")

    @property
    def lct(self) -> float:
        """Local computation time in seconds: mean compute_seconds of a round, round 0 left out."""
        compute = self.rounds.get("compute_seconds", np.zeros(0))[1:]
        return float(np.mean(compute)) if len(compute) else float("nan")

    def selected(self, round: int) -> Array:
        """Ids of the clients selected in a round."""
        ids = self.selection[round]
        return np.arange(self.m) if ids[0] == ALL else ids[ids >= 0]

    def save(self, path: str | os.PathLike[str], force: bool = False) -> None:
        """Write the result to a file; an existing one is replaced only with ``force``."""
        with replacing(path, force) as part:
            if self.image is not None:
                part.write_bytes(self.image)
            else:
                assert self.path is not None
                read(self.path, ours)  # where it is gone, this says so; an error of the copy would be about ``path``
                shutil.copyfile(self.path, part)

    def to_pandas(self) -> Any:
        """The rounds as a pandas DataFrame, with ``round`` as index."""
        return data_frame(self)

    def to_xarray(self) -> Any:
        """The rounds as an xarray Dataset over ``round``, with units and descriptions.

        Of a run with ``evaluate.clients`` also client_accuracy and others over ``round`` and ``client``, NaN where a
        round was not evaluated; with ``evaluate.unseen`` unseen_accuracy and others over ``unseen``.
        """
        return data_set(self)


def ours(file: h5py.File, name: str) -> dict[str, Any]:
    """The root attributes of the file ``name``. UserError where it is not a result, or one of a newer mpifed."""
    attrs = attributes(file, name)
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


def final_model(file: h5py.File, name: str) -> Array:
    status = ours(file, name).get("status")
    group = entry(file, "model", name)
    stored = None if group is None else entry(group, "x", name)
    if stored is None:
        raise UserError(f"{name} has no final model, for its status is {status}: it must be finished or stopped")
    return column(stored, "model/x", name)


def load(path: str | os.PathLike[str]) -> Result:
    """Read a result file, finished or still being written. UserError where the file is not a result."""
    return read(path, Result.from_file)


def read(path: str | os.PathLike[str], wanted: Callable[[h5py.File, str], Any]) -> Any:
    """Call ``wanted`` on the open result file and its name. UserError where the file is not a result."""
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
        # A writer may replace parts of the file between two reads of ours. What it leaves at any instant is a valid
        # file, so that reading again helps; a file that is damaged stays damaged.
        try:
            check_heaps(name)
            with opened(name) as file:
                return wanted(file, name)
        except UNREADABLE:
            if seconds is not None:
                time.sleep(seconds)
    raise UserError(f"{name} cannot be read: it is damaged or truncated")


@contextmanager
def opened(name: str) -> Iterator[h5py.File]:
    """Open an HDF5 file without a lock, also one that this program holds open in another way, such as by xarray."""
    with ExitStack() as stack:
        try:
            file = h5py.File(name, "r", locking=False)
        except OSError:
            # HDF5 finds that the file is open already and wants the same flags as then. Of a file object it does not
            # know which file it is.
            file = h5py.File(stack.enter_context(open(name, "rb")), "r")
        yield stack.enter_context(file)
