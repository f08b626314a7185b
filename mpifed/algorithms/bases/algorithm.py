"""What an algorithm is: a server that calls and clients that answer; and the types that its methods speak of."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple, Never, NoReturn

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.answers import Answers
from mpifed.algorithms.bases.answers import minibatch as minibatch
from mpifed.core.errors import UserError
from mpifed.core.methods import CHOICES
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array as Array
from mpifed.core.typing import Positive as Positive
from mpifed.core.typing import Share as Share
from mpifed.federation import traits
from mpifed.federation.local import Local as Local
from mpifed.federation.server import Federation as Federation
from mpifed.federation.traits import Look, Mean, Need, Recorded, Refused, Takes, Upload

STEP_SIZES = ("step", "lr", "gamma", "eta", "learning_rate", "step_size")  # what people call it


def tuned(description: str, gt: float | None = None, lt: float | None = None) -> Meta:
    """The Meta of the option to change where iterates diverge."""
    return Meta(description=description, gt=gt, lt=lt, extra={"tuned": True})


StepSize = Annotated[Positive | None, tuned("step size γ (default: 1/max r_i)")]


class Client(NamedTuple):
    """The state of clients where they keep nothing."""


class Server(NamedTuple):
    """The state of a server where it keeps nothing but the model."""

    x: Array  # (n,)


class Privacy(NamedTuple):
    """What uploads guarantee about single samples or clients: ``text`` says it, or why ``holds`` is false.

    ``double``: the guarantee needs models in double precision. ``sums``: it is one for sums over all clients alone.
    ``clients``: neighbours differ in all data of a client, otherwise in one sample.
    """

    holds: bool
    text: str
    double: bool = False
    sums: bool = False
    clients: bool = False
    grid: Callable[[int], float] | None = None  # m -> what uploads of m clients are multiples of, if sums count on it

    def __str__(self) -> str:
        return f"{'guaranteed' if self.holds else 'none'}: {self.text}"


class Algorithm(Answers):
    """A federated algorithm; its fields are the hyper-parameters.

    ``join`` returns the first state of clients and ``start`` that of the server, with the model in its field ``x``;
    ``round`` is one communication round. A client method is called as method(f, client, *args). It returns the new
    state of those clients and what they upload: an array or a tuple of arrays whose leading axis is clients, or None.
    State goes in and comes out; no attribute of the algorithm is set.

    The class variables below are its traits, what it says of itself: ``mpifed.federation.traits`` has their types. A
    method without them runs; each one that it lacks costs the feature that asks for it, and the refusal names it. An
    algorithm with a method ``personalised(f, client)`` has personal models, which it returns (c, n), and with
    ``personal_from(f, x)`` those that clients which never train make from the server's x. One with ``score_move`` says
    how far a client's dual variables would move.
    The option to change where iterates diverge has extra={"tuned": True} in its Meta.

    The docstring of an algorithm's file begins with its paper, including the year and arXiv:ID or doi:ID.

        >>> class Server(NamedTuple):
        ...     x: mpifed.Array
        >>> class Descent(mpifed.Algorithm):
        ...     lr: float = 0.1
        ...     def join(self, f):
        ...         return ()
        ...     def start(self, fed):
        ...         return Server(fed.initial())
        ...     def round(self, fed, server):
        ...         return Server(server.x - self.lr * fed.mean(self.gradient, server.x, to=fed.select(server.x)))
        ...     def gradient(self, f, client, x):
        ...         return client, f.grad(x)
        >>> mpifed.run(algorithm=Descent(lr=0.2), rounds=3).cr
        3
    """

    choices: ClassVar[dict[str, str]] = CHOICES
    default: ClassVar[str] = "fedgia"
    kind: ClassVar[str] = "algorithms"
    checks: ClassVar[str] = "mpifed.algorithms.bases.method_guards"

    title: ClassVar[str] = ""  # as its paper writes it
    look: ClassVar[Look | None] = None  # in pictures; None: from the name of the class
    requires: ClassVar[tuple[Need, ...]] = ()  # methods of a problem beyond gradients
    takes: ClassVar[Takes] = Takes.SELECTED
    mean: ClassVar[Mean | Refused] = Refused("it does not say whether a mean over the selected stands for one over all")
    upload: ClassVar[Upload] = Upload()
    asynchronous: ClassVar[bool | Refused] = Refused("its rounds wait for all the clients that they call")
    no_proximal_step: ClassVar[Refused] = Refused("mpifed has no proximal step for its server")
    on_graph: ClassVar[bool] = False  # whether its clients are the nodes of a graph, as those of GraphAlgorithm
    refused: ClassVar[dict[str, str]] = {"optimizer": "it has no local gradient steps with a step size γ"}

    @classmethod
    def refuse_key(cls, key: str, value: Any, path: str) -> NoReturn:
        """UserError for an option that this method does not have; for a step size it names that of the method."""
        own = traits.tuned(cls)
        if key in STEP_SIZES and own:
            raise UserError(
                f"{path}.{key} is no option of {cls.label()}: what to tune first is {path}.{own}, "
                f"such as {path}.{own} = {toml_value(value)}"
            )
        super().refuse_key(key, value, path)

    def verify(self, selected: int) -> None:
        """Refuse, before round one, options or a number of selected clients that cannot work (UserError)."""

    def work(self, d: Array) -> Array | None:
        """Sample gradients that a selected client of d samples computes for each selection: (m,).

        None where they are not known in advance. ``passes`` counts those of f.steps(). A class of a user's own without
        it gets those that a rehearsal counts where simulated time needs them; elsewhere they stand for one gradient.
        """
        return d

    def units(self) -> float:
        """How many times ``work`` a round takes on average, where that is drawn."""
        return 1.0

    def traffic(self, n: int) -> tuple[float, float]:
        """Numbers that a selected client downloads and uploads for each selection, with n parameters: (down, up).

        What is compressed counts as so many numbers of 64 bits.
        """
        return self.upload.vectors * n, self.upload.vectors * n

    def local_steps(self, d: Array) -> Array | None:
        """Local steps that a selected client of d samples takes in a round: (m,).

        None where it cannot take fewer; where it can, ``round`` hands ``fed.local_steps`` on, ``most`` of f.steps().
        """
        return None

    def advice(self, m: int) -> str | None:
        """A warning about options that theory does not cover with m clients, or None."""
        return None

    def privacy(self) -> Privacy | None:
        """What the uploads guarantee about single samples; None for a method that claims nothing of the kind."""
        return None

    def redrawn(self, server: Never, rounds: int) -> Any:
        """The server's state where the last ``rounds`` rounds before an interruption are run again."""
        return server

    @abstractmethod
    def join(self, f: Local) -> Any:
        """The first state of clients: a NamedTuple of arrays whose leading axis is clients."""

    @abstractmethod
    def start(self, fed: Never) -> Any:
        """The first state of the server, a NamedTuple with the model ``x`` (n,), from a Federation or a Network.

        ``Never`` here lets each method say which of them it takes; below also what the state is that it makes here.
        """

    @abstractmethod
    def round(self, fed: Never, server: Never) -> Any:
        """One communication round."""

    def received(self, f: Local, client: Any, upload: tuple[Array, ...]) -> Any:
        """The clients' state once they know what the server has of a compressed upload."""
        return client._replace(**{self.upload.known: upload[0]}) if self.upload.known else client

    def record(self, f: Local, client: Any, x: Array) -> Recorded:
        """Numbers of each client at the server's model x, by name: Sum or Max, (c,) each."""
        return {}

    def report(self, server: Never, row: dict[str, float], m: int) -> dict[str, float]:
        """Columns of the record, from the server's state and what ``record`` gave of all m clients together."""
        return row


def counted(d: Array, k0: int, epochs: int, batch_size: int) -> Array:
    """Steps of f.steps(k0, epochs, batch_size) of clients of d samples: (m,)."""
    each = np.ceil(d / batch_size).astype(np.int64) if epochs and batch_size else np.ones(len(d), np.int64)
    return (epochs or k0) * each


def passes(d: Array, k0: int, epochs: int, batch_size: int) -> Array:
    """Sample gradients of f.steps(k0, epochs, batch_size) with one gradient a step, for clients of d samples: (m,)."""
    if epochs:
        return epochs * d
    return k0 * (np.minimum(batch_size, d) if batch_size else d)
