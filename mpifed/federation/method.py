"""The protocols of an algorithm: the members that server and hosts use."""

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, Protocol, Self, TypeVar, TypeVarTuple, runtime_checkable

from mpifed.core.guards import is_user_class
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.traits import MeanEstimate, Participation, RecordValues, Requirement, Unsupported, Upload

ClientMethod = Callable[..., Any]  # f, the state of clients and arguments -> new state, upload
MethodFinder = Callable[[str], ClientMethod | None]  # name -> client method
Args = TypeVarTuple("Args")  # the arguments of a call, which a type checker compares with those of the client method
Row = TypeVar("Row")  # the argument of which each client gets a row of its own
Called = Callable[[Local, Any, *Args], Any]
CalledWithRow = Callable[[Local, Any, *Args, Row], Any]


class ServerState(Protocol):
    """The state of a server between two rounds: a NamedTuple of arrays and numbers, the model x (n,) among them."""

    @property
    def x(self) -> Array: ...
    @property
    def _replace(self) -> Callable[..., Self]: ...
    def _asdict(self) -> dict[str, Any]: ...


class Joinable(Protocol):
    """An object whose methods clients run; requests name the methods other than ``init_client``."""

    def init_client(self, f: Local) -> Any: ...


def find_method(algorithm: Joinable, name: str) -> ClientMethod | None:
    """Return the client method of this name; None where there is none."""
    return getattr(algorithm, name, None)


def wrap_methods(find: MethodFinder, wrap: Callable[[str, Any], ClientMethod]) -> MethodFinder:
    """Return a function that finds client methods as ``wrap(name, method)`` returns them."""
    return lambda name: wrap(name, find(name))


class FederatedMethod(Joinable, Protocol):
    """A method: its traits, its work and message sizes, and the client methods that mpifed itself calls.

    Requests name other client methods.
    """

    requires: ClassVar[tuple[Requirement, ...]]
    participation: ClassVar[Participation]
    mean_estimate: ClassVar[MeanEstimate | Unsupported]
    upload: ClassVar[Upload]
    asynchronous: ClassVar[bool | Unsupported]

    @classmethod
    def label(cls) -> str: ...
    def sample_gradients(self, d: Array) -> Array | None: ...
    def message_size(self, n: int) -> tuple[float, float]: ...
    def local_steps(self, d: Array) -> Array | None: ...
    def remember_upload(self, f: Local, client: Any, upload: tuple[Array, ...]) -> Any: ...
    def record(self, f: Local, client: Any, x: Array) -> RecordValues: ...
    def importance(self, f: Local, client: Any) -> tuple[Array, Array]: ...
    def received_model(self, f: Local, client: Any, x: Array) -> Array: ...


@runtime_checkable
class HasPersonalModels(Protocol):
    """A method whose clients have models of their own."""

    def personal_models(self, f: Local, client: Any) -> Array:
        """Return the clients' own models (c, n)."""


@runtime_checkable
class TrainsPersonalModels(Protocol):
    """A method that makes a personal model for a client that has never trained."""

    def newcomer_models(self, f: Local, x: Array) -> Array:
        """Return the personal models (c, n) that clients train from the server's model x (n,), as in one round."""


@runtime_checkable
class ScoresDualMoves(Protocol):
    """A method whose clients can say how far their dual variables would move."""

    def score_dual_move(self, f: Local, client: Any, x: Array, size: int, *constants: float) -> tuple[Any, Array]:
        """Return the lengths of the dual steps (c,)."""


@runtime_checkable
class Proximal(Protocol):
    """A method whose server can minimise F = f + h, by a proximal step of h from the model of a round without h."""

    def proximal_step(self, server: ServerState, m: int) -> float:
        """Return t of x⁺ = argmin_u h(u) + ‖u − x‖²/(2t), from the server's state after a round without h."""


def declares_work(cls: type) -> bool:
    """Return whether a class states its clients' work: mpifed's do, and others that define ``sample_gradients``."""
    return not is_user_class(cls) or is_user_class(
        next(base for base in cls.__mro__ if "sample_gradients" in vars(base))
    )


def has_proximal_step(method: FederatedMethod) -> bool:
    """Return whether a method has a proximal step that fits its round, which a derived class may have changed."""
    cls = type(method)
    return isinstance(method, Proximal) and class_depth(cls, "proximal_step") <= class_depth(cls, "round")


def class_depth(cls: type, name: str) -> int:
    """Return how many classes up from ``cls`` its method ``name`` is defined; checks around it do not count."""
    function = inspect.unwrap(getattr(cls, name))
    return max(k for k, base in enumerate(cls.__mro__) if inspect.unwrap(vars(base).get(name, class_depth)) is function)
