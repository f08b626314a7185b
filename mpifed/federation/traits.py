"""Traits of a method, from which refusals, prose, simulated time and tests follow."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from mpifed.core.component import Component, fields_of, walk_type
from mpifed.core.typing import Array

MethodOptions = Mapping[str, Any]  # options of a method and their values
NO_OPTIONS: MethodOptions = {}


class Unsupported(NamedTuple):
    """The reason why a method does not support something: the end of a sentence after "because".

    >>> class Waiting(mpifed.algorithms.FedAvg, tag="waiting"):
    ...     asynchronous = mpifed.extend.Unsupported("its server waits for every client")
    >>> bool(Waiting.asynchronous)
    False
    """

    why: str

    def __bool__(self) -> bool:
        return False


class Participation(Enum):
    """The clients that a round takes.

    >>> mpifed.algorithms.DGD.participation is mpifed.extend.Participation.ALL
    True
    """

    SELECTED = "selected"
    TWICE = "selected, twice"
    ALL = "all"  # without a selection
    SELECTED_AND_ALL = "selected; others reply too"
    SELECTED_OR_ALL = "selected; in some rounds all"

    @property
    def selections(self) -> int:
        """Number of selections in a round."""
        return {Participation.ALL: 0, Participation.TWICE: 2}.get(self, 1)

    @property
    def everyone(self) -> bool:
        """True if some rounds need replies of clients that are not selected."""
        return self in (Participation.ALL, Participation.SELECTED_AND_ALL, Participation.SELECTED_OR_ALL)


class MeanEstimate(Enum):
    """The meaning of a mean over selected clients for a method, if clients may have unequal probabilities.

    >>> mpifed.algorithms.FedAvg.mean_estimate is mpifed.extend.MeanEstimate.UNBIASED
    True
    """

    UNBIASED = "stands for one over all"  # ``fed.estimate`` weights replies, or no fixed point depends on selections
    COUPLED = "is exchanged among the selected alone"  # the exchanged amounts add up to 0


class Upload(NamedTuple):
    """The upload of a selected client, and its use by the server.

    ``content``: "model", n numbers near the model received; "change" of a model; "gradient". ``last_upload`` is the
    field of the clients' state with their last upload, if rounds use those of all clients (``last``) with the options
    ``when``.

        >>> mpifed.algorithms.FedADMM.upload == mpifed.extend.Upload(content="model", last_upload="z")
        True
    """

    content: str = "model"
    vectors: int = 1  # vectors of n numbers, down and up, for each selection
    last_upload: str = ""
    when: MethodOptions = NO_OPTIONS
    server_copy: str = ""  # field with the server's copy of the upload, to which a compressed upload is written
    feedback: str = "memory"  # default of [compress]: "error" if the server adds up changes
    exact: Mapping[str, str] = NO_OPTIONS  # "up" or "down" -> why these messages must be sent unchanged
    single: MethodOptions | None = None  # options with which the server needs single uploads
    one_mean: MethodOptions | None = None  # options with which rounds use uploads in one mean only
    at_home: MethodOptions | None = None  # options, of those it has, with which parameters may stay home
    averaged: bool = False  # whether clients' weights apply to this mean of models, not to their f_i

    def last(self, method: object) -> str:
        """Return the field ``last_upload`` for the options of ``method``; empty if rounds use no last uploads."""
        return self.last_upload if has_options(method, self.when) else ""


class Requirement(NamedTuple):
    """A requirement of a method: an optional method of the problem, which it calls.

    It calls it with the options ``when``, but not if all options ``unless`` are set. ``also`` is a further condition.

        >>> mpifed.algorithms.GD.requires == (mpifed.extend.Requirement("lipschitz", unless=("gamma",)),)
        True
    """

    name: str
    unless: tuple[str, ...] = ()
    when: MethodOptions = NO_OPTIONS
    also: str = ""


class Sum(NamedTuple):
    """A recorded number of each client (c,), to be summed over all clients.

    ``weighted``: by the weights of clients in f, if a method computes without them (``Upload.averaged``).

        >>> class Watched(mpifed.algorithms.FedAvg, tag="watched"):
        ...     def record(self, f, client, x):
        ...         return {"norm": mpifed.algorithms.parts.Sum(np.linalg.norm(f.grad(x), axis=1))}
        >>> "norm" in mpifed.run(algorithm=Watched(), rounds=1).rounds
        True
    """

    values: Array
    weighted: bool = False

    @property
    def is_sum(self) -> bool:
        """True: the sum over clients is recorded, not the maximum."""
        return True


class Max(NamedTuple):
    """A recorded number of each client (c,), of which the maximum over all clients is taken.

    >>> mpifed.algorithms.parts.Max(np.array([0.5, 2.0])).values.max()
    np.float64(2.0)
    """

    values: Array

    @property
    def is_sum(self) -> bool:
        """False: the maximum over clients is recorded."""
        return False

    @property
    def weighted(self) -> bool:
        """False: a maximum has no weights."""
        return False


RecordValues = dict[str, Sum | Max]


class PlotStyle(NamedTuple):
    """The plot style of a method: name of a colour of ``report.palette``, numbers of a marker and of a line."""

    colour: str
    marker: int
    line: int = 0


class Theorem(NamedTuple):
    """The theorem of a method, by the function "module:function" that checks its conditions.

    ``delayed``: it covers old uploads, or uploads are never old.
    """

    function: str
    delayed: bool = False


@runtime_checkable
class HasRequirements(Protocol):
    """A component that has requirements on a problem."""

    @property
    def requires(self) -> tuple[Requirement, ...]: ...


def has_options(options: Any, when: MethodOptions) -> bool:
    """Return whether a component has these options."""
    return all(getattr(options, key) == value for key, value in when.items())


def active_requirements(component: HasRequirements) -> Iterator[Requirement]:
    """Yield the requirements of a component with its options, and those of components among its options."""
    for need in component.requires:
        replaced = need.unless and all(getattr(component, key) is not None for key in need.unless)
        if has_options(component, need.when) and not replaced:
            yield need
    cls: Any = type(component)
    for field in fields_of(cls).values():
        value: Any = getattr(component, field.name)
        if isinstance(value, Component) and isinstance(value, HasRequirements):
            yield from active_requirements(value)


def required_methods(component: HasRequirements) -> tuple[str, ...]:
    """Return the optional methods that a problem must define for a component with its options."""
    return tuple(dict.fromkeys(need.name for need in active_requirements(component)))


def options_instead(component: HasRequirements) -> dict[str, str]:
    """Return method of a problem -> the option that replaces it when set."""
    return {need.name: need.unless[0] for need in component.requires if need.unless and not need.when}


def further_requirements(component: HasRequirements) -> str:
    """Return the conditions of a component beside methods of the problem, joined by "and"."""
    return " and ".join(need.also for need in component.requires if need.also)


def find_marked_option(cls: type[Component], mark: str) -> str:
    """Return the first option with extra={``mark``: True} in its Meta; empty if there is none."""
    for key, field in fields_of(cls).items():
        metas = [meta for hint in walk_type(field.type) for meta in getattr(hint, "__metadata__", ())]
        if any((getattr(meta, "extra", None) or {}).get(mark) for meta in metas):
            return key
    return ""


def option_to_tune(component: Any) -> str:
    """Return the option to change first if the iterates diverge, marked with extra={"tuned": True}; empty if none."""
    return find_marked_option(component if isinstance(component, type) else type(component), "tuned")


def divergence_advice(component: Any) -> str:
    """Return advice for error messages about iterates that diverge.

    An option marked with extra={"safeguard": True} keeps f from rising when it is true.
    """
    safeguard = find_marked_option(type(component), "safeguard")
    if safeguard and not getattr(component, safeguard):
        return f"set algorithm.{safeguard} = true"
    key = option_to_tune(component)
    return f"look at algorithm.{key}" if key else "look at the step size"
