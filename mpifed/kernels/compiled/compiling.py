"""Compiled kernels: whether this machine can have them, where their machine code is kept, and how it is loaded."""

import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import reason

MODULES = {"one_pass": "kernels", "pairs": "gram_kernels", "grams": "gram_kernels"}  # kernel -> module here
OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "nogil": True}

NONE = 0  # what one_pass makes of scores: nothing …
IDENTITY = 1  # … these themselves …
LOGISTIC = 2  # … or 1/(1 + e^−z)

Kernel = Callable[..., Any]

loaded: dict[tuple[str, np.dtype[Any]], Kernel] = {}  # of this process, by their names and the types of numbers


def installed() -> bool:
    return importlib.util.find_spec("numba") is not None


def failure() -> str | None:
    """Why numba cannot compile here, or None. Imports it."""
    try:
        import numba
    except Exception as error:  # a numba that does not go with this numpy raises errors of many kinds
        return reason(error).splitlines()[0] if str(error) else type(error).__name__
    return "NUMBA_DISABLE_JIT is set" if numba.config.DISABLE_JIT else None


def version() -> str:
    return importlib.metadata.version("numba")


def kernel(dtype: np.dtype[Any], which: str = "one_pass") -> Kernel:
    """A compiled kernel for numbers of a type: loaded from the cache, or compiled and put there."""
    # By the type itself: each local step of each block asks, and numpy takes 4 µs to make the name of a type.
    if (which, dtype) not in loaded:
        loaded[which, dtype] = build(dtype.name, folder(dtype.name, which), which)
    return loaded[which, dtype]


def build(name: str, place: Path | None, which: str) -> Kernel:
    """A kernel for numbers of a type; None: it is compiled for this process alone."""
    import numba

    module = importlib.import_module(f"mpifed.kernels.compiled.{MODULES[which]}")
    function = getattr(module, which)
    signatures = getattr(module, f"{which}_types")(name)
    before = numba.config.CACHE_DIR
    with warnings.catch_warnings(action="ignore"):
        if place is not None:
            try:
                numba.config.CACHE_DIR = str(place)
                return numba.njit(signatures, cache=True, **OPTIONS)(function)
            except Exception:  # a full disk or a damaged file: the cache saves time and must not end a run
                pass
            finally:
                numba.config.CACHE_DIR = before
        return numba.njit(signatures, **OPTIONS)(function)


def folder(name: str, which: str = "one_pass") -> Path | None:
    """The folder of a kernel's machine code for numbers of a type, or None where it cannot be written.

    One folder holds the code of one source, one numba, one kind of processor and one type, so that processes that
    compile at the same time write the same files. It is in NUMBA_CACHE_DIR or in the user's cache.
    """
    import numba
    from llvmlite import binding

    kind = [numba.__version__, binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    kind += [str(numba.config.CPU_NAME), str(numba.config.CPU_FEATURES)]
    kind += [Path(__file__).with_name(f"{module}.py").read_text("utf-8") for module in (MODULES[which], "loops")]
    digest = hashlib.sha256("\n".join(kind).encode()).hexdigest()[:16]
    place = root() / f"{name}-{digest}"
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except OSError:
        return None
    return place


def root() -> Path:
    """The folder of all compiled kernels: in NUMBA_CACHE_DIR, in XDG_CACHE_HOME or in ~/.cache."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given) / "mpifed"
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache if os.path.isabs(cache) else os.devnull) / "mpifed" / "kernels"


def news(dtype: np.dtype[Any], which: str = "one_pass") -> str | None:
    """What a user should know before a kernel for numbers of a type is compiled; None where it need not be."""
    if (which, dtype) in loaded or kept(dtype.name, which):
        return None
    place = folder(dtype.name, which)
    where = f"kept in {place}" if place else f"each run does it, for {root()} cannot be written"
    return f"the kernels are compiled for this processor, which takes a second or two; {where}"


def kept(name: str, which: str = "one_pass") -> bool:
    """Whether a kernel's machine code for numbers of a type is in the cache."""
    place = folder(name, which)
    return place is not None and any(place.rglob("*.nbi"))
