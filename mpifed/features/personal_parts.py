"""Feature of parts of a model that stay with the clients: the key ``personal``."""

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any, ClassVar

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.promises import Reasons, Supports
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.conditions import Violation
from mpifed.features.conflict import Conflict, list_methods
from mpifed.features.conflicts import has_personal_models
from mpifed.features.feature import Plugin
from mpifed.features.penalty.coefficients import coefficient_names
from mpifed.features.settings import Experiment
from mpifed.federation.callback import Callback
from mpifed.federation.method import FederatedMethod
from mpifed.federation.request import (
    CALL,
    EVALUATE,
    EVALUATE_SUMS,
    SCORES,
    Reply,
    ReplyLayout,
    Request,
    entry_count,
    is_charged,
    join_reply,
    make_read_only,
    split_reply,
)
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import has_options
from mpifed.federation.transform import HOME, ClientBatch, MessageCost, ServerTransform, Transform
from mpifed.problems.problem import Problem

LISTED = 20  # names in an error message
GRADIENT = "gradient"
AT_HOME = "gradient_at_home"  # Σ ‖∇f_i‖² over the parameters at home


def parameter_sizes(problem: Problem, data: Dataset) -> list[tuple[str, int]]:
    """Return the names and sizes of a problem's parameters in their order in x; each coefficient is one of its own."""
    with problem.raise_user_errors():
        named = problem.parameter_sizes(data)
        n = problem.dim(data)
    return [*named.items()] or [(name, 1) for name in coefficient_names(data, n)]


def describe_sizes(sizes: Sequence[tuple[str, int]]) -> str:
    """Return names with the numbers of their entries in a line, all of a network and the first of a long table."""
    words = [name if size == 1 else f"{name} ({size:,})" for name, size in sizes[:LISTED]]
    return ", ".join([*words, *(["…"] if len(sizes) > LISTED else [])])


def select_home(patterns: Sequence[str], problem: Problem, data: Dataset) -> Array:
    """Return which parameters stay with the clients: (n,) bool. Raise UserError where a pattern names none, or all."""
    sizes = parameter_sizes(problem, data)
    names = [name for name, _ in sizes]
    for pattern in patterns:
        if not any(matches(name, pattern) for name in names):
            raise UserError(
                f"personal names {toml_value(pattern)}, which is no parameter of {problem.label()}: there are "
                f"{describe_sizes(sizes)}"
            )
    home = [any(matches(name, pattern) for pattern in patterns) for name in names]
    if all(home):
        raise UserError(
            f"personal = {toml_value(list(patterns))} names all parameters, so that nothing would travel: leave out "
            f"some of {describe_sizes(sizes)}"
        )
    return np.repeat(home, [size for _, size in sizes])


def matches(name: str, pattern: str) -> bool:
    """Return whether a pattern names a parameter: names of columns may have characters with a meaning in patterns."""
    return name == pattern or fnmatchcase(name, pattern)


def leaves_parts(method: FederatedMethod) -> bool:
    """Return whether a method with its options can leave parameters with the clients."""
    return explain_whole(method) is None


def explain_whole(method: FederatedMethod) -> str | None:
    """Return why the server of a method needs whole models, or None."""
    options = method.upload.at_home
    if has_personal_models(method):
        return "its clients have whole models of their own"
    if options is None:
        return (
            "it does not say that its server can do without a part of each model; a class of your own says so by "
            "upload = mpifed.extend.Upload(at_home={})"
        )
    for key, value in options.items():
        if hasattr(method, key) and not has_options(method, {key: value}):
            return f"it can only with algorithm.{key} = {toml_value(value)}"
    if method.message_size(1)[1] != method.upload.vectors:
        return "its clients upload a number here that is about whole models"
    return None


def whole_models(c: Experiment) -> Violation:
    """Return why the server of a study needs whole models, or None."""
    why = explain_whole(c.algorithm)
    return None if why is None else {"why": why, "able": list_methods(leaves_parts)}


HOME_ROWS = [
    Conflict(
        ("personal", "a method whose server needs whole models"),
        "personal is wrong: {name} cannot leave parameters with the clients, because {why}; {able} can",
        whole_models,
    ),
    Conflict(
        ("personal", "asynchronous"),
        "personal is wrong with [asynchronous]: clients join what they receive with parameters of their own in "
        "synchronous rounds alone",
    ),
    Conflict(
        ("personal", "algorithm.certify"),
        "algorithm.certify = true is wrong with personal: theorems are about one model",
        lambda c: c.algorithm.certify,
    ),
]


class PartsAtHome(Transform):
    """Messages that lack the parameters ``home`` (n,) bool, of which each client keeps its own.

    A client joins what it receives with its own parameters, and keeps those that its method would upload. The server
    has zeros in their place. Fields (c, n) of a client's state keep their first values there: control variates and
    dual variables pull a client to the others, and what stays at home is its own.
    """

    # What travels is a part of what would travel, and the rest is in the state of clients that checkpoints save.
    supports = Supports.EVERYTHING & ~Supports.DEVICES
    name = HOME

    def __init__(self, setup: RunSpec, first: Array) -> None:
        assert setup.home is not None
        self.home = setup.home
        self.shared = ~setup.home
        self.first = first  # (n_home,) parameters with which every client begins
        self.cut_shape = setup.shared_start.shape
        self.adds_changes = setup.algorithm.upload.content == "change"

    def begin(self, request: Request, cost: MessageCost) -> None:
        """Cut the models of calls and evaluations; clients that never train get them whole."""
        if request.request_type not in (CALL, EVALUATE):
            return
        self.mark(request, first=True)
        request.args = tuple(
            [a[self.shared] if is_charged(a) and a.shape == self.home.shape else a for a in request.args]
        )

    def receive(self, request: Request, batch: ClientBatch, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Join the first vector, the model, with each client's parameters, (c, n), and others with zeros, (n,)."""
        joined = list(args)
        cut = [k for k, a in enumerate(args) if is_charged(a) and a.shape == self.cut_shape]
        for k in cut:
            rows = np.zeros((len(batch.f), *self.home.shape) if k == cut[0] else self.home.shape, args[k].dtype)
            rows[..., self.shared] = args[k]
            if k == cut[0]:
                rows[:, self.home] = self.kept_rows()[batch.picks]
            joined[k] = make_read_only(rows)
        return tuple(joined)

    def kept_rows(self) -> Array:
        """Return the parameters that stay with the clients of this host: (clients, n_home)."""
        if HOME not in self.client_state:
            self.client_state[HOME] = np.tile(self.first, (self.client_state.count, 1))
        return self.client_state[HOME]

    def encode(self, request: Request, batch: ClientBatch, new: Any, upload: Any) -> tuple[Any, Any]:
        """Keep the clients' parameters, and return the state and the upload without them."""
        if request.request_type == EVALUATE:
            return new, self.split_gradient(upload) if request.method == EVALUATE_SUMS else upload
        if upload is None or request.reduce == "max" or request.method in SCORES:
            return new, upload
        parts = split_reply(upload)[0]
        vectors = [part for part in parts if part.shape[1:] == self.home.shape]
        if vectors:
            kept = self.kept_rows()
            rows = vectors[0].compress(self.home, axis=1)
            kept[batch.picks] = kept[batch.picks] + rows if self.adds_changes else rows
        cut = [part.compress(self.shared, axis=1) if part.shape[1:] == self.home.shape else part for part in parts]
        return self.restore_state(batch.state, new), join_reply(upload, tuple(cut))

    def restore_state(self, before: Any, new: Any) -> Any:
        """Return the new state of clients with the fields (c, n) as ``before`` where parameters stay at home."""
        fields = {}
        for name, old, field in zip(new._fields, before, new, strict=True):
            if field is not old and field.shape[1:] == self.home.shape:
                fields[name] = np.where(self.home, old, field)
        return new._replace(**fields)

    def split_gradient(self, sums: dict[str, Array]) -> dict[str, Array]:
        """Return evaluated sums with ∇f_i of what travels, and ‖∇f_i‖² of the rest: (c,)."""
        gradient = sums[GRADIENT]
        # compress returns rows in one piece; [:, home] does not, and then a sum along a row has other last bits
        own = gradient.compress(self.home, axis=1)
        return sums | {GRADIENT: gradient.compress(self.shared, axis=1), AT_HOME: np.vecdot(own, own)}

    def decode(self, request: Request, reply: Reply) -> None:
        """Put zeros where uploads have been cut."""
        layout = reply.layout
        if request.request_type != CALL or layout is None or self.cut_shape not in layout.shapes:
            return
        front = reply.rows.shape[:-1]
        columns = []
        column = 0
        for shape in layout.shapes:
            part = reply.rows[..., column : column + entry_count(shape)]
            column += entry_count(shape)
            if shape == self.cut_shape:
                expanded = np.zeros((*front, *self.home.shape), part.dtype)
                expanded[..., self.shared] = part
                part = expanded
            columns.append(part)
        reply.rows = np.concatenate(columns, axis=-1)
        shapes = tuple([self.home.shape if shape == self.cut_shape else shape for shape in layout.shapes])
        reply.layout = ReplyLayout(shapes, layout.names)


class JoinedGradient(ServerTransform):
    """The norm of the gradient of F(s, h_1 … h_m) = (1/m) Σ f_i(s, h_i), by the shared s and all h_i."""

    def transform_sums(self, x: Array, sums: dict[str, Array]) -> dict[str, Array]:
        """Return sums whose gradient has one more number for the h_i, so that its norm is that of m∇F."""
        gradient = np.append(sums[GRADIENT], np.sqrt(sums[AT_HOME]))
        return {name: value for name, value in sums.items() if name != AT_HOME} | {GRADIENT: gradient}


class PersonalParts(Plugin, Callback):
    """Parts of a model that stay with the clients."""

    # As its transform. Its note and the models that it stores are for the record.
    supports = Supports.EVERYTHING & ~Supports.DEVICES
    unsupported: ClassVar[Reasons] = {
        Supports.DEVICES: 'parameters that stay with clients are numpy arrays, so kernels must be "numpy"'
    }
    conflicts = HOME_ROWS

    home: Array  # (n,) bool
    first: Array  # (n_home,) parameters with which every client begins

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        """Choose the parameters that stay with the clients, and make them 0 at the server."""
        assert self.config.personal is not None
        self.home = select_home(self.config.personal, setup.problem, data)
        self.first = setup.start[self.home]
        if self.config.start is not None and not self.first.any():
            # the file is of a run with personal, whose model has zeros there
            self.first = setup.problem.initial(data, setup.seed).astype(setup.start.dtype)[self.home]
        start = np.where(self.home, 0, setup.start).astype(setup.start.dtype)
        return setup._replace(start=start, home=self.home)

    def notes(self) -> Iterator[str]:
        stay = int(self.home.sum())
        yield (
            f"{stay:,} of {len(self.home):,} parameters stay with the clients, and the model of the result has zeros "
            "in their place: objective, gradient and accuracies are those of each client's own joined model"
        )
        if self.config.evaluate.unseen:
            yield (
                "clients that never train are tested with the mean of what stays with the others, and again after "
                "steps on that part alone"
            )

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[Transform | ServerTransform]:
        parts = PartsAtHome(setup, self.first)
        return [parts] if fed is None else [parts, JoinedGradient()]


def joined_models(fed: Federation, x: Array) -> Array:
    """Return each client's joined model at the server's model x (n,): (m, n)."""
    models: Array = fed.inspect(fed.setup.algorithm.received_model, args=(x,))
    return models
