"""Feature of user-written methods: hosts check what their client methods return, in every call."""

from collections.abc import Callable
from functools import partial
from typing import Any

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.arrays import is_tensor
from mpifed.core.errors import UserError
from mpifed.core.guards import InvalidReturn, file_name_of, wrap_with_guard
from mpifed.core.promises import Supports
from mpifed.engine.plugin import EnginePlugin, HostDivision
from mpifed.federation.host import Host
from mpifed.federation.local import Local
from mpifed.federation.method import ClientMethod, FederatedMethod, wrap_methods
from mpifed.federation.peers.neighbourhood import Neighbours
from mpifed.federation.reply_guards import CLIENT, check_reply, describe_layout, upload_layout
from mpifed.federation.request import ReplyLayout, make_read_only, refuse_arguments


class MethodChecker:
    """Wrapper that hosts put around the client methods of ``algorithm``, except methods that its base ``house`` has.

    Client methods get a read-only state: writing into it would last for some clients alone, those that are not copied.
    What a method uploads has the same form in every call, because ranks agree on it once.
    """

    def __init__(self, algorithm: FederatedMethod, house: type) -> None:
        self.algorithm = algorithm
        self.house = house
        self.forms: dict[str, ReplyLayout] = {}
        self.methods: dict[str, Callable[..., Any]] = {}

    def __call__(self, name: str, method: ClientMethod | None) -> Callable[..., Any]:
        """Return a client method with its check; raise UserError where there is none of that name."""
        cls = type(self.algorithm)
        if method is None:
            raise UserError(
                f"round of {file_name_of(cls.init_client)} calls {name!r} on clients, and {cls.__name__} has no such "
                "method: a "
                "client method is a method of the algorithm, so that every rank finds it by its name"
            )
        if hasattr(self.house, name):
            return method
        if name not in self.methods:
            guarded = wrap_with_guard(getattr(cls, name), partial(self.same_form, name), CLIENT)
            self.methods[name] = partial(self.answer, guarded)
        return self.methods[name]

    def answer(self, method: ClientMethod, f: Local, client: Any, *args: Any) -> Any:
        """Call a client method with a read-only state; fields that it returns unchanged are those of ``client``."""
        plain = tuple([arg for arg in args if not (isinstance(arg, Neighbours) or is_tensor(arg))])
        refuse_arguments(method.__name__, plain)
        read = type(client)(*[field.clone() if is_tensor(field) else make_read_only(field) for field in client])
        state, upload = method(self.algorithm, f, read, *args)
        if state is read:
            return client, upload
        # a field that comes back as the view that was passed is unchanged: the host need not copy it
        pairs = zip(state, read, client, strict=True)
        return type(client)(*[before if new is seen else new for new, seen, before in pairs]), upload

    def same_form(self, name: str, algorithm: FederatedMethod, result: Any, f: Local, client: Any, *args: Any) -> Any:
        """Check a reply, and that its upload has the form of earlier ones; return it."""
        check_reply(algorithm, result, f, client, *args)
        new = upload_layout(result[1])
        before = self.forms.setdefault(name, new)
        if new != before:
            raise InvalidReturn(
                f"uploads {describe_layout(new)}, and before it uploaded {describe_layout(before)}: the form of an "
                "upload stays"
            )
        return result


class UserClasses(EnginePlugin):
    """Checks of a method that a user has written."""

    # It checks what is returned and changes nothing; the class that it checks speaks for itself.
    supports = Supports.EVERYTHING

    def extend_host(self, host: Host, division: HostDivision) -> None:
        host.find_method = wrap_methods(host.find_method, MethodChecker(self.config.algorithm, Algorithm))
