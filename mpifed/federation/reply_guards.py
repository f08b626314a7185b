"""Checks of what the client methods of a user's class return, on the hosts and in every call."""

from typing import Any

from mpifed.core.arrays import is_real_array
from mpifed.core.guards import InvalidReturn, describe_value
from mpifed.federation.local import Local
from mpifed.federation.method import FederatedMethod
from mpifed.federation.request import ReplyLayout, split_reply

CLIENT = "the client method "
PAIR = "it must return (new state, upload), one row for each of the c clients"


def refuse_field(name: str, value: Any, c: int) -> None:
    """Raise InvalidReturn if a field of the clients' state is no array with a row for each of c clients."""
    if not is_rows(value, c):
        raise InvalidReturn(
            f"returns a state whose field {name} is {describe_value(value)}, called for c = {c} clients: {PAIR}"
        )


def is_rows(value: Any, c: int) -> bool:
    """Return whether a value is an array of real numbers with c rows."""
    return is_real_array(value) and value.ndim > 0 and len(value) == c


def check_reply(algorithm: FederatedMethod, result: Any, f: Local, client: Any, *args: Any) -> Any:
    """Return the result of a client method; raise InvalidReturn unless it is (new state, upload or None)."""
    if not isinstance(result, tuple) or hasattr(result, "_fields") or len(result) != 2:
        raise InvalidReturn(f"returns {describe_value(result)}: {PAIR}")
    state, upload = result
    refuse_state(state, client, len(f))
    for part in () if upload is None else split_reply(upload)[0]:
        if not is_rows(part, len(f)):
            raise InvalidReturn(
                f"returns {describe_value(part)} as its upload, called for c = {len(f)} clients: {PAIR}"
            )
    return result


def refuse_state(state: Any, client: Any, c: int) -> None:
    """Raise InvalidReturn if the new state of c clients has another type or shapes than the old state ``client``."""
    if type(state) is not type(client):
        raise InvalidReturn(
            f"returns {describe_value(state)} as the new state, and a state is a {type(client).__name__}: {PAIR}"
        )
    for name, value, before in zip(client._fields, state, client, strict=True):
        if value is not before and (not is_rows(value, c) or value.shape != before.shape):
            raise InvalidReturn(
                f"returns a state whose field {name} is {describe_value(value)}, and before it was "
                f"{describe_value(before)}: the shape of a field stays"
            )


def upload_layout(upload: Any) -> ReplyLayout:
    """Return the names of an upload and its shapes without the client axis."""
    parts, names = split_reply(() if upload is None else upload)
    return ReplyLayout(tuple([part.shape[1:] for part in parts]), names)


def describe_layout(layout: ReplyLayout) -> str:
    """Describe a layout in words, for an error message."""
    shapes = [f"(c{''.join(f', {k}' for k in shape) or ','})" for shape in layout.shapes]
    if layout.names:
        shapes = [f"{name!r} {shape}" for name, shape in zip(layout.names, shapes, strict=True)]
    return " and ".join(shapes) or "nothing"
