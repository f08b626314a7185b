"""Advice for a result file that was moved, removed or replaced while the run wrote to it."""

import contextlib
import os
from typing import Any

from mpifed.core.errors import RunError
from mpifed.experiment.checkpoint import CheckpointWriter, checkpoint_folder, read_checkpoint
from mpifed.results.recorder import Recorder


def rescue_checkpoint(recorder: Recorder, checkpoints: CheckpointWriter, *state: Any) -> str:
    """Write a last checkpoint of ``state`` if possible; return the error of a run whose file is lost."""
    path = checkpoints.folder
    assert path is not None
    is_ours = recorder.lost.startswith(("moved", "removed"))  # else the folder may be another run's by now
    if is_ours and path.parent.is_dir():
        with contextlib.suppress(RunError):  # the previous one stays
            checkpoints.save(*state)
    event = f"{recorder.path} was {recorder.lost} while the run wrote to it"
    said = f"{event}, and the run ends after {recorder.count - 1} rounds: "
    if not is_ours:
        return said + "run it again with another -o"
    if recorder.lost == "removed":
        again = said + "run it again"
        return f"{again}; {path} goes on only with that file" if path.is_dir() else again
    if not path.is_dir():
        return f"{said}its checkpoint is not there either; resume goes on where the file and {path.name} are together"
    return said + f"move it back, and resume goes on from the checkpoint of round {checkpoints.round}, {path}"


def lost_file_error(recorder: Recorder) -> str:
    """Return the error of a run that is over and whose file is lost."""
    remedy = "its result is there" if recorder.lost.startswith("moved") else "run it again"
    return f"{recorder.path} was {recorder.lost} while the run wrote to it, and the run is over: {remedy}"


def missing_file_advice(path: str | os.PathLike[str]) -> str | None:
    """Return the advice if the file to be resumed is missing and its checkpoint is there, else None."""
    if os.path.lexists(path) or (saved := read_checkpoint(path)) is None:
        return None
    return (
        f"{os.fspath(path)} is not there, only its checkpoint of round {saved.round}, {checkpoint_folder(path)}, "
        "which goes on "
        "with that file alone, for it has the experiment and the rounds: move it back, or run it again"
    )
