"""Plug-ins of a user: an error in a hook becomes a sentence with the class and the user's line."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.core.guards import require_declared, wrap_with_guard
from mpifed.core.toml import toml_value
from mpifed.features.feature import Plugin
from mpifed.federation.callback import Callback

COPIED = ("__module__", "__qualname__", "__doc__", "__firstlineno__", "supports")  # from the user's class


def load_user_plugin(reference: str) -> type[Plugin]:
    """Return the guarded class of a user's plug-in, "path.py:Class"; raise UserError where there is none."""
    wrong = f"plugins = {toml_value([reference])} is wrong"
    try:
        cls: Any = plugins.load_class(reference)
    except ValueError as error:
        raise UserError(f"{wrong}: {error}") from None
    if not issubclass(cls, Plugin):
        raise UserError(f"{wrong}: {cls.__name__} is not derived from mpifed.extend.Plugin")
    guarded: type[Plugin] = guard_class(cls)
    return guarded


@functools.cache
def guard_class(cls: Any) -> Any:
    """Return a subclass of ``cls`` whose hooks, and conditions of conflicts, name the class where they fail."""
    body: dict[str, Any] = {key: vars(cls)[key] for key in COPIED if key in vars(cls)}
    hooks = inspect.getmembers_static(Plugin, inspect.isfunction)
    hooks += inspect.getmembers_static(Callback, inspect.isfunction) if issubclass(cls, Callback) else []
    for name, hook in hooks:
        method = inspect.getattr_static(cls, name)
        if method is not hook and inspect.isfunction(method):
            body[name] = wrap_hook(method, hook, f"{cls.__name__}.{name}")
    name = f"{cls.__name__}.conflicts"
    body["conflicts"] = [row._replace(when=row.when and wrap_with_guard(row.when, name=name)) for row in cls.conflicts]
    return type(cls.__name__, (cls,), body)


def wrap_hook(method: Callable[..., Any], hook: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Wrap a user's hook: it must return what ``hook`` of the base declares; functions that it returns are wrapped."""

    @functools.wraps(method)
    def call(*args: Any) -> Any:
        result = method(*args)
        if inspect.isgenerator(result):
            return list(result)  # its errors would be raised outside the guard
        if isinstance(result, dict):
            functions = {key: value for key, value in result.items() if inspect.isroutine(value)}
            return result | {key: wrap_with_guard(value, name=name) for key, value in functions.items()}
        return result

    return wrap_with_guard(call, require_declared(hook), name=name)
