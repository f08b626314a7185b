"""Classes from outside mpifed: named by file or module, or offered by an installed package as an entry point."""

import difflib
import importlib
import importlib.util
import os
import re
import sys
import traceback
from functools import cache
from typing import Any

import msgspec

from mpifed.core.guards import guarded, message
from mpifed.core.promises import NOTHING_KEPT, Keeps

FILE = re.compile(r".+\.py:\w+", re.DOTALL)  # path.py:Class
HERE = "__main__"  # the module that a class is said to be from where only the program that defines it can name it

given: dict[str, Any] = {}  # classes and functions that a Python program passed, by their names


def find(family: Any, name: Any) -> Any:
    """The class that ``name`` refers to: path.py:Class, package.module:Class or an entry point of mpifed.KIND; or None.

    The module is imported, so its code runs. What is returned is a subclass labelled ``name``, so that the recorded
    configuration says where the class comes from. ValueError where it does not exist or is not a member of ``family``.
    """
    if name in given:
        return adopt(family, given[name], name)
    reference = name if ":" in name or name.endswith(".py") else installed(family.kind).get(name)
    return None if reference is None else adopt(family, load(reference), name)


@cache
def installed(kind: str) -> dict[str, str]:
    """Entry points of installed packages in the group mpifed.KIND: name -> "module:Class"."""
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    points = entry_points(group=f"mpifed.{kind}")
    # Reversed, so that of two packages with the same name the first one on the path counts, as for modules.
    return {point.name: point.value.partition("[")[0].strip() for point in reversed(list(points))}


@cache
def adopt(family: Any, found: Any, name: str) -> Any:
    """A subclass of ``found`` labelled ``name``; ValueError where ``found`` is not a complete member of ``family``."""
    own = f"{found.__name__} of {name.rpartition(':')[0] or found.__module__}"
    if not issubclass(found, family) or found is family:
        home = "mpifed" if family.kind else family.__module__  # from where a user imports the base class
        raise ValueError(f"{own} is not derived from {home}.{family.__name__}")
    module = importlib.import_module(family.checks) if family.checks else None
    missing = [key for key in dir(found) if getattr(getattr(found, key), "__isabstractmethod__", False)]
    if missing:
        raise ValueError(f"{own} does not define {', '.join(missing)}")
    # As if the user's class had the label itself: what finds its source or its module must find the user's file.
    # __firstlineno__ since Python 3.13; what a class keeps is its own word, which one that it derives from cannot give.
    names = ("__module__", "__qualname__", "__doc__", "__firstlineno__", "keeps")
    body = {key: vars(found)[key] for key in names if key in vars(found)}
    if type(body.get("keeps", NOTHING_KEPT)) not in (Keeps, property):
        right = "it must be of mpifed.Keeps, such as Keeps.PRIVACY | Keeps.SURVIVAL"
        raise ValueError(f"{own}: keeps = {body['keeps']!r} is wrong: {right}")
    if module is not None:
        try:
            check_defaults(found)
            getattr(module, "refuse_traits", lambda found: None)(found)
            body |= guarded(found, module.GUARDS[family.kind])
        except ValueError as error:
            raise ValueError(f"{own}: {error}") from None
    return type(family)(found.__name__, (found,), body, tag=name)


def check_defaults(cls: type[msgspec.Struct]) -> None:
    """ValueError for the default of an option that is not of the option's type, which msgspec takes as it is."""
    for field in msgspec.structs.fields(cls):
        # Others, such as components and lists, are made when a table is filled.
        if type(field.default) in (str, int, float, bool):
            try:
                msgspec.convert(field.default, field.type)
            except msgspec.ValidationError as error:
                raise ValueError(f"the default of {field.name}, {field.default!r}, is wrong: {error}") from None


def load(reference: str, what: str = "class", kind: Any = type) -> Any:
    """Import path.py:Class or package.module:Class, an instance of ``kind``; ValueError says what is missing."""

    def right(value: Any) -> bool:
        return isinstance(value, kind)

    if right(given.get(reference)):
        return given[reference]
    source, name, in_file = parse(reference)
    try:
        module = from_file(os.path.realpath(os.path.expanduser(source))) if in_file else importlib.import_module(source)
        found = getattr(module, name, None)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's code may raise anything
        raise ValueError(f"{source} cannot be imported: {summary(error)}") from None
    if right(found):
        return found
    if source == HERE:
        only = f"only that program can go on: pass {name}(…) to mpifed.resume there"
        raise ValueError(f"{name} was defined in a notebook, a script or a function, so {only}")
    own = {key: value for key, value in vars(module).items() if right(value)}
    # Not what the file imports itself: nobody has meant mpifed.Algorithm.
    defined = [key for key, value in own.items() if getattr(value, "__module__", None) == module.__name__]
    near = difflib.get_close_matches(name, defined, 1) or defined[:8]
    raise ValueError(f"{source} has no {what} {name}" + (f"; it defines {', '.join(near)}" if near else ""))


def parse(reference: str) -> tuple[str, str, bool]:
    source, _, name = reference.rpartition(":")
    in_file = FILE.fullmatch(reference) is not None
    if not name.isidentifier() or not (in_file or all(part.isidentifier() for part in source.split("."))):
        raise ValueError("write path.py:Class or package.module:Class")
    if in_file and not os.path.isfile(os.path.expanduser(source)):
        raise ValueError(f"there is no file {source}")
    return source, name, in_file


def from_file(path: str) -> Any:
    """Import a module from its file, once; its name is its path without .py, which no other module has."""
    name = path.removesuffix(".py")
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    # Before the file's code runs: msgspec and typing look types up in sys.modules when a class is made.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def summary(error: BaseException) -> str:
    """An error in one line, with the file and line of the user's code where it was raised."""
    ours = (__file__, importlib.__file__)
    every = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in every if frame.filename not in ours and not frame.filename.startswith("<frozen")]
    where = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    right = "; options are fields with a type, as in gamma: float = 0.1, and __post_init__ checks them"
    advice = right if "cannot define __init__" in message(error) else ""
    return f"{type(error).__name__}: {message(error)}".removesuffix(": ") + where + advice
