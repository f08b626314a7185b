"""What a method of a user's own says of itself: its traits, what it records, and what it says of work and traffic."""

import types
from typing import Any, get_args

import msgspec
import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm, Privacy
from mpifed.core.guards import Guard, Wrong, as_it_is, shown
from mpifed.core.typing import Array
from mpifed.federation.checked_replies import is_rows, refuse_state, reply
from mpifed.federation.evaluation import COMMON, PERSONAL
from mpifed.federation.local import Local
from mpifed.federation.traits import Max, Mean, Need, Refused, Sum, Takes, Upload
from mpifed.theory.statements import Certificate

HOUSE = {  # columns that every run has
    *("round", "objective", "objective_samples", "objective_gap", "grad_norm_sq", "accuracy", "accuracy_pooled"),
    *("exchanges", "uploads", "downloads", "bytes_up", "bytes_down", "bits_up", "bits_down"),
    *("compute_seconds", "client_seconds", "server_seconds", "comm_seconds", "evaluate_seconds", "elapsed_seconds"),
}
TRAITS: dict[str, Any] = {"takes": Takes, "mean": Mean | Refused, "upload": Upload, "asynchronous": bool | Refused}
KINDS = ("model", "change", "gradient", "compressed", "stable")


def refuse_traits(cls: type[Algorithm]) -> None:
    """ValueError where a trait of a class is none."""
    for name, kind in TRAITS.items():
        value = getattr(cls, name)
        if not isinstance(value, kind):
            names = [one.__name__ for one in (get_args(kind) if isinstance(kind, types.UnionType) else [kind])]
            raise ValueError(f"{name} = {value!r} is wrong: it must be a {' or a '.join(names)}")
    if cls.upload.kind not in KINDS:
        raise ValueError(f"upload has the kind {cls.upload.kind!r}, and the kinds are {', '.join(KINDS)}")
    if not isinstance(cls.upload.vectors, int):
        raise ValueError(f"upload has vectors = {cls.upload.vectors!r}, and that is a whole number")
    if not isinstance(cls.requires, tuple) or not all(isinstance(need, Need) for need in cls.requires):
        raise ValueError(f'requires = {cls.requires!r} is wrong: it must be a tuple such as (Need("lipschitz"),)')
    options = {field.name for field in msgspec.structs.fields(cls)}
    for need in cls.requires:
        unknown = {*need.unless, *need.when} - options
        if unknown:
            raise ValueError(f"requires names the option {min(unknown)!r}, and there is none of that name")


def refuse_name(name: Any, taken: set[str], what: str) -> None:
    """Wrong where a name cannot be that of a column."""
    if not isinstance(name, str) or not name or "/" in name or name == ".":
        raise Wrong(f"returns {what} named {name!r}: a name is a text without /")
    if name in taken:
        raise Wrong(f"returns {what} named {name!r}, and mpifed records that itself: take another name")


def record(algorithm: Algorithm, result: Any, f: Local, client: Any, x: Array) -> Any:
    """Numbers of each client by name."""
    if not isinstance(result, dict):
        raise Wrong(f'returns {shown(result)}: it must return a dict such as {{"snr": Max(v)}}, v (c,)')
    for name, part in result.items():
        refuse_name(name, {*COMMON, *PERSONAL}, "a number")
        if not isinstance(part, Sum | Max):
            raise Wrong(f"returns {shown(part)} as {name!r}: it must be a Sum or a Max of an array (c,)")
        if not is_rows(part.values, len(f)) or part.values.ndim != 1:
            raise Wrong(f"returns {shown(part.values)} as {name!r}, called for c = {len(f)} clients: it has shape (c,)")
    return result


def report(algorithm: Algorithm, result: Any, *args: Any) -> Any:
    """Columns of the record."""
    if not isinstance(result, dict):
        raise Wrong(f"returns {shown(result)}: it must return a dict, a number for each column")
    for name, value in result.items():
        refuse_name(name, HOUSE, "a column")
        if value is not None and (np.ndim(value) or np.asarray(value).dtype.kind not in "fiub"):
            raise Wrong(f"returns {shown(value)} as the column {name!r}: it must be a number")
    return result


def personalised(algorithm: Algorithm, result: Any, f: Local, client: Any) -> Any:
    """The clients' own models."""
    if not is_rows(result, len(f)) or result.shape[1:] != (f.n,):
        raise Wrong(f"returns {shown(result)}: it must return an array (c, n), here ({len(f)}, {f.n})")
    return result


def of_clients(algorithm: Algorithm, result: Any, d: Array) -> Any:
    """Numbers of all clients, or None."""
    if result is None:
        return result
    if not isinstance(result, np.ndarray) or result.shape != d.shape or result.dtype.kind not in "fiub":
        raise Wrong(f"returns {shown(result)} for d of shape {d.shape}: it must be an array of this shape, or None")
    if not (np.isfinite(result).all() and (result >= 0).all()):
        raise Wrong("returns numbers that are negative or not finite")
    return result


def traffic(algorithm: Algorithm, result: Any, n: int) -> Any:
    """The numbers that travel down and up."""
    pair = isinstance(result, tuple | list) and len(result) == 2
    if not pair or not all(isinstance(k, int | float | np.number) and 0 <= k < np.inf for k in result):
        raise Wrong(f"returns {shown(result)}: it must return two numbers, those that travel down and those up")
    return result


def advice(algorithm: Algorithm, result: Any, m: int) -> Any:
    """A warning, or None."""
    if not (result is None or isinstance(result, str)):
        raise Wrong(f"returns {shown(result)}: it must return a text, or None")
    return result


def privacy(algorithm: Algorithm, result: Any) -> Any:
    """What uploads guarantee, or None."""
    if not (result is None or isinstance(result, Privacy)):
        raise Wrong(f"returns {shown(result)}: it must return a Privacy, or None")
    return result


def certificate(algorithm: Algorithm, result: Any, known: Any) -> Any:
    """Conditions and rates."""
    if not isinstance(result, Certificate):
        raise Wrong(f"returns {shown(result)}: it must return a mpifed.Certificate")
    return result


def redrawn(algorithm: Algorithm, result: Any, server: Any, rounds: int) -> Any:
    """The server's state as it was, but for its numbers."""
    if type(result) is not type(server):
        raise Wrong(f"returns {shown(result)}: it must return the server's state, a {type(server).__name__}")
    return result


def received(algorithm: Algorithm, result: Any, f: Local, client: Any, upload: Any) -> Any:
    """The clients' state with what the server has of their uploads."""
    refuse_state(result, client, len(f))
    return result


def proximal_step(algorithm: Algorithm, result: Any, server: Any, m: int) -> Any:
    """The t of a proximal step."""
    if not isinstance(result, int | float | np.number) or not 0 < result < np.inf:
        raise Wrong(f"returns {shown(result)}: it must return a number above 0")
    return result


HOOKS: dict[str, Guard] = {
    "record": record,
    "report": report,
    "personalised": personalised,
    "personal_from": personalised,
    "work": of_clients,
    "local_steps": of_clients,
    "traffic": traffic,
    "advice": advice,
    "verify": as_it_is,
    "privacy": privacy,
    "proximal_step": proximal_step,
    "certificate": certificate,
    "redrawn": redrawn,
    "received": received,
    **dict.fromkeys(("score", "score_loss", "score_move", "smoothness"), reply),
}
