"""Plug-ins of a user: a mistake in a hook, of theirs or of what they install, is a sentence with class and line."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.core.guards import is_user_class, require_declared, wrap_with_guard
from mpifed.core.toml import toml_value
from mpifed.features.feature import Plugin
from mpifed.federation.callback import Callback
from mpifed.federation.local_transform import LocalTransform
from mpifed.federation.transform import ServerTransform, Transform

COPIED = ("__module__", "__qualname__", "__doc__", "__firstlineno__", "supports", "name")  # from the user's class
MARK = "_is_guarded"  # attribute of classes that guard_class has made
INSTALLED = (Callback, Transform, LocalTransform, ServerTransform)  # what plug-ins return, and what runs call


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
    body: dict[str, Any] = {key: vars(cls)[key] for key in COPIED if key in vars(cls)} | {MARK: True}
    bases = [base for base in (Plugin, *INSTALLED) if issubclass(cls, base)]
    for name, hook in [hook for base in bases for hook in inspect.getmembers_static(base, inspect.isfunction)]:
        method = inspect.getattr_static(cls, name)
        if method is not hook and inspect.isfunction(method):
            body[name] = wrap_with_guard(wrap_parts(method), require_declared(hook), name=f"{cls.__name__}.{name}")
    if issubclass(cls, Plugin):
        name = f"{cls.__name__}.conflicts"
        body["conflicts"] = [c._replace(when=c.when and wrap_with_guard(c.when, name=name)) for c in cls.conflicts]
    return type(cls.__name__, (cls,), body)


def wrap_parts(method: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a user's hook so that the transforms and callbacks that it returns have guarded hooks too."""

    @functools.wraps(method)
    def call(*args: Any, **named: Any) -> Any:
        result = method(*args, **named)
        if inspect.isgenerator(result):
            result = list(result)  # its errors would be raised outside the guard
        match result:
            case [*parts]:
                for part in parts:
                    cls: Any = type(part)
                    if isinstance(part, INSTALLED) and is_user_class(cls) and MARK not in vars(cls):
                        part.__class__ = guard_class(cls)
        return result

    return call
