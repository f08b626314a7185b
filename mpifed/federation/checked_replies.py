"""A method of a user's own: what its client methods return is checked on the hosts, in every call."""

from typing import Any

from mpifed.core.arrays import is_real
from mpifed.core.guards import Wrong, shown
from mpifed.federation.local import Local
from mpifed.federation.method import Method
from mpifed.federation.request import Layout, parts_of

CLIENT = "the client method "
PAIR = "it must return (new state, upload), one row for each of the c clients"


def refuse_field(name: str, value: Any, c: int) -> None:
    """Wrong where a field of the clients' state is no array with a row for each of c clients."""
    if not is_rows(value, c):
        raise Wrong(f"returns a state whose field {name} is {shown(value)}, called for c = {c} clients: {PAIR}")


def is_rows(value: Any, c: int) -> bool:
    """Whether a value is an array of real numbers with c rows."""
    return is_real(value) and value.ndim > 0 and len(value) == c


def reply(algorithm: Method, result: Any, f: Local, client: Any, *args: Any) -> Any:
    """What a client method returns: the new state of its clients, and an upload or None."""
    if not isinstance(result, tuple) or hasattr(result, "_fields") or len(result) != 2:
        raise Wrong(f"returns {shown(result)}: {PAIR}")
    refuse_state(result[0], client, len(f))
    refuse_upload(result[1], len(f))
    return result


def refuse_state(state: Any, client: Any, c: int) -> None:
    """Wrong where the new state of c clients is none, or has other shapes than the state ``client`` before."""
    if type(state) is not type(client):
        raise Wrong(f"returns {shown(state)} as the new state, and a state is a {type(client).__name__}: {PAIR}")
    for name, value, before in zip(client._fields, state, client, strict=True):
        if value is before:
            continue
        refuse_field(name, value, c)
        if value.shape != before.shape:
            raise Wrong(
                f"returns a state whose field {name} is {shown(value)}, and before it was {shown(before)}: "
                "the shape of a field stays"
            )


def refuse_upload(upload: Any, c: int) -> None:
    """Wrong where an upload is neither None nor made of arrays with a row for each of c clients."""
    if upload is None:
        return
    for part in parts_of(upload)[0]:
        if not is_rows(part, c):
            raise Wrong(f"returns {shown(part)} as its upload, called for c = {c} clients: {PAIR}")


def form(upload: Any) -> Layout:
    """The names and shapes of an upload, but for the number of clients."""
    parts, names = parts_of(() if upload is None else upload)
    return Layout(tuple([part.shape[1:] for part in parts]), names)


def text(layout: Layout) -> str:
    """A layout in words."""
    shapes = [f"(c{''.join(f', {k}' for k in shape) or ','})" for shape in layout.shapes]
    if layout.names:
        shapes = [f"{name!r} {shape}" for name, shape in zip(layout.names, shapes, strict=True)]
    return " and ".join(shapes) or "nothing"
