"""What server and hosts use of an algorithm."""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, Self, runtime_checkable

from mpifed.core.guards import own
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.traits import Mean, Need, Recorded, Refused, Takes, Upload


class ServerState(Protocol):
    """The state of a server between two rounds: a NamedTuple of arrays and numbers, the model x (n,) among them."""

    @property
    def x(self) -> Array: ...
    @property
    def _replace(self) -> Callable[..., Self]: ...
    def _asdict(self) -> dict[str, Any]: ...


class Joining(Protocol):
    """What clients run: its other methods are found by the names that requests have."""

    def join(self, f: Local) -> Any: ...


class Method(Joining, Protocol):
    """A method: its traits, what it says of work and traffic, and the client methods that the house itself calls.

    Other client methods are found by the name that a request has.
    """

    requires: ClassVar[tuple[Need, ...]]
    takes: ClassVar[Takes]
    mean: ClassVar[Mean | Refused]
    upload: ClassVar[Upload]
    asynchronous: ClassVar[bool | Refused]

    @classmethod
    def label(cls) -> str: ...
    def work(self, d: Array) -> Array | None: ...
    def traffic(self, n: int) -> tuple[float, float]: ...
    def local_steps(self, d: Array) -> Array | None: ...
    def received(self, f: Local, client: Any, upload: tuple[Array, ...]) -> Any: ...
    def record(self, f: Local, client: Any, x: Array) -> Recorded: ...
    def importance(self, f: Local, client: Any) -> tuple[Array, Array]: ...


@runtime_checkable
class Personalised(Protocol):
    """A method whose clients have models of their own."""

    def personalised(self, f: Local, client: Any) -> Array:
        """The clients' own models (c, n)."""


@runtime_checkable
class PersonalFrom(Protocol):
    """A method that makes a personal model for a client that has never trained."""

    def personal_from(self, f: Local, x: Array) -> Array:
        """The personal models (c, n) that clients make from the server's model x (n,), by the training of one round."""


@runtime_checkable
class MovesDuals(Protocol):
    """A method whose clients can say how far their dual variables would move."""

    def score_move(self, f: Local, client: Any, x: Array, size: int, *constants: float) -> tuple[Any, Array]:
        """The length of a step (c,)."""


@runtime_checkable
class Proximal(Protocol):
    """A method whose server can minimise F = f + h: the model of its round without h is what h is minimised about."""

    def proximal_step(self, server: ServerState, m: int) -> float:
        """The t of x⁺ = argmin_u h(u) + ‖u − x‖²/(2t), from the server's state after a round without h."""


def states_work(cls: type) -> bool:
    """Whether a class says itself what its clients compute: one of mpifed's own, or one that defines ``work``."""
    return not own(cls) or own(next(base for base in cls.__mro__ if "work" in vars(base)))


def proximal(method: Method) -> bool:
    """Whether a method has a proximal step that is about its own round, not about one that a derived class changes."""
    cls = type(method)
    return isinstance(method, Proximal) and defined(cls, "proximal_step") <= defined(cls, "round")


def defined(cls: type, name: str) -> int:
    """How many classes below ``cls`` its method ``name`` is written; checks around it do not count."""
    own = inspect.unwrap(getattr(cls, name))
    return max(k for k, base in enumerate(cls.__mro__) if inspect.unwrap(vars(base).get(name, defined)) is own)
