"""Values of a Python program, component objects among them, as the plain values of an experiment's table."""

import os
import reprlib
import sys
import sysconfig
from collections.abc import Mapping
from functools import singledispatch
from pathlib import Path
from types import FunctionType
from typing import Any

import numpy as np

from mpifed.core import plugins
from mpifed.core.component import Component, Table, fields_of
from mpifed.core.errors import UserError
from mpifed.core.toml import join


@singledispatch
def plain(value: Any, key: str, defaults: bool = True) -> Any:
    """A value as TOML could hold it, None left out of tables; UserError names ``key`` where it has no such form.

    A component, or its class, becomes a table with its name and all of its options or, without ``defaults``, those that
    differ from their defaults; another class or a function, such as a network and its loss, the text that names it.
    """
    if key == "data" and hasattr(value, "iloc"):
        raise UserError('data is a data frame: write data = mpifed.table(frame, target="y", client="site")')
    kind = type(value).__name__
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        right = "that returns it" if key == "problem.module" else "that calls it"
        raise UserError(f"{key} is an instance of {kind}: pass the class, or a function {right}")
    given = f"an {kind}" if kind[:1].lower() in "aeiou" else f"a {kind}"
    right = "a number, true or false, a text, a list, a table, a component, a class or a function"
    raise UserError(f"{key} = {reprlib.repr(value)} is wrong: a setting is {right}, and this is {given}")


plain.register(int | float | str, lambda value, key, defaults=True: value)
plain.register(os.PathLike, lambda value, key, defaults=True: os.fspath(value))


@plain.register(list | tuple | range)
def _(value: Any, key: str, defaults: bool = True) -> Any:
    return [plain(part, key, defaults) for part in value]


@plain.register(Mapping)
def _(value: Any, key: str, defaults: bool = True) -> Any:
    return {str(k): plain(part, join(key, str(k)), defaults) for k, part in value.items() if part is not None}


# np.str_ by name: among its bases str stands before np.generic, and its text would stay one of numpy.
@plain.register(np.generic | np.str_ | np.ndarray)
def _(value: Any, key: str, defaults: bool = True) -> Any:
    if key == "data" and value.ndim:
        right = "data = mpifed.arrays(X, y, clients), which says whose samples they are"
        raise UserError(f"data is an array: write {right}")
    return plain(value.tolist(), key, defaults)


@plain.register(type | FunctionType)
def _(value: Any, key: str, defaults: bool = True) -> Any:
    return {"name": reference(value)} if Component in getattr(value, "__mro__", ()) else class_text(value)


@plain.register(Table)
def _(value: Table, key: str, defaults: bool = True) -> Any:
    own = {k: getattr(value, field.name) for k, field in fields_of(type(value)).items()}
    usual = {} if defaults else {k: field.default for k, field in fields_of(type(value)).items()}
    return plain({k: part for k, part in own.items() if k not in usual or part != usual[k]}, key, defaults)


@plain.register(Component)
def _(value: Component, key: str, defaults: bool = True) -> Any:
    return {"name": reference(type(value))} | plain.dispatch(Table)(value, key, defaults)


def reference(cls: type[Component]) -> str:
    """The name of a component's class in an experiment file: that of mpifed's own, or how ``named`` calls it."""
    label = cls.label()
    if cls.choices.get(label) == f"{cls.__module__}:{cls.__qualname__}":
        return label
    if ":" in label:  # as plugins.adopt made it
        plugins.given.setdefault(label, cls.__bases__[0])
        return label
    return class_text(cls)


def class_text(cls: type | FunctionType) -> str:
    """A class or function as text; ``plugins`` knows it by that from here on.

    path.py:Class or package.module:Class for one of a file or a module; __main__:Class for one that only this program
    can name, because a notebook, a script or a function defines it.
    """
    module = sys.modules.get(cls.__module__)
    # What is local to a function, or was replaced by another of its name, nobody could import again by that name.
    if cls.__module__ == plugins.HERE or getattr(module, cls.__qualname__, None) is not cls:
        name = f"{plugins.HERE}:{cls.__name__}"
    elif (file := source(module)) is None:
        name = f"{cls.__module__}:{cls.__qualname__}"
    else:
        name = f"{file}:{cls.__name__}"
    if plugins.given.setdefault(name, cls) is not cls:
        right = "give them different names, which the result records"
        raise UserError(f"two classes or functions are called {cls.__name__}: {right}")
    return name


def source(module: Any) -> str | None:
    """The file of a module that does not belong to a package or an installation, relative to this folder if inside."""
    file = getattr(module, "__file__", None)
    package, _, _ = module.__name__.partition(".")
    packaged = package != module.__name__ and package.isidentifier()  # the name of a file's module is its path
    if file is None or not file.endswith(".py") or packaged:
        return None
    path = Path(os.path.realpath(file))
    here = Path.cwd().resolve()
    if path.is_relative_to(os.path.realpath(sysconfig.get_path("purelib"))):
        return None
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
