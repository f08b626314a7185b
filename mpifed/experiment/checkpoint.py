"""Checkpoints: the state with which a run can be resumed, each part written by the rank that owns it.

The folder out.h5.checkpoint beside out.h5 holds one file of each host, with the state of its clients, one of the
server, and ``state.json``, which names the others. It is replaced last, so that a checkpoint is either complete or the
previous one. Random streams have no state. Clients are stored in client order, for any number of ranks to continue.
"""

import os
import re
import shutil
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.core import checksummed
from mpifed.core.checksummed import check_array
from mpifed.core.errors import RunError, UserError, reason
from mpifed.core.typing import Array
from mpifed.features.settings import Checkpoint
from mpifed.federation.callback import Callback, export_callbacks
from mpifed.federation.method import FederatedMethod, ServerState
from mpifed.federation.server import Federation

FilePath = str | os.PathLike[str]
SUFFIX = ".checkpoint"  # appended to the name of the result; a folder that is being removed begins with a dot
STATE = "state.json"
PARTS = re.compile(r"\d+-\w+\.npz|\.mpifed-\w+")  # names of its other files; the last: an interrupted write
StoredCount = Annotated[int, Meta(ge=0, lt=2**62)]
Seconds = Annotated[float, Meta(ge=0)]
TYPES = {"int": np.dtype(np.int64), "float": np.dtype(float), "bool": np.dtype(bool)}  # of stored numbers


class StoredCheckpoint(msgspec.Struct):
    """A checkpoint on disk; ``kind`` is the type of the server's state, ``kinds`` are the types of its numbers."""

    serial: StoredCount
    round: StoredCount
    cuts: Annotated[list[StoredCount], Meta(min_length=2)]
    elapsed: Seconds
    ledger: dict[str, StoredCount]
    kind: str
    kinds: dict[str, Annotated[str, Meta(pattern="^(int|float|bool)$")]]
    folder: str = ""
    simulated: Seconds = 0.0
    sent: str = ""  # the client method that clients under way run
    redrawn: StoredCount = 0  # replayed rounds that the server's state counts

    def read_clients(self, lo: int, hi: int) -> dict[str, Array]:
        """Return the state of the clients lo <= i < hi: name -> (hi − lo, …). UserError where a file is damaged."""
        parts = []
        for a, b in zip(self.cuts, self.cuts[1:], strict=False):
            if a < hi and lo < b:
                part = checksummed.read(part_path(self.folder, self.serial, a))
                for name, rows in part.items():
                    check_array(f"{name} of the clients {a} to {b - 1}", rows, (b - a, *rows.shape[1:]), rows.dtype)
                parts.append({name: rows[max(lo - a, 0) : hi - a] for name, rows in part.items()})
        names = dict.fromkeys(name for part in parts for name in part)
        return {name: np.concatenate([rows_or_zeros(name, part, parts) for part in parts]) for name in names}

    def read_server(self, algorithm: FederatedMethod) -> tuple[Any, Array]:
        """Return the state of the server of ``algorithm``, and how often each client was selected (m,)."""
        modules = [vars(sys.modules[base.__module__]) for base in type(algorithm).__mro__]
        state_class: Any = next((module[self.kind] for module in modules if self.kind in module), None)
        fields = getattr(state_class, "_fields", ())
        if not callable(state_class) or "x" not in fields:
            raise UserError(
                f"the checkpoint in {self.folder} was written by another program: "
                f"{algorithm.label()} has no {self.kind}"
            )
        arrays = self.read_arrays()
        times_selected = arrays.pop("times selected")
        values = {name: value[()] for name, value in arrays.items() if " " not in name}
        if unknown := values.keys() - {*fields}:
            raise ValueError(
                f"the state of its server has {', '.join(sorted(unknown))}, but {self.kind} has no such field"
            )
        for name in values.keys() & self.kinds:
            check_array(f"{name} of its server", values[name], (), TYPES[self.kinds[name]])
            values[name] = values[name].item()
        return state_class(**dict.fromkeys(fields) | values), times_selected

    def read_arrays(self) -> dict[str, Array]:
        """Return all arrays of rank 0; names with a blank do not belong to the server's state."""
        return checksummed.read(part_path(self.folder, self.serial, "server"))


class CheckpointWriter:
    """Writes the checkpoints of a run at rank 0; with ``path`` None it writes none.

    ``saved`` is the checkpoint from which the run was resumed, if any; ``replayed`` counts the rounds replayed so far.
    """

    def __init__(
        self,
        options: Checkpoint,
        path: FilePath | None,
        saved: StoredCheckpoint | None,
        cuts: Sequence[int],
        replayed: int = 0,
        callbacks: Sequence[Callback] = (),
    ) -> None:
        self.callbacks = callbacks
        self.saved = saved
        self.replayed = replayed
        self.options = options
        self.cuts = [int(cut) for cut in cuts]
        self.folder = None if path is None else checkpoint_folder(path)
        self.serial = time.time_ns() // 1000 if saved is None else saved.serial  # unique to this run
        self.round = -1 if saved is None else saved.round  # of the last checkpoint
        if saved is None:
            self.drop()  # it is of an earlier run of this name
        self.last = time.monotonic()
        self.seconds = 0.0

    def due(self, round: int) -> bool:
        """Return True if the next checkpoint is due after ``round``."""
        every, rounds = self.options.every_seconds, self.options.every_rounds
        return self.folder is not None and (
            (every > 0 and time.monotonic() - self.last >= every) or (rounds > 0 and round % rounds == 0)
        )

    def save(self, fed: Federation, server: ServerState, round: int, elapsed: float) -> bool:
        """Write a checkpoint of the state after ``round``, if there is none; return False without a file to resume.

        Raises RunError where the disk refuses it; the previous one stays.
        """
        if self.folder is None or self.round == round:
            return self.folder is not None
        begun = time.perf_counter()
        try:
            os.makedirs(os.path.realpath(self.folder), exist_ok=True)  # it may be a link to a larger disk
            serial = self.serial + 1
            fed.save(serial)
            values = {name: value for name, value in server._asdict().items() if value is not None}
            kinds = {name: type(value).__name__ for name, value in values.items() if type(value) in (int, float, bool)}
            arrays = {**values, **fed.export_state(), **export_callbacks(self.callbacks)}
            arrays["times selected"] = fed.times_selected
            checksummed.write(part_path(self.folder, serial, "server"), arrays)
            ledger = {name: int(value) for name, value in vars(fed.ledger).items()}
            saved = StoredCheckpoint(serial, round, self.cuts, elapsed, ledger, type(server).__name__, kinds)
            saved.redrawn = self.replayed
            saved.simulated = fed.schedule.seconds
            saved.sent = fed.schedule.under_way
            checksummed.write_text(self.folder / STATE, msgspec.json.encode(saved))
        except OSError as error:
            raise RunError(
                f"the checkpoint of round {round} cannot be written to {self.folder}: "
                f"{reason(error)}; resume goes on from the previous one"
            ) from None
        self.serial = serial
        self.round = round
        self.last = time.monotonic()
        self.remove_files(f"{serial}-")
        self.seconds += time.perf_counter() - begun
        return True

    def remove_files(self, keep: str | None = None) -> None:
        """Remove the files of checkpoints whose names do not begin with ``keep``, and no others."""
        if self.folder is not None and self.folder.is_dir():
            for file in self.folder.iterdir():
                if PARTS.fullmatch(file.name) and (keep is None or not file.name.startswith(keep)):
                    file.unlink(missing_ok=True)

    def drop(self) -> None:
        """Remove the checkpoint."""
        if self.folder is not None:
            remove_folder(self.folder)
            self.remove_files()  # where the folder is still there, because it is a link


def remove_folder(directory: Path) -> None:
    """Remove the folder of a checkpoint: rename it first, so that no part of it can be left under its name.

    Where it is a link of the user's, the link stays, and the state file in its target is removed.
    """
    renamed = directory.with_name(f".{directory.name}")
    if directory.is_symlink():
        (directory / STATE).unlink(missing_ok=True)
        return
    if renamed.is_symlink():
        renamed.unlink()
    shutil.rmtree(renamed, ignore_errors=True)
    if directory.is_dir():
        directory.rename(renamed)
        shutil.rmtree(renamed)


def rows_or_zeros(name: str, part: dict[str, Array], parts: list[dict[str, Array]]) -> Array:
    """Return an array of the clients of a part; zeros where it holds compressed uploads and none has uploaded yet."""
    if name in part:
        return part[name]
    like = next(other[name] for other in parts if name in other)
    return np.zeros((len(part["compute seconds"]), *like.shape[1:]), like.dtype)


def checkpoint_folder(path: FilePath) -> Path:
    """Return the folder with the checkpoints of a result file."""
    return Path(os.path.realpath(path) + SUFFIX)


def part_path(directory: FilePath, serial: int, owner: int | str) -> Path:
    """Return the file of the host whose first client is ``owner``, or of the server."""
    return Path(directory) / f"{serial}-{owner}.npz"


def read_checkpoint(path: FilePath) -> StoredCheckpoint | None:
    """Read the last checkpoint of a result file; None if there is none. UserError where it is damaged."""
    file = checkpoint_folder(path) / STATE
    text = checksummed.read_text(file)
    if text is None:
        return None
    try:
        saved = msgspec.json.decode(text, type=StoredCheckpoint)
        if saved.cuts[0] or any(b < a for a, b in pairwise(saved.cuts)):
            raise ValueError(f"cuts are {saved.cuts}, but must rise from 0")
    except (msgspec.MsgspecError, ValueError) as error:
        raise UserError(f"checkpoint {file} cannot be read: {str(error).splitlines()[0]}") from None
    saved.folder = str(file.parent)
    return saved
