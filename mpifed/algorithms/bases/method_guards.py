"""Checks of a user's own method: its traits when it is loaded, and its results at each call."""

from typing import Any, get_args

import msgspec
import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm, Client, Privacy
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm
from mpifed.core.arrays import is_numpy_array, to_numpy
from mpifed.core.guards import (
    Guard,
    InvalidReturn,
    accept_any,
    describe_value,
    require,
    require_array,
    require_instance,
)
from mpifed.core.typing import Array
from mpifed.federation.evaluation import COMMON, PERSONAL
from mpifed.federation.local import Local
from mpifed.federation.reply_guards import check_reply, is_rows, refuse_field, refuse_state
from mpifed.federation.server import Federation
from mpifed.federation.traits import Max, MeanEstimate, Participation, Requirement, Sum, Unsupported, Upload
from mpifed.theory.statements import Certificate

HOUSE = {  # columns that every run has
    *("round", "objective", "objective_samples", "objective_gap", "grad_norm_sq", "accuracy", "accuracy_pooled"),
    *("exchanges", "uploads", "downloads", "bytes_up", "bytes_down", "bits_up", "bits_down"),
    *("compute_seconds", "client_seconds", "server_seconds", "comm_seconds", "evaluate_seconds", "elapsed_seconds"),
}
TRAITS: dict[str, Any] = {
    "participation": Participation,
    "mean_estimate": MeanEstimate | Unsupported,
    "upload": Upload,
    "asynchronous": bool | Unsupported,
}
KINDS = ("model", "change", "gradient", "compressed", "stable")
RECORDED = require_instance(dict, ': it must return a dict such as {{"snr": Max(v)}}, v (c,)')
COLUMNS = require_instance(dict, ": it must return a dict, a number for each column")
MODELS = require_array(lambda algorithm, f, *args: (len(f), f.n), ": it must return an array (c, n), here {shape}")
LIKE_D = require_array(
    lambda algorithm, d: d.shape, " for d of shape {shape}: it must be an array of this shape, or None", is_numpy_array
)


def refuse_traits(cls: type[Algorithm]) -> None:
    """Raise ValueError for a class whose traits have wrong types or values."""
    for name, expected in TRAITS.items():
        value = getattr(cls, name)
        if not isinstance(value, expected):
            names = [one.__name__ for one in get_args(expected) or (expected,)]
            raise ValueError(f"{name} = {value!r} is wrong: it must be a {' or a '.join(names)}")
    if cls.upload.content not in KINDS:
        raise ValueError(f"upload has the content {cls.upload.content!r}, and it must be one of {', '.join(KINDS)}")
    if not isinstance(cls.upload.vectors, int):
        raise ValueError(f"upload has vectors = {cls.upload.vectors!r}, and that is a whole number")
    if not isinstance(cls.requires, tuple) or not all(isinstance(need, Requirement) for need in cls.requires):
        raise ValueError(
            f'requires = {cls.requires!r} is wrong: it must be a tuple such as (Requirement("lipschitz"),)'
        )
    options = {field.name for field in msgspec.structs.fields(cls)}
    for need in cls.requires:
        unknown = {*need.unless, *need.when} - options
        if unknown:
            raise ValueError(f"requires names the option {min(unknown)!r}, and there is none of that name")


def refuse_name(name: Any, taken: set[str], what: str) -> None:
    """Raise Wrong for a name that cannot be a column's."""
    if not isinstance(name, str) or not name or "/" in name or name == ".":
        raise InvalidReturn(f"returns {what} named {name!r}: a name is a text without /")
    if name in taken:
        raise InvalidReturn(f"returns {what} named {name!r}, and mpifed records that itself: take another name")


def check_record(algorithm: Algorithm, result: Any, f: Local, client: Any, x: Array) -> Any:
    RECORDED(algorithm, result)
    for name, part in result.items():
        refuse_name(name, {*COMMON, *PERSONAL}, "a number")
        if not isinstance(part, Sum | Max):
            raise InvalidReturn(
                f"returns {describe_value(part)} as {name!r}: it must be a Sum or a Max of an array (c,)"
            )
        if not is_rows(part.values, len(f)) or part.values.ndim != 1:
            raise InvalidReturn(
                f"returns {describe_value(part.values)} as {name!r}, called for c = {len(f)} clients: it has shape (c,)"
            )
    return result


def check_report(algorithm: Algorithm, result: Any, *args: Any) -> Any:
    """Return the columns to record; raise Wrong unless each is a number with a free name."""
    COLUMNS(algorithm, result)
    for name, value in result.items():
        refuse_name(name, HOUSE, "a column")
        if value is not None and (np.ndim(value) or np.asarray(value).dtype.kind not in "fiub"):
            raise InvalidReturn(f"returns {describe_value(value)} as the column {name!r}: it must be a number")
    return result


def check_sizes(algorithm: Algorithm, result: Any, d: Array) -> Any:
    """Return numbers of all clients, or None; raise Wrong unless they are finite and not negative."""
    if result is None:
        return result
    LIKE_D(algorithm, result, d)
    if not (np.isfinite(result).all() and (result >= 0).all()):
        raise InvalidReturn("returns numbers that are negative or not finite")
    return result


def check_received(algorithm: Algorithm, result: Any, f: Local, client: Any, upload: Any) -> Any:
    """Return the clients' state after an upload; raise Wrong unless it fits the state before."""
    refuse_state(result, client, len(f))
    return result


def check_server_state(algorithm: Algorithm, result: Any, fed: Federation, before: Any = None) -> Any:
    """Return the server's state; raise Wrong unless it has a model x (n,) and the fields of ``before``."""
    expected = "it must return a NamedTuple of arrays with the model x (n,)"
    refuse_unnamed(result, expected)
    if "x" not in result._fields:
        raise InvalidReturn(f"returns a state without a field x: {expected}")
    if before is not None and result._fields != before._fields:
        new, old = (", ".join(state._fields) for state in (result, before))
        raise InvalidReturn(f"returns a state with the fields {new}, and before the round it had {old}")
    for name, value in zip(result._fields, result, strict=True):
        if not is_number(value):
            raise InvalidReturn(
                f"returns a state whose field {name} is {describe_value(value)}: fields are arrays of real numbers"
            )
    if np.shape(result.x) != (fed.n,):
        raise InvalidReturn(
            f"returns a state whose field x is {describe_value(result.x)}: the model has shape ({fed.n},)"
        )
    return result


def check_clients_state(algorithm: Algorithm, result: Any, f: Local) -> Any:
    """Return the first state of the clients of f; raise Wrong unless each field has a row for each."""
    expected = "it must return a NamedTuple of arrays, one row for each of the c clients"
    if isinstance(result, tuple) and not result:
        return Client()
    refuse_unnamed(result, expected)
    traits = algorithm.upload
    for trait, name in (("last_upload", traits.last(algorithm)), ("server_copy", traits.server_copy)):
        if name and name not in result._fields:
            raise InvalidReturn(
                f"returns a state without the field {name}, which upload = Upload({trait}={name!r}, …) names"
            )
    # a method that overrides ``model`` may keep the models of its nodes in any field
    if getattr(type(algorithm), "model", None) is GraphAlgorithm.model and "x" not in result._fields:
        raise InvalidReturn("returns a state without a field x, in which the nodes have their models (c, n)")
    for name, value in zip(result._fields, result, strict=True):
        refuse_field(name, value, len(f))
        missing = np.isnan(to_numpy(value))
        if missing.any():
            raise InvalidReturn(
                f"returns a state whose field {name} is not a number for client {first_client(f, missing)}"
            )
    return result


def refuse_unnamed(result: Any, expected: str) -> None:
    """Raise Wrong for a state that is no NamedTuple: checkpoints store fields by name."""
    if not (isinstance(result, tuple) and hasattr(result, "_fields")):
        raise InvalidReturn(f"returns {describe_value(result)}: {expected}")


def first_client(f: Local, wrong: Array) -> int:
    """Return the number of the first client for which ``wrong`` holds."""
    return int(f.ids[int(wrong.reshape(len(wrong), -1).any(axis=1).argmax())])


def is_number(value: Any) -> bool:
    """Return whether a value is a real number or an array of real numbers."""
    is_real_type = isinstance(value, int | float | np.ndarray | np.generic) and not np.ma.isMaskedArray(value)
    return is_real_type and np.asarray(value).dtype.kind in "fiub"


def is_amount(value: Any) -> bool:
    """Return whether a value is one number, finite and not negative."""
    return is_number(value) and not np.ndim(value) and bool(0 <= value < np.inf)


GUARDS: dict[str, dict[str, Guard]] = {
    "algorithms": {
        "init_server": check_server_state,
        "round": check_server_state,
        "init_client": check_clients_state,
        "record": check_record,
        "report": check_report,
        "personal_models": MODELS,
        "newcomer_models": MODELS,
        "sample_gradients": check_sizes,
        "local_steps": check_sizes,
        "message_size": require(
            lambda result, *args: isinstance(result, tuple | list) and len(result) == 2 and all(map(is_amount, result)),
            ": it must return two numbers, those that travel down and those up",
        ),
        "advice": require_instance(str | None, ": it must return a text, or None"),
        "verify": accept_any,
        "privacy": require_instance(Privacy | None, ": it must return a Privacy, or None"),
        "proximal_step": require(lambda t, *args: is_amount(t) and t > 0, ": it must return a number above 0"),
        "certificate": require_instance(Certificate, ": it must return a mpifed.Certificate"),
        "replayed_rounds": require(
            lambda result, server, rounds: type(result) is type(server),
            ": it must return the server's state, a {0.__class__.__name__}",
        ),
        "remember_upload": check_received,
        **dict.fromkeys(("score", "score_loss", "score_dual_move", "smoothness"), check_reply),
    }
}
