"""Packages whose attributes are the classes of a family, imported when they are first used."""

import difflib
import importlib
from collections.abc import Callable
from typing import Any

Getter = Callable[[str], Any]
Lister = Callable[[], list[str]]


def members(package: str, family: str) -> tuple[Getter, Lister]:
    """``__getattr__`` and ``__dir__`` of a package for the members of ``family``, "module:Class"."""

    def places() -> dict[str, str]:
        module, _, base = family.partition(":")
        choices = getattr(importlib.import_module(module), base).choices.values()
        return {place.partition(":")[2]: place.partition(":")[0] for place in choices}

    def attribute(name: str) -> Any:
        found = places() if name[:1].isupper() else {}
        if name not in found:
            near = difflib.get_close_matches(name, found, 1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise AttributeError(f"module {package!r} has no attribute {name!r}{hint}")
        return getattr(importlib.import_module(found[name]), name)

    return attribute, lambda: list(places())
