"""The GPU: whether there is one, arrays on it, and kernels compiled for it."""

import importlib
import importlib.util
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import reason

MODULES = {  # kernel -> module here
    "gradients_staged": "kernels",
    "gradients_placed": "kernels",
    "steps_staged": "kernels",
    "steps_placed": "kernels",
    "subtree": "tree",
}

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
        return reason(error).splitlines()[0] if str(error) else type(error).__name__


class Device(NamedTuple):
    """Where kernels compute, in numbers of a type: ``empty(shape)`` makes an array there, ``stream`` is one of CUDA."""

    dtype: np.dtype[Any]
    empty: Callable[[tuple[int, ...]], Any]
    stream: int = 0

    def flat(self, array: Any, name: str, dtype: Any = None) -> Any:
        """The same numbers in one row, as kernels take them; ValueError where type or order are others."""
        found = np.asarray(array) if simulated() else on_device(array)
        wanted = np.dtype(dtype or self.dtype)
        if found.dtype != wanted:
            raise ValueError(f"{name}: the numbers must be {wanted}, and are {found.dtype}")
        if not found.flags["C_CONTIGUOUS"]:
            raise ValueError(f"{name}: the array must be contiguous")
        return found.ravel()

    def launch(self, which: str, blocks: int, block: tuple[int, int], arguments: tuple[Any, ...]) -> None:
        """Start a kernel with so many blocks, each of so many threads and with so many numbers in shared memory."""
        if blocks:
            sizes = (blocks, block[0], stream(self.stream), block[1] * self.dtype.itemsize)
            kernel(which, self.dtype.name)[sizes](*arguments)


def simulated() -> bool:
    """Whether numba computes on the CPU what a GPU would."""
    from numba.cuda.core import config

    return bool(config.ENABLE_CUDASIM)


@cache
def integers() -> Any:
    """An array of one whole number, for kernels that are to read none."""
    from numba import cuda

    return np.zeros(1, np.int64) if simulated() else cuda.to_device(np.zeros(1, np.int64))


def on_device(array: Any) -> Any:
    from numba import cuda

    return cuda.as_cuda_array(array, sync=False)


def stream(pointer: int) -> Any:
    from numba import cuda

    return cuda.external_stream(pointer) if pointer else 0


def kernel(which: str, name: str) -> Any:
    """A kernel for numbers of a type, compiled for the current device."""
    if (which, name) not in loaded:
        from numba import cuda
        from numba.cuda.core import config

        config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # few clients are no mistake
        module = importlib.import_module(f"mpifed.data.cuda.{MODULES[which]}")
        loaded[which, name] = cuda.jit(module.signature(name))(getattr(module, which))
    return loaded[which, name]
