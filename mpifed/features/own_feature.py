"""Features that a user has written: an error in a hook is a sentence with the class and the user's line."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.core.guards import Guard, as_it_is, checked, instance, returns
from mpifed.core.toml import toml_value
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Feature
from mpifed.features.rule import Rule
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import Setup

STORED = (str, bool, int, float, np.generic, np.ndarray, type(None))  # what HDF5 takes as an attribute
RULES = ("tables", "rules", "counted")
KEPT = ("__module__", "__qualname__", "__doc__", "__firstlineno__", "keeps")  # of the user's class itself


def texts(feature: Any, result: Any, *args: Any) -> Any:
    for value in result:
        NOTE(feature, value)
    return result


def stored(feature: Any, result: Any, *args: Any) -> Any:
    DICTIONARY(feature, result)
    for name, value in result.items():
        instance(STORED, f" for {name}: an attribute of a result is a text, a number or an array")(feature, value)
    return result


def seen(feature: Any, result: Any, *args: Any) -> Any:
    """The looks, which are called in every evaluation, with their errors as sentences too."""
    DICTIONARY(feature, result)
    kind = type(feature).__name__
    return {
        table: checked(look, as_it_is, name=f"{kind}.looks") if inspect.isroutine(look) else look
        for table, look in result.items()
    }


NOTE = instance(str, " among its notes: each must be a text")
DICTIONARY = instance(dict, ": it must return a dictionary")
GUARDS: Mapping[str, Guard] = {
    "data": instance(Dataset, ": it must return a mpifed.Dataset"),
    "prepared": instance(Setup, ": it must return the setup"),
    "schedule": instance(Schedule | None, ": it must return a schedule or None"),
    "hosts": returns(lambda result, *args: result is None or callable(result), ": it must return a function or None"),
    "attributes": stored,
    "notes": texts,
    "looks": seen,
    **dict.fromkeys(("before", "after", "clients"), DICTIONARY),
}


def own_feature(reference: str) -> type[Feature]:
    """The class of a feature that a user has written, "path.py:Class". UserError where there is none."""
    wrong = f"features = {toml_value([reference])} is wrong"
    try:
        kind: Any = plugins.load(reference)
    except ValueError as error:
        raise UserError(f"{wrong}: {error}") from None
    if not issubclass(kind, Feature):
        raise UserError(f"{wrong}: {kind.__name__} is not derived from mpifed.Feature")
    made: type[Feature] = guarded(kind)
    return made


@functools.cache
def guarded(kind: Any) -> Any:
    """A subclass of ``kind`` whose hooks, and the conditions of whose rules, are checked."""
    body: dict[str, Any] = {key: vars(kind)[key] for key in KEPT if key in vars(kind)}
    for name, hook in inspect.getmembers_static(Feature, inspect.isfunction):
        method = inspect.getattr_static(kind, name)
        if method is not hook and inspect.isfunction(method):
            called = listed(method) if name == "notes" else method
            body[name] = checked(called, GUARDS.get(name, as_it_is), name=f"{kind.__name__}.{name}")
    for name in RULES:
        body[name] = [
            Rule(checked(rule.when, as_it_is, name=f"{kind.__name__}.{name}"), rule.sentence)
            for rule in getattr(kind, name)
        ]
    return type(kind.__name__, (kind,), body)


def listed(method: Callable[..., Any]) -> Callable[..., Any]:
    """The same with a list in the place of a generator, whose errors would come later."""

    @functools.wraps(method)
    def call(*args: Any) -> Any:
        return list(method(*args))

    return call
