"""Base class of all algorithms, their default states, and helpers that count local steps and gradients."""

import importlib
import math
from abc import abstractmethod
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Never, NoReturn

from msgspec import Meta

from mpifed.algorithms.parts.step_sizes import Rate, find_schedules
from mpifed.core.arrays import namespace
from mpifed.core.component import Component
from mpifed.core.errors import UserError
from mpifed.core.methods import CHOICES
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array as Array
from mpifed.core.typing import NumberFromZero
from mpifed.core.typing import PositiveFloat as PositiveFloat
from mpifed.core.typing import UnitFraction as UnitFraction
from mpifed.federation import traits
from mpifed.federation.local import Local as Local
from mpifed.federation.server import Federation as Federation
from mpifed.federation.traits import (
    MeanEstimate,
    Participation,
    PlotStyle,
    RecordValues,
    Requirement,
    Theorem,
    Unsupported,
    Upload,
)
from mpifed.kernels.plan import MiniBatches
from mpifed.theory.statements import Certificate, Condition, StudyConstants, no_theorem

STEP_SIZES = ("step", "lr", "gamma", "eta", "learning_rate", "step_size")  # usual names of a step size


def to_tune(description: str, gt: float | None = None, lt: float | None = None) -> Meta:
    """Return the Meta of the option to change first where iterates diverge."""
    return Meta(description=description, gt=gt, lt=lt, extra={"tuned": True})


LocalIterations = Annotated[int, Meta(ge=1, description="local iterations a round")]
BatchSize = Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")]
LastBatch = Annotated[
    Literal["keep", "drop", "merge"],
    Meta(description="the rest of an epoch: a smaller mini-batch, left out, or, if small, in the one before"),
]
StepSize = Annotated[Rate | None, to_tune("step size γ (default: 1/max r_i)")]


class Client(NamedTuple):
    """Client state of methods whose clients keep nothing."""


class Server(NamedTuple):
    """Server state of methods that keep the model alone."""

    x: Array  # (n,)


class Privacy(NamedTuple):
    """Privacy guarantee of uploads for samples or clients; ``text`` states it, or why ``holds`` is false.

    ``double``: the guarantee needs models in double precision. ``sums``: it holds for sums over all clients only.
    ``clients``: neighbours differ in all data of a client, otherwise in one sample. ``central``: it is that of noise
    which the server adds to a sum of uploads, whatever the method is.
    """

    holds: bool
    text: str
    double: bool = False
    sums: bool = False
    clients: bool = False
    central: bool = False
    grid: Callable[[int], float] | None = None  # m -> grid step of the uploads of m clients, if sums rely on it

    def __str__(self) -> str:
        return f"{'guaranteed' if self.holds else 'none'}: {self.text}"


class Queries(Component, kw_only=True):
    """Client methods of every algorithm: constants, scores for selection, and numbers for a certificate.

    ``certify_…`` are evaluations: method(f, client, *args) returns numbers of each client, and no ledger is charged.
    """

    certify: Annotated[
        bool, Meta(description="record which conditions of the method's theorem hold, in /certificate of the result")
    ] = False

    theorem: ClassVar[Theorem | Unsupported] = Unsupported("")  # whose conditions are checked, or why none are

    def smoothness(self, f: Local, client: Any) -> tuple[Any, Array]:
        """Return r_i, the bound of ‖∇²f_i‖, of each client: (c,)."""
        return client, f.lipschitz()

    def score(self, f: Local, client: Any, x: Array, size: int) -> tuple[Any, Array]:
        """Return the score of biased selection, ‖∇f_i(x)‖ on one mini-batch of ``size`` samples: (c,)."""
        batch = minibatch(f, size)
        g = batch.grad(x)
        return client, row_norms(g)

    def score_loss(self, f: Local, client: Any, x: Array, size: int) -> tuple[Any, Array]:
        """Return the score of power-of-choice, f_i(x) on one mini-batch of ``size`` samples: (c,)."""
        batch = minibatch(f, size)
        return client, batch.value(x)

    def importance(self, f: Local, client: Any) -> tuple[Array, Array]:
        """Return each client's odds for selection by importance, and its term of the factor of a set: (c,) each."""
        return f.lipschitz(), f.xp.ones(len(f))

    def received_model(self, f: Local, client: Any, x: Array) -> Array:
        """Return the models that clients compute with: (c, n); not the server's x where parameters stay with them."""
        return f.xp.broadcast_to(x, (len(f), f.n))

    def certificate(self, known: StudyConstants) -> Certificate:
        """Return which conditions of the method's theorem hold for the study's constants ``known``."""
        theorem = vars(type(self)).get("theorem")  # not inherited: a derived method may change anything
        if not theorem:
            return no_theorem(self.label().rpartition(":")[2], "" if theorem is None else theorem.why)
        for key in find_schedules(self):
            return no_theorem(self.label(), f"it is about a constant rate, and algorithm.{key} follows a schedule")
        module, _, function = theorem.function.partition(":")
        result: Certificate = getattr(importlib.import_module(module), function)(self, known)
        if known.selection == "arrivals" and not theorem.delayed:
            age = Condition.of("oldest upload in rounds = 0", known.oldest, "=", 0.0, "its rounds are synchronous")
            return result._replace(conditions=[*result.conditions, age])
        return result

    def certify_smoothness(self, f: Local, client: Any) -> Array:
        """Return r_i: (c,)."""
        return f.lipschitz()

    def certify_curvature(self, f: Local, client: Any) -> Array:
        """Return a lower bound of the eigenvalues of ∇²f_i: (c,)."""
        return f.least_curvature()

    def certify_objective(self, f: Local, client: Any, x: Array) -> tuple[Array, Array]:
        """Return f_i(x) (c,) and ∇f_i(x) (c, n)."""
        return f.value_grad(x)

    def certify_gradients(self, f: Local, client: Any, x: Array) -> tuple[Array, Array]:
        """Return ‖∇f_i(x)‖² and the largest |(∇f_i(x))_j|: (c,) each."""
        # value_grad of f itself: gradients of local steps may be random
        _, g = f.value_grad(x)
        return f.xp.vecdot(g, g), f.xp.max(f.xp.abs(g), axis=1)

    def certify_variance(self, f: Local, client: Any, x: Array, size: int, count: int) -> Array:
        """Return the mean of ‖g − ∇f_i(x)‖² over ``count`` gradients g of mini-batches of ``size`` samples: (c,)."""
        _, exact = f.value_grad(x)
        variance = f.zeros(1)[:, 0]
        for _, batch, _ in f.steps(count, 0, size):
            error = batch.grad(x) - exact
            variance = variance + f.xp.vecdot(error, error) / count
        return variance

    def certify_hessian(self, f: Local, client: Any, x: Array, v: Array) -> Array:
        """Return ∇²f_i(x) v: (c, n)."""
        return f.hessian(f.xp.tile(x, (len(f), 1)))(f.xp.tile(v, (len(f), 1)))


class Algorithm(Queries):
    """A federated algorithm; its fields are the hyper-parameters.

    ``init_client`` returns the first state of clients and ``init_server`` that of the server, with the model in its
    field ``x``; ``round`` is one communication round. A client method is called as method(f, client, *args). It returns
    the new state of those clients and what they upload: an array or a tuple of arrays whose leading axis is clients, or
    None. State goes in and comes out; no attribute of the algorithm is set.

    The class variables below are its traits; their types are in ``mpifed.extend``. A method runs without
    them, but a feature that needs a missing trait is refused. Optional methods: ``personal_models(f, client)`` returns
    personal models (c, n), ``newcomer_models(f, x)`` those of clients that never train, and ``score_dual_move`` how far
    a client's dual variables would move.
    The option to change first where iterates diverge has extra={"tuned": True} in its Meta.

    The docstring of an algorithm's file begins with its paper, including the year and arXiv:ID or doi:ID.

        >>> class Server(NamedTuple):
        ...     x: mpifed.extend.Array
        >>> class Descent(mpifed.extend.Algorithm):
        ...     lr: float = 0.1
        ...     def init_client(self, f):
        ...         return ()
        ...     def init_server(self, fed):
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
    plot_style: ClassVar[PlotStyle | None] = None  # in pictures; None: from the name of the class
    requires: ClassVar[tuple[Requirement, ...]] = ()  # methods of a problem beyond gradients
    participation: ClassVar[Participation] = Participation.SELECTED
    mean_estimate: ClassVar[MeanEstimate | Unsupported] = Unsupported(
        "it does not say whether a mean over the selected stands for one over all"
    )
    upload: ClassVar[Upload] = Upload()
    asynchronous: ClassVar[bool | Unsupported] = Unsupported("its rounds wait for all the clients that they call")
    no_proximal_step: ClassVar[Unsupported] = Unsupported("mpifed has no proximal step for its server")
    on_graph: ClassVar[bool] = False  # whether its clients are the nodes of a graph, as those of GraphAlgorithm
    refused: ClassVar[dict[str, str]] = {"optimizer": "it has no local gradient steps with a step size γ"}

    @classmethod
    def refuse_key(cls, key: str, value: Any, path: str) -> NoReturn:
        """Raise UserError for an option that this method lacks; for a step size it names the method's own."""
        key_to_tune = traits.option_to_tune(cls)
        if key in STEP_SIZES and key_to_tune:
            raise UserError(
                f"{path}.{key} is no option of {cls.label()}: what to tune first is {path}.{key_to_tune}, "
                f"such as {path}.{key_to_tune} = {toml_value(value)}"
            )
        super().refuse_key(key, value, path)

    def verify(self, selected: int) -> None:
        """Raise UserError before round one for options, or a number of selected clients, that cannot work."""

    def sample_gradients(self, d: Array) -> Array | None:
        """Return the sample gradients that a selected client of d samples computes for each selection: (m,).

        None if not known in advance. For a user's class without it, simulated time takes what a rehearsal counts, and
        everything else one gradient.
        """
        return d

    def repeats(self) -> float:
        """Return the mean number of times that a round takes ``sample_gradients``, where the number is drawn."""
        return 1.0

    def message_size(self, n: int) -> tuple[float, float]:
        """Return (down, up): numbers that a selected client receives and sends for n parameters.

        Compressed messages count in numbers of 64 bits.
        """
        return self.upload.vectors * n, self.upload.vectors * n

    def local_steps(self, d: Array) -> Array | None:
        """Return the local steps that a selected client of d samples takes in a round: (m,).

        None if it cannot take fewer. If it can, ``round`` passes ``fed.local_steps`` to f.steps() as ``most``.
        """
        return None

    def advice(self, m: int) -> str | None:
        """Return a warning about options that theory does not cover with m clients, or None."""
        return None

    def privacy(self) -> Privacy | None:
        """Return the privacy guarantee of the uploads; None for a method that claims none."""
        return None

    def replayed_rounds(self, server: Never, rounds: int) -> Any:
        """Return the server's state after the last ``rounds`` rounds before an interruption were run again."""
        return server

    @abstractmethod
    def init_client(self, f: Local) -> Any:
        """Return the first state of clients: a NamedTuple of arrays whose leading axis is clients."""

    @abstractmethod
    def init_server(self, fed: Never) -> Any:
        """Return the first server state, a NamedTuple with the model ``x`` (n,), from a Federation or a Network.

        ``Never`` lets each method narrow this type to the one it takes, and the state to the one it makes.
        """

    @abstractmethod
    def round(self, fed: Never, server: Never) -> Any:
        """Run one communication round and return the new server state."""

    def remember_upload(self, f: Local, client: Any, upload: tuple[Array, ...]) -> Any:
        """Return the clients' state, given the upload as the server received it after compression."""
        return client._replace(**{self.upload.server_copy: upload[0]}) if self.upload.server_copy else client

    def record(self, f: Local, client: Any, x: Array) -> RecordValues:
        """Return numbers of each client at the server's model x, by name: Sum or Max, (c,) each."""
        return {}

    def report(self, server: Never, row: dict[str, float], m: int) -> dict[str, float]:
        """Return the columns to record, given the server's state and ``record`` reduced over all m clients."""
        return row


class LocalEpochs(Algorithm):
    """Base of algorithms whose clients take k0 local iterations a round, or some epochs, on mini-batches."""

    k0: LocalIterations = 5
    batch_size: BatchSize = 0
    epochs: Annotated[NumberFromZero, Meta(description="local epochs, such as 2.5, in place of k0, if above 0")] = 0
    last_batch: LastBatch = "keep"

    def iterations(self) -> int:
        """Return the local iterations a round, by which k rises: k0, or the epochs that are begun."""
        return math.ceil(self.epochs) or self.k0

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, self.k0, self.epochs, self.batch_size, self.last_batch)


def minibatch(f: Local, size: int) -> Local:
    """Return f on a new mini-batch of ``size`` samples of each client; 0: on all samples."""
    _, batch, _ = next(f.steps(1, 0, size))
    return batch


def squared_norms(V: Array) -> Array:
    """Return ‖v_i‖² of rows V (c, n): (c,)."""
    return namespace(V).vecdot(V, V)


def row_norms(V: Array) -> Array:
    """Return ‖v_i‖ of rows V (c, n): (c,)."""
    return namespace(V).sqrt(squared_norms(V))


def count_steps(d: Array, k0: int, epochs: float, batch_size: int, last_batch: str = "keep") -> Array:
    """Count the steps of f.steps() with these options, of clients of d samples: (m,)."""
    return MiniBatches.of_round(k0, epochs, batch_size, last_batch).count_steps(d)


def count_gradients(d: Array, k0: int, epochs: float, batch_size: int, last_batch: str = "keep") -> Array:
    """Count the sample gradients of f.steps() with these options and one gradient a step: (m,)."""
    return MiniBatches.of_round(k0, epochs, batch_size, last_batch).count_gradients(d)
