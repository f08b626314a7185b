"""The client methods of a user's own algorithm as hosts call them: each reply is checked.

They get a state that can only be read: writing into it would last for some of the clients alone, those that are not
copied. What a method uploads has the same form in every call, as ranks agree on it once.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from mpifed.core.arrays import is_tensor
from mpifed.core.errors import UserError
from mpifed.core.guards import Wrong, checked, file
from mpifed.federation.checked_replies import CLIENT, form, reply, text
from mpifed.federation.host import ClientMethod
from mpifed.federation.local import Local
from mpifed.federation.method import Method
from mpifed.federation.peers.neighbourhood import Neighbours
from mpifed.federation.request import Layout, protected, refuse_arguments


class CheckedMethods:
    """What a host puts around the client methods of ``algorithm``; those that ``house`` has, the class of all
    algorithms, stay as they are."""

    def __init__(self, algorithm: Method, house: type) -> None:
        self.algorithm = algorithm
        self.house = house
        self.forms: dict[str, Layout] = {}
        self.made: dict[str, Callable[..., Any]] = {}

    def __call__(self, name: str, method: ClientMethod | None) -> Callable[..., Any]:
        """A client method with its check. UserError where there is none of that name."""
        kind = type(self.algorithm)
        if method is None:
            raise UserError(
                f"round of {file(kind.join)} calls {name!r} on clients, and {kind.__name__} has no such method: a "
                "client method is a method of the algorithm, so that every rank finds it by its name"
            )
        if hasattr(self.house, name):
            return method
        if name not in self.made:
            guarded = checked(getattr(kind, name), partial(self.same_form, name), CLIENT)
            self.made[name] = partial(self.answer, guarded)
        return self.made[name]

    def answer(self, method: ClientMethod, f: Local, client: Any, *args: Any) -> Any:
        """What a client method returns for a state that it only reads; fields that stay are those of ``client``."""
        plain = tuple([arg for arg in args if not (isinstance(arg, Neighbours) or is_tensor(arg))])
        refuse_arguments(method.__name__, plain)
        read = type(client)(*[field.clone() if is_tensor(field) else protected(field) for field in client])
        state, upload = method(self.algorithm, f, read, *args)
        if state is read:
            return client, upload
        # a field that came back as the view that was handed out is the client's own: the host need not copy it
        pairs = zip(state, read, client, strict=True)
        return type(client)(*[before if new is seen else new for new, seen, before in pairs]), upload

    def same_form(self, name: str, algorithm: Method, result: Any, f: Local, client: Any, *args: Any) -> Any:
        """A reply that is right, and whose upload has the form of those before."""
        reply(algorithm, result, f, client, *args)
        new = form(result[1])
        before = self.forms.setdefault(name, new)
        if new != before:
            raise Wrong(f"uploads {text(new)}, and before it uploaded {text(before)}: the form of an upload stays")
        return result
