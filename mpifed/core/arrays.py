"""Arrays of numpy and tensors on a device, and for either the functions of the array-API standard.

Numpy is its own namespace. That of tensors is array_api_compat.torch, imported when the first tensor appears.
"""

import os
import sys
from functools import cache, partial
from types import SimpleNamespace
from typing import Any

import numpy as np

from mpifed.core.errors import import_required
from mpifed.core.typing import Array

CREATING = ("arange", "empty", "eye", "full", "linspace", "ones", "zeros")  # functions that get no array


def floor_fraction(count: int, fraction: float) -> int:
    """Compute ⌊fraction · count⌋ without rounding errors: 0.29 · 100 is 29, and not a little below."""
    return int(fraction * count + 1e-9)


class Namespace(SimpleNamespace):
    """The array-API standard for tensors on one ``device``: the ``f.xp`` of its clients.

    New arrays lie on the device. As with numpy, those of real numbers have double precision unless ``dtype`` is given.
    """

    def __init__(self, device: Any) -> None:
        functions = vars(import_array_api())
        super().__init__(**functions)
        self.device = device  # in place of PyTorch's class of this name
        # The standard gives new arrays the precision that PyTorch has by default, which is single.
        vars(self).update({name: partial(self._create, functions[name], name) for name in CREATING})
        self.asarray = self._as_tensor

    def _as_tensor(self, value: Any, dtype: Any = None, copy: bool | None = None) -> Any:
        if is_tensor(value):
            return value.to(self.device, dtype, copy=bool(copy))
        return import_torch().tensor(np.asarray(value), dtype=dtype, device=self.device)

    def _create(self, function: Any, name: str, *args: Any, dtype: Any = None) -> Any:
        integer = name == "arange" or (name == "full" and not isinstance(args[1], float))
        if dtype is None and not integer:
            dtype = self.float64
        return function(*args, dtype=dtype, device=self.device)


def namespace(array: Any) -> Any:
    """Return the functions of the array-API standard for an array; for one of numpy, numpy itself."""
    if isinstance(array, np.ndarray | np.generic):
        return np
    if is_tensor(array):
        return device_namespace(array.device)
    if hasattr(array, "__array_namespace__"):
        return array.__array_namespace__()
    from array_api_compat import array_namespace

    return array_namespace(array)


@cache
def device_namespace(device: Any) -> Namespace:
    """Return the namespace of a device, made once."""
    return Namespace(device)


def is_tensor(value: Any) -> bool:
    """Return whether a value is a tensor of PyTorch, without importing PyTorch."""
    # Importing it takes seconds, and without it there are no tensors.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_real_array(value: Any) -> bool:
    """Return whether a value is an array of real numbers, of numpy or on a device."""
    if is_tensor(value):
        return not value.is_complex()
    # A masked array is none: sums over it leave numbers out silently.
    return is_numpy_array(value) and not np.ma.isMaskedArray(value)


def count_masked(value: Any) -> int:
    """Count the masked entries of an array or a list of arrays; numpy drops masks when it joins a list to one array."""
    parts = value if type(value) in (list, tuple) else [value]
    return sum(int(np.count_nonzero(part.mask)) for part in parts if np.ma.isMaskedArray(part))


def is_numpy_array(value: Any) -> bool:
    """Return whether a value is an array of real numbers of numpy."""
    return isinstance(value, np.ndarray) and value.dtype.kind in "fiub"


def is_number(value: Any, kinds: Any = int | float | np.number) -> bool:
    """Return whether a value is a number of one of these types, and no bool."""
    # True is an int to Python, but a mistake where a number is expected.
    return isinstance(value, kinds) and not isinstance(value, bool)


def to_numpy(array: Any) -> Array:
    """Return the numbers of an array or tensor as a numpy array; an array of numpy is returned itself."""
    return array.detach().cpu().numpy() if is_tensor(array) else np.asarray(array)


def subtract(w: Array, step: Array) -> Array:
    """Return w − step (c, n), written into ``step``, because another array of this size takes longer than the sum."""
    # not for tensors: PyTorch reuses the memory of arrays of this size itself
    if isinstance(step, np.ndarray) and step.dtype == w.dtype:
        return np.subtract(w, step, out=step)
    return w - step


def put_at(array: Any, index: Any, values: Any) -> None:
    """Write ``values`` at the positions ``index`` along the last axis of an array, as np.put_along_axis does."""
    if is_tensor(array):
        # scatter_ takes a tensor or a number of Python, but no number of numpy.
        array.scatter_(-1, index, values if is_tensor(values) else float(values))
    else:
        np.put_along_axis(array, index, values, -1)


def import_torch(who: str = "arrays on a device need") -> Any:
    """Import torch; if it is not installed, raise UserError beginning with ``who``, which needs it."""
    # Without MKL_CBWR the last bits of MKL's products depend on the memory addresses of arrays. MKL reads the variable
    # once, when PyTorch loads it.
    os.environ.setdefault("MKL_CBWR", "AUTO")
    return import_required("torch", f"{who} PyTorch ({{}}): pip install mpifed[torch]")


def import_array_api() -> Any:
    """Import array_api_compat.torch; UserError if it is not installed."""
    import_torch()
    missing = "arrays on a device need array-api-compat ({}): pip install 'mpifed[torch]'"
    return import_required("array_api_compat.torch", missing)


def row_offsets(sizes: Array) -> Array:
    """Return the position of the first row of each client, in their order, and the number of all rows: (m + 1,)."""
    return np.concatenate([[0], np.cumsum(sizes)])


def as_slice(positions: Array) -> slice | Array:
    """Return rising positions as a slice if they are consecutive, else unchanged."""
    first, last = int(positions[0]), int(positions[-1]) + 1
    return slice(first, last) if last - first == len(positions) else positions


def soft(V: Array, lam: Any) -> Array:
    """Compute the soft threshold sign(v)·max(|v| − λ, 0), elementwise: argmin_u λ|u| + (u − v)²/2, for λ >= 0.

    It is the proximal operator of λ|·|; λ may be a number or an array like V.
    Source: section 1 of A. Beck, M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse
    problems", SIAM Journal on Imaging Sciences 2(1), 2009, doi:10.1137/080716542; there it is T_λ.
    """
    xp = namespace(V)
    return xp.sign(V) * xp.maximum(xp.abs(V) - lam, 0)
