"""Conversion of Python values, component objects among them, to the plain values of an experiment's table."""

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
from mpifed.core.component import Component, StudyTable, fields_of
from mpifed.core.errors import UserError, with_article
from mpifed.core.toml import join_key


@singledispatch
def to_plain(value: Any, key: str, defaults: bool = True) -> Any:
    """Convert a value to one that TOML can hold, without None in tables; UserError names ``key`` if there is none.

    A component, or its class, becomes a table with its name and all of its options or, without ``defaults``, those that
    differ from their defaults. Another class or a function, such as a network and its loss, becomes its name.
    """
    if key == "data" and hasattr(value, "iloc"):
        raise UserError('data is a data frame: write data = mpifed.table(frame, target="y", client="site")')
    type_name = type(value).__name__
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.nn.Module):
        right = "that returns it" if key == "problem.module" else "that calls it"
        raise UserError(f"{key} is an instance of {type_name}: pass the class, or a function {right}")
    right = "a number, true or false, a text, a list, a table, a component, a class or a function"
    raise UserError(
        f"{key} = {reprlib.repr(value)} is wrong: a setting is {right}, and this is {with_article(type_name)}"
    )


to_plain.register(int | float | str, lambda value, key, defaults=True: value)
to_plain.register(os.PathLike, lambda value, key, defaults=True: os.fspath(value))


@to_plain.register(list | tuple | range)
def _(value: Any, key: str, defaults: bool = True) -> Any:
    return [to_plain(part, key, defaults) for part in value]


@to_plain.register(Mapping)
def _(value: Any, key: str, defaults: bool = True) -> Any:
    return {str(k): to_plain(part, join_key(key, str(k)), defaults) for k, part in value.items() if part is not None}


# np.str_ by name: str comes before np.generic among its bases, so that it would stay a text of numpy.
@to_plain.register(np.generic | np.str_ | np.ndarray)
def _(value: Any, key: str, defaults: bool = True) -> Any:
    if key == "data" and value.ndim:
        right = "data = mpifed.arrays(X, y, clients), which says whose samples they are"
        raise UserError(f"data is an array: write {right}")
    return to_plain(value.tolist(), key, defaults)


@to_plain.register(type | FunctionType)
def _(value: Any, key: str, defaults: bool = True) -> Any:
    return {"name": study_name(value)} if Component in getattr(value, "__mro__", ()) else register_class(value)


@to_plain.register(StudyTable)
def _(value: StudyTable, key: str, defaults: bool = True) -> Any:
    options = {k: getattr(value, field.name) for k, field in fields_of(type(value)).items()}
    unset = {} if defaults else {k: field.default for k, field in fields_of(type(value)).items()}
    return to_plain({k: part for k, part in options.items() if k not in unset or part != unset[k]}, key, defaults)


@to_plain.register(Component)
def _(value: Component, key: str, defaults: bool = True) -> Any:
    return {"name": study_name(type(value))} | to_plain.dispatch(StudyTable)(value, key, defaults)


def study_name(cls: type[Component]) -> str:
    """Return the name of a component's class in an experiment file: its label, or the text of a user's class."""
    label = cls.label()
    if cls.choices.get(label) == f"{cls.__module__}:{cls.__qualname__}":
        return label
    if ":" in label:  # as plugins.adopt made it
        plugins.passed_classes.setdefault(label, cls.__bases__[0])
        return label
    return register_class(cls)


def register_class(cls: type | FunctionType) -> str:
    """Return a class or function as text, and register it with ``plugins`` under that text.

    It is path.py:Class or package.module:Class for a class of a file or a module, and __main__:Class if only this
    program can name it, because a notebook, a script or a function defines it.
    """
    module = sys.modules.get(cls.__module__)
    # A class that is local to a function, or was replaced by another of its name, cannot be imported by that name.
    if cls.__module__ == plugins.MAIN_MODULE or getattr(module, cls.__qualname__, None) is not cls:
        name = f"{plugins.MAIN_MODULE}:{cls.__name__}"
    elif (file := source_file(module)) is None:
        name = f"{cls.__module__}:{cls.__qualname__}"
    else:
        name = f"{file}:{cls.__name__}"
    if plugins.passed_classes.setdefault(name, cls) is not cls:
        right = "give them different names, which the result records"
        raise UserError(f"two classes or functions are called {cls.__name__}: {right}")
    return name


def source_file(module: Any) -> str | None:
    """Return the file of a module outside of packages, relative to this folder if inside; None for other modules."""
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
