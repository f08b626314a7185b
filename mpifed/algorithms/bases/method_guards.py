"""Checks of a user's own method, step size, optimiser or solver: what would give other numbers in silence."""

from typing import Any, get_args

import msgspec
import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm, Client
from mpifed.algorithms.parts.step_sizes import Step
from mpifed.core.arrays import is_numpy_array, to_numpy
from mpifed.core.component import Component
from mpifed.core.guards import Guard, InvalidReturn, describe_value, require, require_array
from mpifed.core.roles import VALIDATED
from mpifed.core.typing import Array
from mpifed.federation.evaluation import COMMON, PERSONAL
from mpifed.federation.local import Local
from mpifed.federation.reply_guards import check_reply, is_rows, refuse_field, refuse_state
from mpifed.federation.server import Federation
from mpifed.federation.traits import MeanEstimate, Participation, Requirement, Unsupported, Upload

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
MODELS = require_array(lambda algorithm, f, *args: (len(f), f.n), ": it must return an array (c, n), here {shape}")
LIKE_D = require_array(
    lambda algorithm, d: d.shape, " for d of shape {shape}: it must be an array of this shape, or None", is_numpy_array
)


def refuse_traits(cls: type[Component]) -> None:
    """Raise ValueError for a method whose traits have wrong types or values; step sizes and solvers have none."""
    if not issubclass(cls, Algorithm):
        return
    for name, expected in TRAITS.items():
        value = getattr(cls, name)
        if not isinstance(value, expected):
            names = [one.__name__ for one in get_args(expected) or (expected,)]
            raise ValueError(f"{name} = {value!r} is wrong: it must be a {' or a '.join(names)}")
    if cls.upload.content not in KINDS:
        raise ValueError(f"upload has the content {cls.upload.content!r}, and it must be one of {', '.join(KINDS)}")
    if not isinstance(cls.requires, tuple) or not all(isinstance(need, Requirement) for need in cls.requires):
        raise ValueError(
            f'requires = {cls.requires!r} is wrong: it must be a tuple such as (Requirement("lipschitz"),)'
        )
    options = {field.name for field in msgspec.structs.fields(cls)}
    unknown = {option for need in cls.requires for option in {*need.unless, *need.when}} - options
    if unknown:
        raise ValueError(f"requires names the option {min(unknown)!r}, and there is none of that name")


def refuse_name(name: Any, taken: set[str], what: str) -> None:
    """Raise InvalidReturn for a name that cannot be a column's."""
    if not isinstance(name, str) or not name or "/" in name or name == ".":
        raise InvalidReturn(f"returns {what} named {name!r}: a name is a text without /")
    if name in taken or name.startswith(VALIDATED):
        raise InvalidReturn(f"returns {what} named {name!r}, and mpifed records that itself: take another name")


def check_record(algorithm: Algorithm, result: Any, f: Local, client: Any, x: Array) -> Any:
    for name, part in result.items():
        refuse_name(name, {*COMMON, *PERSONAL}, "a number")
        if not is_rows(part.values, len(f)) or part.values.ndim != 1:
            raise InvalidReturn(
                f"returns {describe_value(part.values)} as {name!r}, called for c = {len(f)} clients: it has shape (c,)"
            )
    return result


def check_report(algorithm: Algorithm, result: Any, *args: Any) -> Any:
    """Return the columns to record; raise InvalidReturn unless each has a free name."""
    for name, value in result.items():
        refuse_name(name, HOUSE, "a column")
        if value is not None and (np.ndim(value) or np.asarray(value).dtype.kind not in "fiub"):
            raise InvalidReturn(f"returns {describe_value(value)} as the column {name!r}: it must be a number")
    return result


def check_sizes(algorithm: Algorithm, result: Any, d: Array) -> Any:
    """Return numbers of all clients, or None; raise InvalidReturn unless they are finite and not negative."""
    if result is None:
        return result
    LIKE_D(algorithm, result, d)
    if not (np.isfinite(result).all() and (result >= 0).all()):
        raise InvalidReturn("returns numbers that are negative or not finite")
    return result


def check_received(algorithm: Algorithm, result: Any, f: Local, client: Any, upload: Any) -> Any:
    """Return the clients' state after an upload; raise InvalidReturn unless it fits the state before."""
    refuse_state(result, client, len(f))
    return result


def check_server_state(algorithm: Algorithm, result: Any, fed: Federation, before: Any = None) -> Any:
    """Return the server's state; raise InvalidReturn unless it has a model x (n,)."""
    if np.shape(result.x) != (fed.n,):
        raise InvalidReturn(
            f"returns a state whose field x is {describe_value(result.x)}: the model has shape ({fed.n},)"
        )
    return result


def check_clients_state(algorithm: Algorithm, result: Any, f: Local) -> Any:
    """Return the first state of the clients of f; raise InvalidReturn unless each field has a row for each."""
    if isinstance(result, tuple) and not result:
        return Client()
    for name, value in result._asdict().items():
        refuse_field(name, value, len(f))
        missing = np.isnan(to_numpy(value))
        if missing.any():
            first = f.ids[int(missing.reshape(len(missing), -1).any(axis=1).argmax())]
            raise InvalidReturn(f"returns a state whose field {name} is not a number for client {first}")
    return result


def check_gamma(step: Any, result: Any, k: int, k0: int, d: Array) -> Any:
    """Return the step size of an iteration; raise InvalidReturn unless it is finite, not negative and of d's shape."""
    numbers = to_numpy(result)
    if np.shape(result) not in ((), np.shape(d)) or numbers.dtype.kind not in "fiu":
        raise InvalidReturn(
            f"returns {describe_value(result)}: γ is one number, or has shape {np.shape(d)}, one for each client"
        )
    if not np.isfinite(numbers).all() or (numbers < 0).any():
        raise InvalidReturn(f"returns γ = {np.min(numbers):g} in iteration {k}: it must be finite and not negative")
    return result


def check_direction(optimizer: Any, result: Any, memory: Any, g: Array, *args: Any) -> Any:
    """Return d, with the shape of the gradients, and the new memory."""
    d, _ = result
    if np.shape(d) != np.shape(g):
        raise InvalidReturn(f"returns d as {describe_value(d)}: it has shape {np.shape(g)}, as the gradients")
    return result


GUARDS: dict[str, dict[str, Guard]] = {
    "algorithms": {
        "init_server": check_server_state,
        "round": check_server_state,
        "init_client": check_clients_state,
        "record": check_record,
        "report": check_report,
        **dict.fromkeys(("personal_models", "newcomer_models"), MODELS),
        **dict.fromkeys(("sample_gradients", "local_steps"), check_sizes),
        "message_size": require(
            lambda sizes, *args: len(sizes) == 2 and min(sizes) >= 0 and max(sizes) < np.inf,
            ": it must return two numbers, those that travel down and those up",
        ),
        "proximal_step": require(lambda t, *args: 0 < t < np.inf, ": it must return a number above 0"),
        "remember_upload": check_received,
        **dict.fromkeys(("score", "score_loss", "score_dual_move", "smoothness"), check_reply),
    },
    "steps": {"gamma": check_gamma},
    "optimizers": {"direction": check_direction},
    "server_optimizers": {
        "rate": require(
            lambda rate, *args: isinstance(rate, Step) or (np.shape(rate) == () and bool(np.isfinite(rate))),
            ": η is one finite number",
        ),
        "direction": check_direction,
    },
    "solvers": {
        "minimise": require_array(lambda solver, f, *args: (len(f), f.n), ": it must be an array (c, n), here {shape}"),
    },
}
