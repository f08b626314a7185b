"""Classes outside mpifed: named by their file or module, or offered by an installed package."""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import os
import re
import sys
import traceback
from functools import cache
from typing import Any

FILE = re.compile(r".+\.py:\w+", re.DOTALL)  # path.py:Class


def find(family: Any, name: Any) -> Any:
    """The class called ``name``, path.py:Class or package.module:Class or an entry point of the group mpifed.KIND; or None.

    Naming a class imports, and so runs, its file. The class found is one derived from it whose label is ``name``, so that
    an experiment file says where it comes from. Raises ValueError: it is not there or no member of ``family``.
    """
    if not isinstance(name, str):
        return None
    reference = name if ":" in name else installed(family.kind).get(name)
    return None if reference is None else adopt(family, load(reference), name)


@cache
def installed(kind: str) -> dict[str, str]:
    """name -> "module:Class" of the entry points of installed packages in the group mpifed.KIND."""
    from importlib.metadata import entry_points  # slow, so only where a name is not built in

    points = entry_points(group=f"mpifed.{kind}")
    return {point.name: point.value.partition("[")[0].strip() for point in reversed(list(points))}


@cache
def adopt(family: Any, found: Any, name: str) -> Any:
    """``found`` as a member of ``family`` that is called ``name``; ValueError where it cannot be one."""
    own = f"{found.__name__} of {name.rpartition(':')[0] or found.__module__}"
    if not issubclass(found, family) or found is family:
        raise ValueError(f"{own} is no class derived from {public(family)}")
    missing = [key for key in dir(found) if getattr(getattr(found, key), "__isabstractmethod__", False)]
    if missing:
        raise ValueError(f"{own} has no method {' and no method '.join(missing)}")
    body = {key: getattr(found, key) for key in ("__module__", "__qualname__", "__doc__")}
    return type(family)(found.__name__, (found,), body, tag=name)


def load(reference: str) -> type:
    """The class that path.py:Class or package.module:Class names; ValueError says what is missing."""
    place, _, name = reference.rpartition(":")
    in_file = FILE.fullmatch(reference) is not None
    if not name.isidentifier() or not (in_file or all(part.isidentifier() for part in place.split("."))):
        raise ValueError("write path.py:Class or package.module:Class")
    if in_file and not os.path.isfile(os.path.expanduser(place)):
        raise ValueError(f"there is no file {place}")
    try:
        module = from_file(os.path.realpath(os.path.expanduser(place))) if in_file else importlib.import_module(place)
        found = getattr(module, name, None)
    except (Exception, SystemExit) as error:  # whatever the user's code raises
        raise ValueError(f"{place} cannot be imported: {what(error)}") from None
    if not isinstance(found, type):
        own = [
            key
            for key, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__
        ]
        near = difflib.get_close_matches(name, own, 1) or own[:8]
        raise ValueError(f"{place} has no class {name}" + (f"; there is {', '.join(near)}" if near else ""))
    return found


def from_file(path: str) -> Any:
    """The module in a file, known under its path, imported once."""
    name = path.removesuffix(".py")  # a name that no other module has
    if name in sys.modules:
        return sys.modules[name]
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def what(error: BaseException) -> str:
    """An error in one line, with the last line of the user's code that it passed."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename not in (__file__, importlib.__file__) and not frame.filename.startswith("<frozen")
    ]
    where = f" ({os.path.basename(frames[-1].filename)}, line {frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ") + where


def public(family: Any) -> str:
    """The name under which a user imports a family."""
    return f"mpifed.{family.__name__}" if family.kind else f"{family.__module__}.{family.__name__}"
