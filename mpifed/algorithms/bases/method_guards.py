"""A method of a user's own: what it says of itself, and what its functions return, is checked where it enters."""

from typing import Any, get_args

import msgspec
import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm, Client, Privacy
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm
from mpifed.core.arrays import is_numeric, to_numpy
from mpifed.core.guards import Guard, Wrong, array, as_it_is, instance, returns, shown
from mpifed.core.typing import Array
from mpifed.federation.checked_replies import is_rows, refuse_field, refuse_state, reply
from mpifed.federation.evaluation import COMMON, PERSONAL
from mpifed.federation.local import Local
from mpifed.federation.server import Federation
from mpifed.federation.traits import Max, Mean, Need, Refused, Sum, Takes, Upload
from mpifed.theory.statements import Certificate

HOUSE = {  # columns that every run has
    *("round", "objective", "objective_samples", "objective_gap", "grad_norm_sq", "accuracy", "accuracy_pooled"),
    *("exchanges", "uploads", "downloads", "bytes_up", "bytes_down", "bits_up", "bits_down"),
    *("compute_seconds", "client_seconds", "server_seconds", "comm_seconds", "evaluate_seconds", "elapsed_seconds"),
}
TRAITS: dict[str, Any] = {"takes": Takes, "mean": Mean | Refused, "upload": Upload, "asynchronous": bool | Refused}
KINDS = ("model", "change", "gradient", "compressed", "stable")
RECORDED = instance(dict, ': it must return a dict such as {{"snr": Max(v)}}, v (c,)')
COLUMNS = instance(dict, ": it must return a dict, a number for each column")
MODELS = array(lambda algorithm, f, *args: (len(f), f.n), ": it must return an array (c, n), here {shape}")
LIKE_D = array(
    lambda algorithm, d: d.shape, " for d of shape {shape}: it must be an array of this shape, or None", is_numeric
)


def refuse_traits(cls: type[Algorithm]) -> None:
    """ValueError where a trait of a class is none."""
    for name, kind in TRAITS.items():
        value = getattr(cls, name)
        if not isinstance(value, kind):
            names = [one.__name__ for one in get_args(kind) or (kind,)]
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
    RECORDED(algorithm, result)
    for name, part in result.items():
        refuse_name(name, {*COMMON, *PERSONAL}, "a number")
        if not isinstance(part, Sum | Max):
            raise Wrong(f"returns {shown(part)} as {name!r}: it must be a Sum or a Max of an array (c,)")
        if not is_rows(part.values, len(f)) or part.values.ndim != 1:
            raise Wrong(f"returns {shown(part.values)} as {name!r}, called for c = {len(f)} clients: it has shape (c,)")
    return result


def report(algorithm: Algorithm, result: Any, *args: Any) -> Any:
    """Columns of the record."""
    COLUMNS(algorithm, result)
    for name, value in result.items():
        refuse_name(name, HOUSE, "a column")
        if value is not None and (np.ndim(value) or np.asarray(value).dtype.kind not in "fiub"):
            raise Wrong(f"returns {shown(value)} as the column {name!r}: it must be a number")
    return result


def of_clients(algorithm: Algorithm, result: Any, d: Array) -> Any:
    """Numbers of all clients, or None."""
    if result is None:
        return result
    LIKE_D(algorithm, result, d)
    if not (np.isfinite(result).all() and (result >= 0).all()):
        raise Wrong("returns numbers that are negative or not finite")
    return result


def received(algorithm: Algorithm, result: Any, f: Local, client: Any, upload: Any) -> Any:
    """The clients' state with what the server has of their uploads."""
    refuse_state(result, client, len(f))
    return result


def server_state(algorithm: Algorithm, result: Any, fed: Federation, before: Any = None) -> Any:
    """The server's state, with the model x (n,); of a round, with the fields that it had before."""
    right = "it must return a NamedTuple of arrays with the model x (n,)"
    refuse_unnamed(result, right)
    if "x" not in result._fields:
        raise Wrong(f"returns a state without a field x: {right}")
    if before is not None and result._fields != before._fields:
        new, old = (", ".join(state._fields) for state in (result, before))
        raise Wrong(f"returns a state with the fields {new}, and before the round it had {old}")
    for name, value in zip(result._fields, result, strict=True):
        if not is_number(value):
            raise Wrong(f"returns a state whose field {name} is {shown(value)}: fields are arrays of real numbers")
    if np.shape(result.x) != (fed.n,):
        raise Wrong(f"returns a state whose field x is {shown(result.x)}: the model has shape ({fed.n},)")
    return result


def clients_state(algorithm: Algorithm, result: Any, f: Local) -> Any:
    """The first state of the clients of f."""
    right = "it must return a NamedTuple of arrays, one row for each of the c clients"
    if isinstance(result, tuple) and not result:
        return Client()
    refuse_unnamed(result, right)
    traits = algorithm.upload
    for trait, name in (("kept", traits.last(algorithm)), ("known", traits.known)):
        if name and name not in result._fields:
            raise Wrong(f"returns a state without the field {name}, which upload = Upload({trait}={name!r}, …) names")
    # a method that has its own ``model`` may keep the models of its nodes in any field
    if getattr(type(algorithm), "model", None) is GraphAlgorithm.model and "x" not in result._fields:
        raise Wrong("returns a state without a field x, in which the nodes have their models (c, n)")
    for name, value in zip(result._fields, result, strict=True):
        refuse_field(name, value, len(f))
        missing = np.isnan(to_numpy(value))
        if missing.any():
            raise Wrong(f"returns a state whose field {name} is not a number for client {first(f, missing)}")
    return result


def refuse_unnamed(result: Any, right: str) -> None:
    """Wrong where a state is no NamedTuple: checkpoints store its fields by name."""
    if not (isinstance(result, tuple) and hasattr(result, "_fields")):
        raise Wrong(f"returns {shown(result)}: {right}")


def first(f: Local, wrong: Array) -> int:
    """The number of the first client of which something is wrong."""
    return int(f.ids[int(wrong.reshape(len(wrong), -1).any(axis=1).argmax())])


def is_number(value: Any) -> bool:
    """Whether a value is a real number or an array of these."""
    known = isinstance(value, int | float | np.ndarray | np.generic) and not np.ma.isMaskedArray(value)
    return known and np.asarray(value).dtype.kind in "fiub"


def is_amount(value: Any) -> bool:
    """Whether a value is one number, finite and not negative."""
    return is_number(value) and not np.ndim(value) and bool(0 <= value < np.inf)


GUARDS: dict[str, dict[str, Guard]] = {
    "algorithms": {
        "start": server_state,
        "round": server_state,
        "join": clients_state,
        "record": record,
        "report": report,
        "personalised": MODELS,
        "personal_from": MODELS,
        "work": of_clients,
        "local_steps": of_clients,
        "traffic": returns(
            lambda result, *args: isinstance(result, tuple | list) and len(result) == 2 and all(map(is_amount, result)),
            ": it must return two numbers, those that travel down and those up",
        ),
        "advice": instance(str | None, ": it must return a text, or None"),
        "verify": as_it_is,
        "privacy": instance(Privacy | None, ": it must return a Privacy, or None"),
        "proximal_step": returns(lambda t, *args: is_amount(t) and t > 0, ": it must return a number above 0"),
        "certificate": instance(Certificate, ": it must return a mpifed.Certificate"),
        "redrawn": returns(
            lambda result, server, rounds: type(result) is type(server),
            ": it must return the server's state, a {0.__class__.__name__}",
        ),
        "received": received,
        **dict.fromkeys(("score", "score_loss", "score_move", "smoothness"), reply),
    }
}
