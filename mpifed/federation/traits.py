"""What a method says of itself, as values from which refusals, prose, simulated time and tests follow."""

from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple, Protocol, runtime_checkable

from mpifed.core.component import Component, fields_of, within
from mpifed.core.typing import Array

Options = Mapping[str, Any]  # options of a method and their values
NO_OPTIONS: Options = {}


class Refused(NamedTuple):
    """That a method cannot have something, and why: the end of a sentence after "because".

    >>> class Waiting(mpifed.algorithms.FedAvg, tag="waiting"):
    ...     asynchronous = mpifed.Refused("its server waits for every client")
    >>> bool(Waiting.asynchronous)
    False
    """

    why: str

    def __bool__(self) -> bool:
        return False


class Takes(Enum):
    """Which clients a round takes.

    >>> mpifed.algorithms.DGD.takes is mpifed.Takes.ALL
    True
    """

    SELECTED = "selected"
    TWICE = "selected, twice"
    ALL = "all"  # it makes no selection
    SELECTED_AND_ALL = "selected; others reply too"
    SELECTED_OR_ALL = "selected; in some rounds all"

    @property
    def selections(self) -> int:
        """How often a round selects clients."""
        return {Takes.ALL: 0, Takes.TWICE: 2}.get(self, 1)

    @property
    def everyone(self) -> bool:
        """Whether rounds need replies of clients that are not selected, some of them at least."""
        return self in (Takes.ALL, Takes.SELECTED_AND_ALL, Takes.SELECTED_OR_ALL)


class Mean(Enum):
    """What a mean over the selected clients is to the method, where clients may have unequal probabilities.

    >>> mpifed.algorithms.FedAvg.mean is mpifed.Mean.UNBIASED
    True
    """

    UNBIASED = "stands for one over all"  # ``fed.estimate`` weighs replies, or no fixed point depends on selections
    COUPLED = "is exchanged among the selected alone"  # what they give and take adds up to 0


class Upload(NamedTuple):
    """What a selected client uploads, and what the server has of it.

    ``kind``: "model", n numbers near the model received; "change" of a model; "gradient". ``kept`` is the field of the
    clients' state with their last upload, where rounds use those of all clients (``last``), with the options ``when``.

        >>> mpifed.algorithms.FedADMM.upload == mpifed.Upload(kind="model", kept="z")
        True
    """

    kind: str = "model"
    vectors: int = 1  # of n numbers that travel for each selection, down and up
    kept: str = ""
    when: Options = NO_OPTIONS
    known: str = ""  # field that is the upload as the server has it, so that a compressed one has to be put there
    feedback: str = "memory"  # what [compress] keeps by default: "error" where the server adds up changes
    exact: Mapping[str, str] = NO_OPTIONS  # why messages "up" or "down" must travel as they are, where they must
    single: Options | None = None  # options with which the server needs uploads one by one
    one_mean: Options | None = None  # options with which rounds use uploads in one mean, and in nothing else
    averaged: bool = False  # whether weights of clients are those of this mean of models, not of their f_i

    def last(self, method: object) -> str:
        """The field ``kept`` with the options of ``method``; empty where rounds use no last uploads."""
        return self.kept if given(method, self.when) else ""


class Need(NamedTuple):
    """An optional method of a problem that a method calls.

    It does so with the options ``when``, but not where all options ``unless`` are set. ``also`` says what must hold
    beside it.

        >>> mpifed.algorithms.GD.requires == (mpifed.Need("lipschitz", unless=("gamma",)),)
        True
    """

    name: str
    unless: tuple[str, ...] = ()
    when: Options = NO_OPTIONS
    also: str = ""


class Sum(NamedTuple):
    """A recorded number of each client (c,) that is added up over all clients.

    ``weighted``: by the weights that clients have in f, where a method computes without them (``Upload.averaged``).

        >>> class Watched(mpifed.algorithms.FedAvg, tag="watched"):
        ...     def record(self, f, client, x):
        ...         return {"norm": mpifed.Sum(np.linalg.norm(f.grad(x), axis=1))}
        >>> "norm" in mpifed.run(algorithm=Watched(), rounds=1).rounds
        True
    """

    values: Array
    weighted: bool = False

    @property
    def added(self) -> bool:
        """Whether it is added up, not the largest taken."""
        return True


class Max(NamedTuple):
    """A recorded number of each client (c,) of which the largest counts.

    >>> mpifed.Max(np.array([0.5, 2.0])).values.max()
    np.float64(2.0)
    """

    values: Array

    @property
    def added(self) -> bool:
        return False

    @property
    def weighted(self) -> bool:
        return False


Recorded = dict[str, Sum | Max]


class Look(NamedTuple):
    """How a method is drawn: a colour of ``report.palette`` by name, and the numbers of a marker and a line."""

    colour: str
    marker: int
    line: int = 0


class Theorem(NamedTuple):
    """Where the conditions of a method's theorem are checked, as "module:function".

    ``delayed``: it speaks of old uploads, or uploads are never old.
    """

    function: str
    delayed: bool = False


@runtime_checkable
class Requiring(Protocol):
    """A component that says what it needs of a problem."""

    @property
    def requires(self) -> tuple[Need, ...]: ...


def given(options: Any, when: Options) -> bool:
    """Whether a component has these options."""
    return all(getattr(options, key) == value for key, value in when.items())


def applying(component: Requiring) -> Iterator[Need]:
    """The needs of a component with its options, and those of the components that its options name."""
    for need in component.requires:
        spared = need.unless and all(getattr(component, key) is not None for key in need.unless)
        if given(component, need.when) and not spared:
            yield need
    kind: Any = type(component)
    for field in fields_of(kind).values():
        part: Any = getattr(component, field.name)
        if isinstance(part, Component) and isinstance(part, Requiring):
            yield from applying(part)


def needs(component: Requiring) -> tuple[str, ...]:
    """The optional methods that a problem must define for a component with its options."""
    return tuple(dict.fromkeys(need.name for need in applying(component)))


def spares(component: Requiring) -> dict[str, str]:
    """Method of a problem -> the option that, where it is set, does without it."""
    return {need.name: need.unless[0] for need in component.requires if need.unless and not need.when}


def demands(component: Requiring) -> str:
    """What a component needs beside methods of the problem."""
    return " and ".join(need.also for need in component.requires if need.also)


def marked(kind: type[Component], mark: str) -> str:
    """The first option marked with extra={``mark``: True} in its Meta; empty without one."""
    for key, field in fields_of(kind).items():
        metas = [meta for one in within(field.type) for meta in getattr(one, "__metadata__", ())]
        if any((getattr(meta, "extra", None) or {}).get(mark) for meta in metas):
            return key
    return ""


def tuned(component: Any) -> str:
    """The option to change first where the iterates diverge, marked with extra={"tuned": True}; empty without one."""
    return marked(component if isinstance(component, type) else type(component), "tuned")


def steering(component: Any) -> str:
    """What to do where the iterates diverge, as error messages say.

    An option marked with extra={"safeguard": True} keeps f from rising where it is true.
    """
    safeguard = marked(type(component), "safeguard")
    if safeguard and not getattr(component, safeguard):
        return f"set algorithm.{safeguard} = true"
    key = tuned(component)
    return f"look at algorithm.{key}" if key else "look at the step size"
