"""Checkpoints of strangers: what a checkpoint holds is compared with what the run has before it goes on from it."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np

from mpifed.core.checksummed import check_array
from mpifed.core.errors import UserError
from mpifed.core.guards import message
from mpifed.core.typing import Array
from mpifed.experiment.checkpoint import Saved
from mpifed.experiment.job import Job
from mpifed.federation.ledger import Ledger
from mpifed.federation.method import Method
from mpifed.federation.stage import FIELD, RESTING

MISFITS = (ArithmeticError, AssertionError, AttributeError, LookupError, StopIteration, TypeError, ValueError)


@contextmanager
def fitting(folder: str, *more: type[Exception]) -> Iterator[None]:
    """Turn the errors that other names, types or shapes than those of the run cause into a UserError with ``folder``.

    So are errors of the types ``more``.
    """
    try:
        yield
    except Exception as error:
        if not isinstance(error, (*MISFITS, *more)):
            raise
        what = message(error) if type(error) in (ValueError, *more) else f"{type(error).__name__}: {message(error)}"
        raise UserError(f"the checkpoint in {folder} does not fit this run: {what}") from error


def rounds_of(job: Job) -> AbstractContextManager[None]:
    """Where rounds fail because of a checkpoint of strangers. With ``survive``, errors are those of ranks that die."""
    return nullcontext() if job.saved is None or job.survive else fitting(job.saved.folder)


def check_rows(arrays: Mapping[str, Array], state: Any, count: int) -> None:
    """ValueError where the arrays of ``count`` clients are not those of their ``state``, and what goes with it."""
    fields = state._asdict()
    lacking = [name for name in (*fields, "compute seconds") if name not in arrays]
    others = [name for name in arrays if " " not in name and name not in fields]
    if lacking or others:
        raise ValueError(f"the state of its clients has {field_names(arrays)}, but must have {field_names(fields)}")
    for name, rows in arrays.items():
        like = fields.get(name)
        if name.startswith(f"{RESTING}{FIELD}"):  # a client's next state, which rests until its upload arrives
            like = fields[name.removeprefix(f"{RESTING}{FIELD}")]
        shape = tuple(getattr(like, "shape", (count, *rows.shape[1:])))
        kind = like.dtype if isinstance(like, np.ndarray) else rows.dtype
        check_array(f"{name} of its clients", rows, shape, kind)
    check_array("compute seconds", arrays["compute seconds"], (count,), np.dtype(float))


def check_server(saved: Saved, algorithm: Method, x: Array) -> None:
    """ValueError where the server's part of a checkpoint has no model like x (n,), other counts, or no such method."""
    server, times = saved.server(algorithm)
    found = np.asarray(server.x)
    check_array("the model x", found, x.shape, x.dtype if found.dtype.kind != "f" else found.dtype)
    check_array("times selected", times, (saved.cuts[-1],), np.dtype(np.int64))
    if times.min() < 0 or not np.isfinite(found).all():
        raise ValueError("numbers of the model x are not finite, or times selected are below 0")
    counts = vars(Ledger())
    lacking = [name for name in counts if name not in saved.ledger and not name.startswith("bits")]  # these are younger
    others = [name for name in saved.ledger if name not in counts]
    if lacking or others:
        raise ValueError(f"its ledger has {', '.join(saved.ledger)}, but must have {', '.join(counts)}")
    method = saved.sent
    if method and (method.startswith("_") or not inspect.ismethod(getattr(algorithm, method, None))):
        raise ValueError(f"its clients run {method!r}, which {algorithm.label()} does not have")


def field_names(arrays: Mapping[str, Any]) -> str:
    """The names in the state of clients, without what goes with it."""
    return ", ".join(name for name in arrays if " " not in name) or "no array"
