"""The names of scipy.sparse, imported when one of them is first used: it takes as long as everything else together."""

import importlib
import sys
from typing import Any


def issparse(X: Any) -> bool:
    loaded = sys.modules.get("scipy.sparse")  # without it there are none
    return loaded is not None and bool(loaded.issparse(X))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # the import system asks for __path__
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("scipy.sparse"), name)
