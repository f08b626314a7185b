"""Packages whose attributes are the classes of a family, each imported at its first use."""

import difflib
import importlib
from collections.abc import Callable
from typing import Any

Getter = Callable[[str], Any]
Lister = Callable[[], list[str]]


def lazy_members(package: str, family: str) -> tuple[Getter, Lister]:
    """Return ``__getattr__`` and ``__dir__`` of a package for the members of ``family``, "module:Class"."""

    def module_of_class() -> dict[str, str]:
        module, _, base = family.partition(":")
        choices = getattr(importlib.import_module(module), base).choices.values()
        return {choice.partition(":")[2]: choice.partition(":")[0] for choice in choices}

    def attribute(name: str) -> Any:
        modules = module_of_class() if name[:1].isupper() else {}
        if name not in modules:
            matches = difflib.get_close_matches(name, modules, 1)
            hint = f"; did you mean {matches[0]!r}?" if matches else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        return getattr(importlib.import_module(modules[name]), name)

    return attribute, lambda: list(module_of_class())
