"""Checkpoints that do not fit: of another run, or beside a result file that was moved, removed or replaced."""

import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np

from mpifed.core.checksummed import check_array
from mpifed.core.errors import RunError, UserError, error_line, first_message_line
from mpifed.core.typing import Array
from mpifed.experiment.checkpoint import CheckpointWriter, StoredCheckpoint, checkpoint_folder, read_checkpoint
from mpifed.experiment.config import Job
from mpifed.federation.ledger import Ledger
from mpifed.federation.method import FederatedMethod
from mpifed.federation.request import FIELD, RESTING
from mpifed.results.recorder import Recorder

MISMATCH_ERRORS = (ArithmeticError, AssertionError, AttributeError, LookupError, StopIteration, TypeError, ValueError)


@contextmanager
def reporting_mismatch(folder: str, *more: type[Exception]) -> Iterator[None]:
    """Turn errors caused by other names, types or shapes than the run's into a UserError that names ``folder``.

    ``more`` are further types of errors to turn.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, (*MISMATCH_ERRORS, *more)):
            raise
        text = first_message_line(error) if type(error) in (ValueError, *more) else error_line(error)
        raise UserError(f"the checkpoint in {folder} does not fit this run: {text}") from error


def guard_resumed_rounds(job: Job) -> AbstractContextManager[None]:
    """Return a context that reports failing rounds as a mismatch; with ``survive`` none, as dying ranks raise too."""
    return nullcontext() if job.saved is None or job.survive else reporting_mismatch(job.saved.folder)


def check_rows(arrays: Mapping[str, Array], state: Any, count: int) -> None:
    """Raise ValueError where the arrays of ``count`` clients do not match ``state``, their state in this run."""
    fields = state._asdict()
    missing = [name for name in (*fields, "compute seconds") if name not in arrays]
    unknown = [name for name in arrays if " " not in name and name not in fields]
    if missing or unknown:
        raise ValueError(f"the state of its clients has {field_names(arrays)}, but must have {field_names(fields)}")
    for name, rows in arrays.items():
        expected = fields.get(name)
        if name.startswith(f"{RESTING} {FIELD}"):  # a client's next state, which rests until its upload arrives
            expected = fields[name.removeprefix(f"{RESTING} {FIELD}")]
        shape = tuple(getattr(expected, "shape", (count, *rows.shape[1:])))
        dtype = expected.dtype if isinstance(expected, np.ndarray) else rows.dtype
        check_array(f"{name} of its clients", rows, shape, dtype)
    check_array("compute seconds", arrays["compute seconds"], (count,), np.dtype(float))


def check_server(saved: StoredCheckpoint, algorithm: FederatedMethod, x: Array) -> None:
    """Raise ValueError where the server's part has another model than x (n,), other counts or an unknown method."""
    server, times = saved.read_server(algorithm)
    model = np.asarray(server.x)
    check_array("the model x", model, x.shape, x.dtype if model.dtype.kind != "f" else model.dtype)
    check_array("times selected", times, (saved.cuts[-1],), np.dtype(np.int64))
    if times.min() < 0 or not np.isfinite(model).all():
        raise ValueError("numbers of the model x are not finite, or times selected are below 0")
    counts = vars(Ledger())
    # counts of bits were added later
    missing = [name for name in counts if name not in saved.ledger and not name.startswith("bits")]
    unknown = [name for name in saved.ledger if name not in counts]
    if missing or unknown:
        raise ValueError(f"its ledger has {', '.join(saved.ledger)}, but must have {', '.join(counts)}")
    method = saved.sent
    if method and (method.startswith("_") or not inspect.ismethod(getattr(algorithm, method, None))):
        raise ValueError(f"its clients run {method!r}, which {algorithm.label()} does not have")


def field_names(arrays: Mapping[str, Any]) -> str:
    """Return the fields of the state of clients as text; names with a blank belong to other arrays."""
    return ", ".join(name for name in arrays if " " not in name) or "no array"


def rescue_checkpoint(recorder: Recorder, checkpoints: CheckpointWriter, *state: Any) -> str:
    """Write a last checkpoint of ``state`` if possible; return the error of a run whose file is lost."""
    path = checkpoints.folder
    assert path is not None
    is_ours = recorder.lost.startswith(("moved", "removed"))  # else the folder may be another run's by now
    if is_ours and path.parent.is_dir():
        with suppress(RunError):  # the previous one stays
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
