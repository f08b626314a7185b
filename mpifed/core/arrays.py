"""Arrays of numpy and tensors on a device, and for each of them the functions of the array-API standard.

Numpy is its own namespace. That of tensors is array_api_compat.torch, which is imported when the first tensor is there.
"""

import os
import sys
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from mpifed.core.errors import needed
from mpifed.core.typing import Array

CREATING = ("arange", "empty", "eye", "full", "linspace", "ones", "zeros")  # functions without an array to begin from


def part_of(count: int, share: float) -> int:
    """⌊share · count⌋, where 0.29 · 100 is 29, and not a little below."""
    return int(share * count + 1e-9)


class Namespace(SimpleNamespace):
    """The array-API standard for tensors on one ``device``: the ``f.xp`` of its clients.

    New arrays lie on the device. As with numpy, those of real numbers have double precision where no ``dtype`` says
    otherwise.
    """

    def __init__(self, device: Any) -> None:
        functions = vars(standard())
        super().__init__(**functions)
        self.device = device  # in place of PyTorch's class of this name
        # The standard gives new arrays the precision that PyTorch has by default, which is single.
        vars(self).update({name: partial(self._created, functions[name], name) for name in CREATING})
        self.asarray = self._moved

    def _moved(self, value: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        if is_tensor(value):
            return value.to(self.device, dtype, copy=bool(copy))
        return pytorch().tensor(np.asarray(value), dtype=dtype, device=self.device)

    def _created(self, function: Any, name: str, *args: Any, dtype: Any = None) -> Any:
        whole = name == "arange" or (name == "full" and not isinstance(args[1], float))
        if dtype is None and not whole:
            dtype = self.float64
        return function(*args, dtype=dtype, device=self.device)


def namespace(array: Any) -> Any:
    """The functions of the array-API standard for an array: numpy itself for numpy's."""
    if isinstance(array, np.ndarray | np.generic):
        return np
    if is_tensor(array):
        return on(array.device)
    from array_api_compat import array_namespace

    return array_namespace(array)


@cache
def on(device: Any) -> Namespace:
    """The namespace of a device, made once."""
    return Namespace(device)


def is_tensor(value: Any) -> bool:
    # Where nobody has imported PyTorch there are no tensors, and to import it for this question would take seconds.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_real(value: Any) -> bool:
    """Whether a value is an array of real numbers, of numpy or on a device."""
    if is_tensor(value):
        return not value.is_complex()
    # A sum over a masked array leaves numbers out without a word, so that one is no answer of a method.
    return is_numeric(value) and not np.ma.isMaskedArray(value)


def masked(value: Any) -> int:
    """How many entries of an array, or of a list of arrays, have a mask, which numpy drops when it makes them one."""
    parts = value if type(value) in (list, tuple) else [value]
    return sum(int(np.count_nonzero(part.mask)) for part in parts if np.ma.isMaskedArray(part))


def is_numeric(value: Any) -> bool:
    """Whether a value is an array of numpy of real numbers."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"


def is_number(value: Any, kinds: Any = int | float | np.number) -> bool:
    # True is an int to Python, but where a number is asked for it is a mistake.
    return isinstance(value, kinds) and not isinstance(value, bool)


def to_numpy(array: Any) -> Array:
    """A numpy array with the numbers of an array, wherever they are; of numpy, the array itself."""
    return array.detach().cpu().numpy() if is_tensor(array) else np.asarray(array)


def put_at(array: Any, index: Any, values: Any) -> None:
    """Write ``values`` to the places ``index`` along the last axis of an array, as np.put_along_axis does."""
    if is_tensor(array):
        # scatter_ takes a tensor or a number of Python, and nothing between, such as a number of numpy.
        array.scatter_(-1, index, values if is_tensor(values) else float(values))
    else:
        np.put_along_axis(array, index, values, -1)


def pytorch(who: str = "arrays on a device need") -> Any:
    """The module torch; UserError, beginning with ``who`` needs it, where it is not installed."""
    # Without it the last bits of MKL's products depend on where arrays happen to lie in memory. MKL reads the variable
    # once, when PyTorch loads it.
    os.environ.setdefault("MKL_CBWR", "AUTO")
    return needed("torch", f"{who} PyTorch ({{}}): pip install mpifed[torch]")


def standard() -> Any:
    """The module array_api_compat.torch; UserError where it is not installed."""
    pytorch()
    lacking = "arrays on a device need array-api-compat ({}): pip install 'mpifed[torch]'"
    return needed("array_api_compat.torch", lacking)


def starts_of(sizes: Array) -> Array:
    """Where the rows of each client begin, in the order of clients, and the number of all: (m + 1,)."""
    return np.concatenate([[0], np.cumsum(sizes)])


def between(positions: Array) -> slice | Array:
    """Rising positions as a slice where they are neighbours."""
    first, last = int(positions[0]), int(positions[-1]) + 1
    return slice(first, last) if last - first == len(positions) else positions
