"""What keeps which promise: a part of the page "what goes with what", from what every part of the house says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.checking.families import KINDS
from mpifed.core.component import Component
from mpifed.core.promises import OptionPromises, Supports
from mpifed.data.dataset import Data
from mpifed.data.sample_columns import COLUMN_PROMISES
from mpifed.engine.listed import FEATURES, load_class
from mpifed.engine.promises.parts import KEYS, spoken_keys
from mpifed.features.selection_laws.importance import Importance
from mpifed.problems.problem import FUNCTION_PROMISES
from mpifed.statistics.huber import Huber

Row = tuple[str, Supports]
PROMISES = {
    "samples": Supports.SAMPLES,
    "clients": Supports.CLIENTS,
    "sums": Supports.SUMS,
    "double": Supports.DOUBLE,
    "bits": Supports.BITS,
    "resume": Supports.RESUME,
    "survival": Supports.SURVIVAL,
    "devices": Supports.DEVICES,
}
INTRODUCTION = """
## What keeps which promise

A run that asks for a promise is refused with every part that does not say that it keeps it, in [one
sentence](../extending-reference.md#what-it-keeps). A method with a guarantee asks for privacy: of single *samples* or
of whole *clients*; where it protects *sums* over all clients alone, or counts on *double* precision, for that too.
`--survive` asks for *survival*, `kernels = "cuda"` or `"torch"` for *devices*. The same *bits* on any ranks and
*resuming* to the bit are promises of every run. In the table are methods, and of everything else what lacks a promise:
what is not there keeps all of them.
"""


def lines(
    table: Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]], private: Callable[[str], list[Algorithm]]
) -> list[str]:
    """The part; ``table`` writes a table of Markdown, ``private`` makes a method with a guarantee."""
    methods = [row for name in Algorithm.choices for row in of_method(name, private)]
    others = [row for row in [*components(), *settings(), *features()] if row[1] != Supports.EVERYTHING]
    cells = [
        (part, *("yes" if kind & keeps else "no" for kind in PROMISES.values())) for part, keeps in methods + others
    ]
    return [INTRODUCTION, *table(("", *PROMISES), cells)]


def of_method(name: str, private: Callable[[str], list[Algorithm]]) -> Iterator[Row]:
    """A method with its default options, and with those that make its uploads private."""
    method = Algorithm.member(name, "algorithm")()
    yield f"`{name}`", method.supports
    for other in private(name):
        yield f"`{name}`, uploads that are private", other.supports


def components() -> Iterator[Row]:
    """All components but methods; those whose word depends on their options with the usual ones."""
    for kind, family in KINDS.items():
        for name in () if family is Algorithm else family.choices:
            cls: type[Component] = family.member(name, kind)
            said = vars(cls)["supports"]
            yield f"{kind.replace('_', ' ')}: `{name}`", cls().supports if isinstance(said, property) else said
    yield "selections: `importance` with `odds`", Importance(odds=(1.0,)).supports
    yield 'problems: `huber` with `scale = "residuals"`', Huber(scale="residuals").supports
    for name, option in FUNCTION_PROMISES.items():
        yield f"methods that need `{name}` of a problem", option.supports


def settings() -> Iterator[Row]:
    """Options of data, columns of samples and other keys."""
    options: dict[str, OptionPromises] = {}
    for name in Data.choices:
        for base in Data.member(name, "data").__mro__:
            options |= vars(base).get("options", {})
    for key, option in options.items():
        name, _, value = key.partition(" = ")
        yield f'`data.{name} = "{value}"`' if value else f"`data.{name}`", option.supports
    for name, option in COLUMN_PROMISES.items():
        yield f"samples with {name}", option.supports
    for key, option in KEYS.items():
        yield f"`{key}`", option.supports


def features() -> Iterator[Row]:
    """All features, by the keys for which they speak."""
    for place in FEATURES:
        name, spoken = spoken_keys(load_class(place))
        yield ", ".join(f"`{key}`" for key in spoken) or name.replace("_", " "), load_class(place).supports
