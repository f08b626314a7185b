"""Guards of user-written features: an error in a hook becomes a sentence with the class and the user's line."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.core.guards import Guard, accept_any, require_instance, wrap_with_guard
from mpifed.core.toml import toml_value
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Plugin
from mpifed.features.rule import Rule
from mpifed.federation.callback import Callback
from mpifed.federation.local_transform import LocalTransform
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import RunSpec
from mpifed.federation.transform import ServerTransform, Transform

STORED = (str, bool, int, float, np.generic, np.ndarray, type(None))  # what HDF5 takes as an attribute
RULES = ("tables", "rules", "counted")
COPIED = (
    "__module__",
    "__qualname__",
    "__doc__",
    "__firstlineno__",
    "supports",
)  # from the user's class to its subclass


def check_notes(feature: Any, result: Any, *args: Any) -> Any:
    for value in result:
        NOTE(feature, value)
    return result


def check_attributes(feature: Any, result: Any, *args: Any) -> Any:
    DICTIONARY(feature, result)
    for name, value in result.items():
        require_instance(STORED, f" for {name}: an attribute of a result is a text, a number or an array")(
            feature, value
        )
    return result


def check_parts(cls: Any, what: str) -> Guard:
    """Make a guard that accepts lists of instances of ``cls``."""

    def check(feature: Any, result: Any, *args: Any) -> Any:
        require_instance(list | tuple, f": it must return a list of {what}")(feature, result)
        for part in result:
            require_instance(cls, f" among its {what}: each must be an object of such a class")(feature, part)
        return result

    return check


def check_recorded(feature: Any, result: Any, *args: Any) -> Any:
    DICTIONARY(feature, result)
    for name, value in result.items():
        require_instance((dict, int, float, np.number), f" for {name}: it must be a number, or a table by client")(
            feature, value
        )
    return result


NOTE = require_instance(str, " among its notes: each must be a text")
DICTIONARY = require_instance(dict, ": it must return a dictionary")
CALLBACKS = inspect.getmembers_static(Callback, inspect.isfunction)
GUARDS: Mapping[str, Guard] = {
    "data": require_instance(Dataset, ": it must return a mpifed.Dataset"),
    "prepare": require_instance(RunSpec, ": it must return the setup"),
    "schedule": require_instance(Schedule | None, ": it must return a schedule or None"),
    "transforms": check_parts(Transform | LocalTransform | ServerTransform, "transforms"),
    "callbacks": check_parts(Callback, "callbacks"),
    "attributes": check_attributes,
    "notes": check_notes,
    "on_evaluate": check_recorded,
    **dict.fromkeys(("on_start", "on_end"), DICTIONARY),
}


def load_user_feature(reference: str) -> type[Plugin]:
    """Return the guarded class of a user's feature, "path.py:Class"; raise UserError where there is none."""
    wrong = f"features = {toml_value([reference])} is wrong"
    try:
        cls: Any = plugins.load_class(reference)
    except ValueError as error:
        raise UserError(f"{wrong}: {error}") from None
    if not issubclass(cls, Plugin):
        raise UserError(f"{wrong}: {cls.__name__} is not derived from mpifed.Plugin")
    guarded: type[Plugin] = guard_class(cls)
    return guarded


@functools.cache
def guard_class(cls: Any) -> Any:
    """Return a subclass of ``cls`` whose hooks and conditions of rules are checked."""
    body: dict[str, Any] = {key: vars(cls)[key] for key in COPIED if key in vars(cls)}
    for name, hook in inspect.getmembers_static(Plugin, inspect.isfunction) + CALLBACKS * issubclass(cls, Callback):
        method = inspect.getattr_static(cls, name)
        if method is not hook and inspect.isfunction(method):
            own_hook = return_list(method) if name == "notes" else method
            body[name] = wrap_with_guard(own_hook, GUARDS.get(name, accept_any), name=f"{cls.__name__}.{name}")
    for name in RULES:
        body[name] = [
            Rule(wrap_with_guard(rule.when, accept_any, name=f"{cls.__name__}.{name}"), rule.sentence)
            for rule in getattr(cls, name)
        ]
    return type(cls.__name__, (cls,), body)


def return_list(method: Callable[..., Any]) -> Callable[..., Any]:
    """Make a hook return a list: the errors of a generator would be raised outside its guard."""

    @functools.wraps(method)
    def call(*args: Any) -> Any:
        return list(method(*args))

    return call
