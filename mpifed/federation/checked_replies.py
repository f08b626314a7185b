"""A method of a user's own: what its client methods return is checked on the hosts, in every call."""

from functools import partial
from typing import Any

from mpifed.core.arrays import is_real, is_tensor
from mpifed.core.errors import UserError
from mpifed.core.guards import Wrong, checked, file, shown
from mpifed.federation.local import Local
from mpifed.federation.method import Method
from mpifed.federation.peers.neighbourhood import Near
from mpifed.federation.request import Layout, parts_of, protected, refuse_arguments

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
    parts = list(upload.values()) if isinstance(upload, dict) else upload
    for part in parts if isinstance(parts, tuple | list) and not isinstance(upload, list) else [parts]:
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


class CheckedAnswers:
    """The client methods of a user's own algorithm as hosts call them: each reply is checked.

    They get a state that can only be read: writing into it would last for some of the clients alone, those that are
    not copied. What a method uploads has the same form in every call, as ranks agree on it once.
    """

    def __init__(self, algorithm: Method, house: type) -> None:
        self._algorithm = algorithm
        self._house = house
        self._forms: dict[str, Layout] = {}

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
            found = partial(self._answer, checked(getattr(type(algorithm), name), partial(self._reply, name), CLIENT))
            setattr(self, name, found)  # so that the next call finds it at once
        return found

    def _answer(self, method: Any, f: Local, client: Any, *args: Any) -> Any:
        """What a client method returns for a state that it only reads; fields that stay are those of ``client``."""
        plain = tuple([arg for arg in args if not (isinstance(arg, Near) or is_tensor(arg))])
        refuse_arguments(method.__name__, plain)
        read = type(client)(*[field.clone() if is_tensor(field) else protected(field) for field in client])
        state, upload = method(self._algorithm, f, read, *args)
        if state is read:
            return client, upload
        pairs = zip(state, read, client, strict=True)
        return type(client)(*[before if new is seen else new for new, seen, before in pairs]), upload

    def _reply(self, name: str, algorithm: Method, result: Any, f: Local, client: Any, *args: Any) -> Any:
        """The same as ``reply``, for an upload that has the form of those before."""
        reply(algorithm, result, f, client, *args)
        new = form(result[1])
        before = self._forms.setdefault(name, new)
        if new != before:
            raise Wrong(f"uploads {text(new)}, and before it uploaded {text(before)}: the form of an upload stays")
        return result
