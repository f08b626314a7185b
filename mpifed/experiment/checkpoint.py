"""Checkpoints: what resume needs, each part written by the rank that owns it.

The folder out.h5.checkpoint beside out.h5 holds one file of each host, with the state of its clients, one of the
server, and ``state.json``, which names the others. It is replaced last, so that a checkpoint is either complete or the
previous one. Random streams have no state. Clients are stored in client order, so that any number of ranks can go on.
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
from mpifed.federation.method import Method, ServerState
from mpifed.federation.server import Federation

Name = str | os.PathLike[str]
SUFFIX = ".checkpoint"  # of the folder, behind the name of the result; while it is removed it begins with a dot
STATE = "state.json"
PARTS = re.compile(r"\d+-\w+\.npz|\.mpifed-\w+")  # names of the other files in it, the last one of what was cut off
Count = Annotated[int, Meta(ge=0, lt=2**62)]
Seconds = Annotated[float, Meta(ge=0)]
TYPES = {"int": np.dtype(np.int64), "float": np.dtype(float), "bool": np.dtype(bool)}  # in which numbers are stored


class Saved(msgspec.Struct):
    """A checkpoint on disk. ``kind`` is the type of the server's state, ``kinds`` are those of its numbers."""

    serial: Count
    round: Count
    cuts: Annotated[list[Count], Meta(min_length=2)]
    elapsed: Seconds
    ledger: dict[str, Count]
    kind: str
    kinds: dict[str, Annotated[str, Meta(pattern="^(int|float|bool)$")]]
    folder: str = ""
    simulated: Seconds = 0.0
    sent: str = ""  # what clients that are under way run
    redrawn: Count = 0  # rounds run again that the server's state counts

    def clients(self, lo: int, hi: int) -> dict[str, Array]:
        """The state of the clients lo <= i < hi: name -> (hi − lo, …). UserError where a file is damaged."""
        found = []
        for a, b in zip(self.cuts, self.cuts[1:], strict=False):
            if a < hi and lo < b:
                part = checksummed.read(piece(self.folder, self.serial, a))
                for name, rows in part.items():
                    check_array(f"{name} of the clients {a} to {b - 1}", rows, (b - a, *rows.shape[1:]), rows.dtype)
                found.append({name: rows[max(lo - a, 0) : hi - a] for name, rows in part.items()})
        names = dict.fromkeys(name for part in found for name in part)
        return {name: np.concatenate([rows_of(name, part, found) for part in found]) for name in names}

    def server(self, algorithm: Method) -> tuple[Any, Array]:
        """The state of the server of ``algorithm``, and how often each client was selected (m,)."""
        modules = [vars(sys.modules[base.__module__]) for base in type(algorithm).__mro__]
        kind: Any = next((module[self.kind] for module in modules if self.kind in module), None)
        fields = getattr(kind, "_fields", ())
        if not callable(kind) or "x" not in fields:
            raise UserError(
                f"the checkpoint in {self.folder} was written by another program: "
                f"{algorithm.label()} has no {self.kind}"
            )
        arrays = self.arrays()
        times = arrays.pop("times selected")
        values = {name: value[()] for name, value in arrays.items() if " " not in name}
        if others := values.keys() - {*fields}:
            raise ValueError(
                f"the state of its server has {', '.join(sorted(others))}, but {self.kind} has no such field"
            )
        for name in values.keys() & self.kinds:
            check_array(f"{name} of its server", values[name], (), TYPES[self.kinds[name]])
            values[name] = values[name].item()
        return kind(**dict.fromkeys(fields) | values), times

    def arrays(self) -> dict[str, Array]:
        """All that rank 0 has written; names with a blank are not those of the server's state."""
        return checksummed.read(piece(self.folder, self.serial, "server"))


class CheckpointWriter:
    """Rank 0: writes the checkpoints of a run whose result is at ``path`` (None: writes none).

    ``saved`` is the checkpoint that the run was resumed from, if it was; ``redrawn`` are the rounds run again so far.
    """

    def __init__(
        self, options: Checkpoint, path: Name | None, saved: Saved | None, cuts: Sequence[int], redrawn: int = 0
    ) -> None:
        self.saved = saved
        self.redrawn = redrawn
        self.options = options
        self.cuts = [int(cut) for cut in cuts]
        self.folder = None if path is None else folder(path)
        self.serial = time.time_ns() // 1000 if saved is None else saved.serial  # unique to this run
        self.round = -1 if saved is None else saved.round  # of the last one
        if saved is None:
            self.drop()  # of an earlier run of this name
        self.last = time.monotonic()
        self.seconds = 0.0

    def due(self, round: int) -> bool:
        """Whether it is time for the next one."""
        every, rounds = self.options.every_seconds, self.options.every_rounds
        return self.folder is not None and (
            (every > 0 and time.monotonic() - self.last >= every) or (rounds > 0 and round % rounds == 0)
        )

    def save(self, fed: Federation, server: ServerState, round: int, elapsed: float) -> bool:
        """Write a checkpoint of the state after ``round``, if there is none; False where there is no file to resume.

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
            arrays = {**values, **fed.saved(), "times selected": fed.times_selected}
            checksummed.write(piece(self.folder, serial, "server"), arrays)
            ledger = {name: int(value) for name, value in vars(fed.ledger).items()}
            saved = Saved(serial, round, self.cuts, elapsed, ledger, type(server).__name__, kinds, redrawn=self.redrawn)
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
        self.tidy(f"{serial}-")
        self.seconds += time.perf_counter() - begun
        return True

    def tidy(self, keep: str | None = None) -> None:
        """Remove the files of checkpoints whose names do not begin with ``keep``, and no others."""
        if self.folder is not None and self.folder.is_dir():
            for file in self.folder.iterdir():
                if PARTS.fullmatch(file.name) and (keep is None or not file.name.startswith(keep)):
                    file.unlink(missing_ok=True)

    def drop(self) -> None:
        """Remove the checkpoint."""
        if self.folder is not None:
            remove(self.folder)
            self.tidy()  # where the folder is still there, because it is a link


def remove(folder: Path) -> None:
    """Rename the folder of a checkpoint first and then remove it, so that no part of it can be left.

    Where it is a link of the user's, it stays, and what it leads to is no checkpoint any more.
    """
    gone = folder.with_name(f".{folder.name}")
    if folder.is_symlink():
        (folder / STATE).unlink(missing_ok=True)
        return
    if gone.is_symlink():
        gone.unlink()
    shutil.rmtree(gone, ignore_errors=True)
    if folder.is_dir():
        folder.rename(gone)
        shutil.rmtree(gone)


def rows_of(name: str, part: dict[str, Array], found: list[dict[str, Array]]) -> Array:
    """An array of the clients of a part; zeros where it is of compressed uploads and none of them has uploaded yet."""
    if name in part:
        return part[name]
    like = next(other[name] for other in found if name in other)
    return np.zeros((len(part["compute seconds"]), *like.shape[1:]), like.dtype)


def folder(path: Name) -> Path:
    """Where the checkpoints of a result file are."""
    return Path(os.path.realpath(path) + SUFFIX)


def piece(folder: Name, serial: int, owner: int | str) -> Path:
    """The file of the host whose first client is ``owner``, or of the server."""
    return Path(folder) / f"{serial}-{owner}.npz"


def find(path: Name) -> Saved | None:
    """The last checkpoint of a result file, or None. UserError where it is damaged."""
    file = folder(path) / STATE
    text = checksummed.read_text(file)
    if text is None:
        return None
    try:
        saved = msgspec.json.decode(text, type=Saved)
        if saved.cuts[0] or any(b < a for a, b in pairwise(saved.cuts)):
            raise ValueError(f"cuts are {saved.cuts}, but must rise from 0")
    except ValueError as error:
        raise UserError(f"checkpoint {file} cannot be read: {str(error).splitlines()[0]}") from None
    saved.folder = str(file.parent)
    return saved
