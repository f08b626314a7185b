"""What to do where the result file of a run was moved, removed or replaced while the run wrote to it."""

import contextlib
import os
from typing import Any

from mpifed.core.errors import RunError
from mpifed.experiment.checkpoint import CheckpointWriter, find, folder
from mpifed.results.recorder import Recorder


def lost(recorder: Recorder, checkpoints: CheckpointWriter, *state: Any) -> str:
    """The sentence with which a run ends whose file is lost, after a last checkpoint of ``state`` where one can be."""
    place = checkpoints.folder
    assert place is not None
    own = recorder.lost.startswith(("moved", "removed"))  # else the folder may be another run's by now
    if own and place.parent.is_dir():
        with contextlib.suppress(RunError):  # the previous one stays
            checkpoints.save(*state)
    what = f"{recorder.path} was {recorder.lost} while the run wrote to it"
    said = f"{what}, and the run ends after {recorder.count - 1} rounds: "
    if not own:
        return said + "run it again with another -o"
    if recorder.lost == "removed":
        again = said + "run it again"
        return f"{again}; {place} goes on only with that file" if place.is_dir() else again
    if not place.is_dir():
        return said + f"its checkpoint is not there either; resume goes on where the file and {place.name} are together"
    return said + f"move it back, and resume goes on from the checkpoint of round {checkpoints.round}, {place}"


def lost_at_the_end(recorder: Recorder) -> str:
    """The sentence with which a run is over whose file is lost."""
    right = "its result is there" if recorder.lost.startswith("moved") else "run it again"
    return f"{recorder.path} was {recorder.lost} while the run wrote to it, and the run is over: {right}"


def missing(path: str | os.PathLike[str]) -> str | None:
    """What to do where a file that shall be resumed is not there, but a checkpoint of it is; None: there is neither."""
    if os.path.lexists(path) or (saved := find(path)) is None:
        return None
    return (
        f"{os.fspath(path)} is not there, only its checkpoint of round {saved.round}, {folder(path)}, which goes on "
        "with that file alone, for it has the experiment and the rounds: move it back, or run it again"
    )
