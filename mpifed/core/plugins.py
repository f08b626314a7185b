"""Classes from outside mpifed, named by file or module, or by an entry point of an installed package."""

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

from mpifed.core.errors import error_line, first_message_line
from mpifed.core.guards import guard_methods
from mpifed.core.promises import NOTHING_SUPPORTED, Supports

FILE_REFERENCE = re.compile(r".+\.py:\w+", re.DOTALL)  # path.py:Class
MAIN_MODULE = "__main__"  # stands for the module of a class that only the running program can name

passed_classes: dict[str, Any] = {}  # classes and functions that a Python program passed, by their names


def find_class(family: Any, name: Any) -> Any:
    """Find a user's class by ``name``: path.py:Class, package.module:Class or an entry point of mpifed.KIND; or None.

    The module is imported, so its code runs. Returns a subclass labelled ``name``, so that the recorded configuration
    says where the class comes from. ValueError if it does not exist or is not a member of ``family``.
    """
    if name in passed_classes:
        return label_class(family, passed_classes[name], name)
    reference = name if ":" in name or name.endswith(".py") else find_entry_points(family.kind).get(name)
    return None if reference is None else label_class(family, load_class(reference), name)


@cache
def read_entry_points() -> Any:
    """Read the entry points of all installed packages."""
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return entry_points()


def find_entry_points(kind: str) -> dict[str, str]:
    """Return the entry points of installed packages in the group mpifed.KIND: name -> "module:Class"."""
    points = read_entry_points().select(group=f"mpifed.{kind}")
    # Reversed, so that of two entry points with one name the first on the path counts, as for modules.
    return {point.name: point.value.partition("[")[0].strip() for point in reversed(list(points))}


def public_module(family: Any) -> str:
    """Return the module from which users import the base class of a family."""
    if not family.kind:
        return str(family.__module__)
    of_methods = "mpifed.algorithms.parts"
    return of_methods if family.__module__.startswith(f"{of_methods}.") else "mpifed.extend"


@cache
def label_class(family: Any, cls: Any, name: str) -> Any:
    """Return a subclass of ``cls`` labelled ``name``; ValueError unless ``cls`` is a complete member of ``family``."""
    title = f"{cls.__name__} of {name.rpartition(':')[0] or cls.__module__}"
    if not issubclass(cls, family) or cls is family:
        raise ValueError(f"{title} is not derived from {public_module(family)}.{family.__name__}")
    module = importlib.import_module(family.checks) if family.checks else None
    missing = [key for key in dir(cls) if getattr(getattr(cls, key), "__isabstractmethod__", False)]
    if missing:
        raise ValueError(f"{title} does not define {', '.join(missing)}")
    # As if the user's class had the label itself: whoever looks for its source or module must find the user's file.
    # __firstlineno__ is there since Python 3.13. A class states ``supports`` itself and does not inherit it.
    names = ("__module__", "__qualname__", "__doc__", "__firstlineno__", "supports")
    body = {key: vars(cls)[key] for key in names if key in vars(cls)}
    if type(body.get("supports", NOTHING_SUPPORTED)) not in (Supports, property):
        right = "it must be of mpifed.extend.Supports, such as Supports.PRIVACY | Supports.SURVIVAL"
        raise ValueError(f"{title}: supports = {body['supports']!r} is wrong: {right}")
    try:
        check_defaults(cls)
        getattr(module, "refuse_traits", lambda cls: None)(cls)
        body |= guard_methods(cls, family, family.guards if module is None else module.GUARDS[family.kind])
    except ValueError as error:
        raise ValueError(f"{title}: {error}") from None
    return type(family)(cls.__name__, (cls,), body, tag=name)


def check_defaults(cls: type[msgspec.Struct]) -> None:
    """Raise ValueError if the default of an option has another type than the option, which msgspec does not check."""
    for field in msgspec.structs.fields(cls):
        # Other defaults, such as components and lists, are checked when a table is filled.
        if type(field.default) in (str, int, float, bool):
            try:
                msgspec.convert(field.default, field.type)
            except msgspec.ValidationError as error:
                raise ValueError(f"the default of {field.name}, {field.default!r}, is wrong: {error}") from None


def load_class(reference: str, what: str = "class", cls: Any = type) -> Any:
    """Import path.py:Class or package.module:Class, an instance of ``kind``; ValueError says what is missing."""

    def right(value: Any) -> bool:
        return isinstance(value, cls)

    if right(passed_classes.get(reference)):
        return passed_classes[reference]
    source, name, in_file = parse_reference(reference)
    try:
        path = os.path.realpath(os.path.expanduser(source))
        module = import_file(path) if in_file else importlib.import_module(source)
        value = getattr(module, name, None)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's code may raise anything
        raise ValueError(f"{source} cannot be imported: {summarise_error(error)}") from None
    if right(value):
        return value
    if source == MAIN_MODULE:
        only = f"only that program can go on: pass {name}(…) to mpifed.resume there"
        raise ValueError(f"{name} was defined in a notebook, a script or a function, so {only}")
    candidates = {key: value for key, value in vars(module).items() if right(value)}
    # Without the names that the file imports: nobody meant mpifed.extend.Algorithm.
    defined = [key for key, value in candidates.items() if getattr(value, "__module__", None) == module.__name__]
    matches = difflib.get_close_matches(name, defined, 1) or defined[:8]
    raise ValueError(f"{source} has no {what} {name}" + (f"; it defines {', '.join(matches)}" if matches else ""))


def parse_reference(reference: str) -> tuple[str, str, bool]:
    """Split path.py:Class or package.module:Class: its source, the name of the class, and whether it is in a file."""
    source, _, name = reference.rpartition(":")
    in_file = FILE_REFERENCE.fullmatch(reference) is not None
    if not name.isidentifier() or not (in_file or all(part.isidentifier() for part in source.split("."))):
        raise ValueError("write path.py:Class or package.module:Class")
    if in_file and not os.path.isfile(os.path.expanduser(source)):
        raise ValueError(f"there is no file {source}")
    return source, name, in_file


def import_file(path: str) -> Any:
    """Import a module from its file, once; its name is its path without .py, which is unique."""
    name = path.removesuffix(".py")
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    # Before the file's code runs: msgspec and typing look up types in sys.modules when a class is made.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def summarise_error(error: BaseException) -> str:
    """Write an error in one line, with the file and line of the user's code where it was raised."""
    ours = (__file__, importlib.__file__)
    stack = traceback.extract_tb(error.__traceback__)
    frames = [frame for frame in stack if frame.filename not in ours and not frame.filename.startswith("<frozen")]
    where = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    right = "; options are fields with a type, as in gamma: float = 0.1, and __post_init__ checks them"
    advice = right if "cannot define __init__" in first_message_line(error) else ""
    return error_line(error) + where + advice
