"""The names of scipy.sparse, imported at their first use, because this import takes as long as all others together."""

import importlib
import sys
from typing import Any


def issparse(X: Any) -> bool:
    """Return whether ``X`` is a sparse matrix or array; without importing scipy.sparse."""
    loaded = sys.modules.get("scipy.sparse")  # if nobody has imported it, there is no such array
    return loaded is not None and bool(loaded.issparse(X))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):  # the import system asks for __path__
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("scipy.sparse"), name)
