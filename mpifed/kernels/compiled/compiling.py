"""Compilation of kernels by numba: whether it is possible here, the cache of machine code, and its loading."""

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

NONE = 0  # the mean μ(z) in one_pass: none …
IDENTITY = 1  # … z itself …
LOGISTIC = 2  # … or 1/(1 + e^−z)

Kernel = Callable[..., Any]

loaded_kernels: dict[tuple[str, np.dtype[Any]], Kernel] = {}  # the kernels of this process, by name and dtype


def has_numba() -> bool:
    """Return whether numba is installed, without importing it."""
    return importlib.util.find_spec("numba") is not None


def compile_failure() -> str | None:
    """Return the reason why numba cannot compile here, or None; imports numba."""
    try:
        import numba
    except Exception as error:  # a numba that does not fit this numpy raises errors of many types
        return reason(error).splitlines()[0] if str(error) else type(error).__name__
    return "NUMBA_DISABLE_JIT is set" if numba.config.DISABLE_JIT else None


def numba_version() -> str:
    """Return the version of numba."""
    return importlib.metadata.version("numba")


def get_kernel(dtype: np.dtype[Any], which: str = "one_pass") -> Kernel:
    """Return a compiled kernel for a dtype: loaded from the cache, or compiled and put there."""
    # The key is the dtype itself: each local step of each block asks, and numpy takes 4 µs to make a dtype's name.
    if (which, dtype) not in loaded_kernels:
        loaded_kernels[which, dtype] = compile_kernel(dtype.name, cache_folder(dtype.name, which), which)
    return loaded_kernels[which, dtype]


def compile_kernel(name: str, cache: Path | None, which: str) -> Kernel:
    """Load or compile a kernel for the dtype ``name`` in the folder ``place``; None: for this process only."""
    import numba

    module = importlib.import_module(f"mpifed.kernels.compiled.{MODULES[which]}")
    function = getattr(module, which)
    signatures = getattr(module, f"{which}_types")(name)
    before = numba.config.CACHE_DIR
    with warnings.catch_warnings(action="ignore"):
        if cache is not None:
            try:
                numba.config.CACHE_DIR = str(cache)
                return numba.njit(signatures, cache=True, **OPTIONS)(function)
            except Exception:  # a full disk or a damaged file: the cache only saves time and must not end a run
                pass
            finally:
                numba.config.CACHE_DIR = before
        return numba.njit(signatures, **OPTIONS)(function)


def cache_folder(name: str, which: str = "one_pass") -> Path | None:
    """Return the folder of a kernel's machine code for a dtype, or None if it cannot be written.

    Each folder is for one source, one numba, one processor model and one dtype, so that processes that compile at the
    same time write the same files. It is in NUMBA_CACHE_DIR or in the user's cache.
    """
    import numba
    from llvmlite import binding

    facts = [numba.__version__, binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()]
    facts += [str(numba.config.CPU_NAME), str(numba.config.CPU_FEATURES)]
    facts += [Path(__file__).with_name(f"{module}.py").read_text("utf-8") for module in (MODULES[which], "loops")]
    digest = hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]
    path = cache_root() / f"{name}-{digest}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=path).close()
    except OSError:
        return None
    return path


def cache_root() -> Path:
    """Return the folder of all compiled kernels: in NUMBA_CACHE_DIR, in XDG_CACHE_HOME or in ~/.cache."""
    if numba_cache := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(numba_cache) / "mpifed"
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(cache if os.path.isabs(cache) else os.devnull) / "mpifed" / "kernels"


def compile_note(dtype: np.dtype[Any], which: str = "one_pass") -> str | None:
    """Return the note for users before a kernel for a dtype is compiled; None if it need not be."""
    if (which, dtype) in loaded_kernels or is_cached(dtype.name, which):
        return None
    path = cache_folder(dtype.name, which)
    where = f"kept in {path}" if path else f"each run does it, for {cache_root()} cannot be written"
    return f"the kernels are compiled for this processor, which takes a second or two; {where}"


def is_cached(name: str, which: str = "one_pass") -> bool:
    """Return whether a kernel's machine code for a dtype is in the cache."""
    path = cache_folder(name, which)
    return path is not None and any(path.rglob("*.nbi"))
