"""The parts of a run, and what each says that it keeps."""

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from mpifed.core.component import Component, Table, fields_of
from mpifed.core.guards import own
from mpifed.core.promises import NO_REASONS, SILENT, Keeps, Option, Reasons, Speaking, said
from mpifed.core.toml import join, toml_value
from mpifed.data import sample_columns
from mpifed.data.dataset import Data, Dataset
from mpifed.data.tables.kept import COLUMNS
from mpifed.features.feature import Feature
from mpifed.features.promises.keys import KEYS, SPEAKS
from mpifed.features.settings import FAMILIES, Experiment
from mpifed.federation.participation.selection import Selector
from mpifed.federation.stage import Keeper
from mpifed.federation.traits import needs
from mpifed.problems.kept import FUNCTIONS

OWN = "where it does, write {} into its class (docs/extending.md)"  # the cure of a class of a user's own

WRONG = " is wrong: "
NO_WORDS: Mapping[str, str] = {}


class Part(NamedTuple):
    """A part of a run: how a refusal calls it, what it keeps and why not the rest, and what to do where it says
    nothing.

    ``wrong``: what a refusal says between its name and the reason; ``words`` stand for {words} in reasons.
    """

    named: str
    keeps: Keeps
    unkept: Reasons
    cure: str = "leave it out"
    wrong: str = WRONG
    words: Mapping[str, str] = NO_WORDS


def parts_of(c: Experiment, features: list[Feature]) -> Iterator[Part]:
    """The parts of a run as far as its settings tell, in the order in which they are refused."""
    yield from functions(c)
    yield from components(c, "")
    yield from options_of(c.data)
    yield from keys(c)
    for feature in features:
        yield of_feature(feature, c)


def components(table: Table, path: str) -> Iterator[Part]:
    """The components that a table names, and those that these name."""
    for key, field in fields_of(type(table)).items():
        value = getattr(table, field.name)
        where = join(path, key)
        match value:
            case Component():
                yield speaking(f"{where} = {toml_value(value.label())}", value)
                yield from components(value, where)
            case Table():
                yield from components(value, where)


def speaking(named: str, part: Speaking) -> Part:
    """A part that speaks for itself. A class of a user's own that says nothing has no reasons that it inherits."""
    found = Part(named, said(part), part.unkept)
    if not own(type(part)):
        return found
    unkept = part.unkept if "keeps" in vars(type(part)) else NO_REASONS
    return found._replace(unkept=unkept, cure=OWN.format("keeps = mpifed.Keeps.{promise}"))


def options_of(data: Data) -> Iterator[Part]:
    """The options of [data] that are set: whoever adds one says what it keeps, or it is refused."""
    options: dict[str, Option] = {}
    for base in reversed(type(data).__mro__):
        options |= vars(base).get("options", {})
    for key, field in fields_of(type(data)).items():
        value = getattr(data, field.name)
        if value != field.default:
            option = options.get(f"{key} = {value}", options.get(key, SILENT))
            found = Part(f"data.{key} = {toml_value(msgspec.to_builtins(value))}", *option)
            cure = OWN.format(f'options = mpifed.keeping("{key}")')
            yield found._replace(cure=cure) if own(type(data)) else found


def functions(c: Experiment) -> Iterator[Part]:
    """What the method calls of the problem beside f and its gradient."""
    for name in needs(c.algorithm):
        what = c.problem.offers.get(name, name).partition(";")[0]
        yield Part(f"{name} of {c.problem.label()}", *FUNCTIONS.get(name, SILENT), words={"what": what})


def keys(c: Experiment) -> Iterator[Part]:
    """The keys that are set and belong to no component, but for those for which a feature speaks."""
    for key in c.changed():
        table = key.partition(".")[0]
        if table not in FAMILIES and (key in KEYS or not {key, table} & SPEAKS.keys()):
            yield Part(shown(c, key), *KEYS.get(key, SILENT))


def shown(c: Experiment, key: str) -> str:
    """key = value, as in an experiment file."""
    value: object = c
    for name in key.split("."):
        value = getattr(value, name)
    return f"{key} = {toml_value(msgspec.to_builtins(value))}"


def of_feature(feature: Feature, c: Experiment) -> Part:
    """A feature, called by the first key that is set, or else the table, for which it speaks."""
    kind: Any = type(feature)
    if own(kind):
        return speaking(f"the feature {kind.__name__}", feature)
    folder = kind.__module__.split(".")[-2]
    spoken = [key for key, speaks in SPEAKS.items() if speaks == folder]
    there = [shown(c, key) for key in c.changed() if key in spoken]
    return speaking((there or spoken or [f"the feature {folder}"])[0], feature)


def of_selector(selector: Selector, c: Experiment, m: int) -> Part:
    """The selector that a selection has made for m clients."""
    option = selector.kept(m)
    few = f" is wrong with {selector.size} clients a round: " if option.keeps & Keeps.CLIENTS else WRONG
    return Part(f"selection = {toml_value(c.selection.label())}", *option, wrong=few, words={"m": str(m)})


def of_samples(data: Dataset) -> Iterator[Part]:
    """The columns that samples bring with them."""
    for name in () if data.columns is None else data.columns.names:
        words = f"samples have {sample_columns.COLUMNS.get(name, name)}"
        yield Part(words, *COLUMNS.get(name, SILENT), wrong=", and ")


def of_stage(stage: Keeper) -> Part:
    """A stage of messages."""
    return speaking(f"the stage {type(stage).__name__}", stage)
