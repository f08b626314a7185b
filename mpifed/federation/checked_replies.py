"""A method of a user's own: what its client methods return is checked on the hosts, in every call."""

from functools import partial
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.guards import Wrong, checked, file, shown
from mpifed.federation.local import Local
from mpifed.federation.method import Method

CLIENT = "the client method "
PAIR = "it must return (new state, upload), one row for each of the c clients"


def refuse_field(name: str, value: Any, c: int) -> None:
    """Wrong where a field of the clients' state is no array with a row for each of c clients."""
    if not is_rows(value, c):
        raise Wrong(f"returns a state whose field {name} is {shown(value)}, called for c = {c} clients: {PAIR}")


def is_rows(value: Any, c: int) -> bool:
    """Whether a value is an array of real numbers with c rows."""
    return isinstance(value, np.ndarray) and value.ndim > 0 and len(value) == c and value.dtype.kind in "fiub"


def reply(algorithm: Method, result: Any, f: Local, client: Any, *args: Any) -> Any:
    """What a client method returns: the new state of its clients, and an upload or None."""
    if not isinstance(result, tuple) or hasattr(result, "_fields") or len(result) != 2:
        raise Wrong(f"returns {shown(result)}: {PAIR}")
    state, upload = result
    if type(state) is not type(client):
        raise Wrong(f"returns {shown(state)} as the new state, and a state is a {type(client).__name__}: {PAIR}")
    for name, value, before in zip(client._fields, state, client, strict=True):
        if value is before:
            continue
        refuse_field(name, value, len(f))
        if value.shape != before.shape:
            raise Wrong(
                f"returns a state whose field {name} is {shown(value)}, and before it was {shown(before)}: "
                "the shape of a field stays"
            )
    refuse_upload(upload, len(f))
    return result


def refuse_upload(upload: Any, c: int) -> None:
    """Wrong where an upload is neither None nor made of arrays with a row for each of c clients."""
    if upload is None:
        return
    parts = list(upload.values()) if isinstance(upload, dict) else upload
    for part in parts if isinstance(parts, tuple | list) and not isinstance(upload, list) else [parts]:
        if not is_rows(part, c):
            raise Wrong(f"returns {shown(part)} as its upload, called for c = {c} clients: {PAIR}")


class CheckedAnswers:
    """The client methods of a user's own algorithm as hosts call them: each reply is checked."""

    def __init__(self, algorithm: Method, house: type) -> None:
        self._algorithm = algorithm
        self._house = house

    def __getattr__(self, name: str) -> Any:
        """A client method with its check; what ``house`` has, the class of all algorithms, stays as it is."""
        algorithm = self._algorithm
        found = getattr(algorithm, name, None)
        if found is None:
            raise UserError(
                f"round of {file(type(algorithm).join)} calls {name!r} on clients, and {type(algorithm).__name__} has "
                "no such method: a client method is a method of the algorithm, so that every rank finds it by its name"
            )
        if not hasattr(self._house, name) and callable(found):
            found = partial(checked(getattr(type(algorithm), name), reply, CLIENT), algorithm)
            setattr(self, name, found)  # so that the next call finds it at once
        return found
