"""mpifed: federated optimisation on an MPI cluster.

The names in ``__all__`` are the public API; everything else is private and may change from one version to the next.
They are loaded when they are first used, so that ``import mpifed`` imports neither numpy nor MPI.

    >>> mpifed.__version__.count(".")
    2
    >>> def longest(X: mpifed.Array) -> float:  # mpifed.Array: an array of numpy
    ...     return max(map(np.linalg.norm, X))
"""

import importlib
import re
from pathlib import Path
from typing import Any

from mpifed.mpi.launcher import read_launcher

__version__ = "0.1.0"

# The stub is the only list of the public names, one import a line, as in lazy_loader.attach_stub.
STUB = Path(__file__).with_suffix(".pyi").read_text("utf-8")
PUBLIC = {name: home for home, name in re.findall(r"^from (\S+) import (\w+)", STUB, re.M)}
__all__ = ["__version__", *PUBLIC]


# here, and not in a run: a program may fail on one rank before its first run
if (read_launcher()[0] or 1) > 1:
    importlib.import_module("mpifed.mpi.program_end").install(read_launcher()[1])


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'mpifed' has no attribute {name!r}")
    home = PUBLIC[name]
    # a name that the stub imports from mpifed itself is a room whose attributes are the classes of components
    if home == "mpifed":
        found = importlib.import_module(f"mpifed.{name}")
    else:
        found = getattr(importlib.import_module(home), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
