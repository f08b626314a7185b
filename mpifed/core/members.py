"""Packages whose attributes are imported at their first use: the names of a stub, or the classes of a family."""

import difflib
import importlib
import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

Getter = Callable[[str], Any]
Lister = Callable[[], list[str]]


def lazy_stub(module: str, file: str) -> tuple[Getter, Lister, list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a module for the names in the stub beside its ``file``."""
    homes = stub_names(file)
    names = list(homes)

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        home = importlib.import_module(homes[name])
        # what is imported from a package is a module in it
        found = importlib.import_module(f"{home.__name__}.{name}") if hasattr(home, "__path__") else vars(home)[name]
        setattr(sys.modules[module], name, found)
        return found

    return attribute, lambda: names, names


def stub_names(file: str) -> dict[str, str]:
    """Return the public names of the module in ``file``: name -> the module that has it, as the stub beside it says."""
    # one import a line, as in lazy_loader.attach_stub
    stub = Path(file).with_suffix(".pyi").read_text("utf-8")
    return {name: home for home, name in re.findall(r"^from (\S+) import (\w+)", stub, re.M)}


def is_module(package: str, name: str) -> bool:
    """Return whether a package has a module of this name; a table of classes that is no package has none."""
    folder = getattr(sys.modules.get(package), "__path__", None)
    return folder is not None and importlib.util.find_spec(f"{package}.{name}") is not None


def lazy_members(package: str, family: str) -> tuple[Getter, Lister]:
    """Return ``__getattr__`` and ``__dir__`` of a package for the members of ``family``, "module:Class"."""

    def module_of_class() -> dict[str, str]:
        module, _, base = family.partition(":")
        choices = getattr(importlib.import_module(module), base).choices.values()
        return {choice.partition(":")[2]: choice.partition(":")[0] for choice in choices}

    def attribute(name: str) -> Any:
        if name[:1].islower() and is_module(package, name):
            return importlib.import_module(f"{package}.{name}")
        modules = module_of_class() if name[:1].isupper() else {}
        if name not in modules:
            matches = difflib.get_close_matches(name, modules, 1)
            hint = f"; did you mean {matches[0]!r}?" if matches else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        return getattr(importlib.import_module(modules[name]), name)

    return attribute, lambda: list(module_of_class())
