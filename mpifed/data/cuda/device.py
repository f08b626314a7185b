"""The GPU: whether there is one, arrays on it, and kernels compiled for it."""

import hashlib
import importlib
import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import reason
from mpifed.data.compiled.compiling import root, writable

MODULES = {  # kernel -> module here
    "gradients_staged": "kernels",
    "gradients_placed": "kernels",
    "steps_staged": "kernels",
    "steps_placed": "kernels",
    "subtree": "tree",
}
RUNS = ("gradients_staged", "gradients_placed", "subtree")  # those that runs launch …
STEPS = ("steps_staged", "steps_placed")  # … and those of runs with all local steps of a round in one launch

loaded: dict[tuple[str, str], Any] = {}  # the kernels of this process, by their names and the types of numbers


def installed() -> bool:
    """Whether the extra ``cuda`` is installed; nothing is imported."""
    return importlib.util.find_spec("numba_cuda") is not None


def failure() -> str | None:
    """Why numba cannot compute on a GPU here, or None. Imports it."""
    try:
        from numba import cuda

        return None if cuda.is_available() else "numba finds no GPU: nvidia-smi lists those that the driver knows"
    except Exception as error:  # missing or unsuitable libraries raise errors of many kinds
        return first_line(error)


def unready(number: str, index: int, kernels: Sequence[str] = RUNS) -> str | None:
    """The same of kernels for numbers of a type, which are loaded or compiled for GPU ``index``."""
    mistake = failure()
    if mistake is not None:
        return mistake
    try:
        from numba import cuda

        cuda.select_device(index)
        for which in kernels:
            kernel(which, number)
    except Exception as error:  # as above
        return first_line(error)
    return None


def first_line(error: Exception) -> str:
    return reason(error).splitlines()[0] if str(error) else type(error).__name__


class Device(NamedTuple):
    """Where kernels compute, in numbers of a type: ``empty(shape)`` makes an array there, ``stream`` is one of CUDA."""

    dtype: np.dtype[Any]
    empty: Callable[[tuple[int, ...]], Any]
    stream: int = 0

    def pointer(self, array: Any, name: str, dtype: Any = None) -> Any:
        """Where an array is on the device; ValueError where it is not there, or its type or order are others.

        The simulator has the array itself, flat, or the memory of a tensor.
        """
        wanted = np.dtype(dtype or self.dtype)
        if simulated():
            array = np.asarray(array)
            found, address = array.dtype, array.ravel()
            contiguous = array.flags.c_contiguous
        else:
            facts = getattr(array, "__cuda_array_interface__", None)
            if facts is None:
                raise ValueError(f"{name}: the array must be on a GPU, and is a {type(array).__name__}")
            found, address = np.dtype(facts["typestr"]), facts["data"][0]
            contiguous = in_order(facts)
        if found != wanted:
            raise ValueError(f"{name}: the numbers must be {wanted}, and are {found}")
        if not contiguous:
            raise ValueError(f"{name}: the array must be contiguous")
        return address

    def nothing(self) -> Any:
        """A pointer that no kernel follows."""
        return np.zeros(1, self.dtype) if simulated() else 0

    def launch(self, which: str, blocks: int, block: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        """Start a kernel with so many blocks, each of so many threads and with so many numbers in shared memory."""
        if blocks:
            sizes = (blocks, block[0], stream(self.stream), block[1] * self.dtype.itemsize)
            kernel(which, self.dtype.name)[sizes](*arguments)


@cache
def simulated() -> bool:
    """Whether numba computes on the CPU what a GPU would."""
    from numba.cuda.core import config

    return bool(config.ENABLE_CUDASIM)


def in_order(facts: dict[str, Any]) -> bool:
    """Whether the array of a __cuda_array_interface__ has its numbers one after the other."""
    if not facts.get("strides"):
        return True
    step = np.dtype(facts["typestr"]).itemsize
    for count, stride in zip(reversed(facts["shape"]), reversed(facts.get("strides") or ()), strict=False):
        if count > 1 and stride != step:
            return False
        step *= count
    return True


@cache
def stream(pointer: int) -> Any:
    from numba import cuda

    return cuda.external_stream(pointer) if pointer else 0


def kernel(which: str, name: str) -> Any:
    """A kernel for numbers of a type: loaded from the cache, or compiled for the current device and put there."""
    if (which, name) not in loaded:
        module = importlib.import_module(f"mpifed.data.cuda.{MODULES[which]}")
        loaded[which, name] = build(getattr(module, which), module.signature(name))
    return loaded[which, name]


def build(function: Callable[..., None], signature: Any) -> Any:
    from numba import cuda
    from numba.cuda.core import config

    config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # few clients are no mistake
    place = None if simulated() else folder()
    before = config.CACHE_DIR
    if place is not None:
        try:
            config.CACHE_DIR = str(place)
            return cuda.jit(signature, cache=True)(function)
        except Exception:  # a full disk or a damaged file: the cache saves time and must not end a run
            pass
        finally:
            config.CACHE_DIR = before
    return cuda.jit(signature)(function)


def folder() -> Path | None:
    """The folder of the machine code of these sources by this numba-cuda, or None where it cannot be written.

    Numba tells devices apart itself.
    """
    sources = (path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))
    digest = hashlib.sha256(b"".join([importlib.metadata.version("numba-cuda").encode(), *sources])).hexdigest()
    return writable(root() / f"cuda-{digest[:16]}")
