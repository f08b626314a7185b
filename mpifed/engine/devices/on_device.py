"""Client methods on a device: their arguments are moved there, and their results come back to the host."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from mpifed.core.arrays import device_namespace, is_tensor, to_numpy
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.local import Local


class DeviceRows(NDArrayOperatorsMixin):
    """Field of the clients' state on a device; the host uses it as a numpy array and copies only what it reads.

    ``rows`` (c, …) is the tensor. Indexing gives rows on the device; arithmetic gives arrays of numpy.
    """

    def __init__(self, rows: Any) -> None:
        self.rows = rows
        self.shape = tuple(rows.shape)
        self.ndim = rows.ndim

    @property
    def dtype(self) -> Any:
        return to_numpy(self.rows[:0]).dtype

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, picks: Any) -> "DeviceRows":
        return DeviceRows(self.rows[picks])

    def __setitem__(self, picks: Any, values: Any) -> None:
        self.rows[picks] = self.as_tensor(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(to_numpy(self.rows), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        plain = [np.asarray(part) if isinstance(part, DeviceRows) else part for part in inputs]
        return getattr(ufunc, method)(*plain, **named)

    def copy(self) -> "DeviceRows":
        return DeviceRows(self.rows.clone())

    def reshape(self, *shape: int) -> Array:
        """Return the numbers in memory, reshaped."""
        return np.asarray(self).reshape(*shape)

    def as_tensor(self, values: Any) -> Any:
        """Return values as a tensor of the same type on the same device."""
        if isinstance(values, DeviceRows):
            values = values.rows
        return device_namespace(self.rows.device).asarray(values, dtype=self.rows.dtype)


def wrap_method(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """Wrap a client method that computes with tensors, for a host that passes and expects numpy arrays."""

    def call(f: Local, *rest: Any) -> Any:
        sent = tuple([to_device(part, f.xp) for part in rest])
        try:
            result = method(f, *sent)
        except TypeError as error:
            refuse_numpy(error, name)
            raise
        unchanged = {}
        # a state that comes back as it was, or a field of it, is recognised by identity: the host copies no such field
        for tensors, state in zip(sent[:1], rest[:1], strict=True):
            unchanged = {id(tensor): field for tensor, field in zip(tensors, state, strict=True)} | {id(tensors): state}
        return to_host(result, unchanged, name)

    return call


def to_device(part: Any, xp: Any) -> Any:
    """Return an argument on the device: arrays and the fields of NamedTuples are moved, numbers stay."""
    if isinstance(part, DeviceRows):
        return part.rows
    if isinstance(part, np.ndarray):
        return xp.asarray(part)
    if isinstance(part, tuple) and hasattr(part, "_fields"):
        return type(part)(*[to_device(field, xp) for field in part])
    return part.item() if isinstance(part, np.generic) else part


def to_host(result: Any, unchanged: dict[int, Any], name: str) -> Any:
    """Return the result of a client method for the host, with arrays as DeviceRows.

    ``unchanged``: id of a tensor or of the state that was passed -> the host's own object.
    """
    if id(result) in unchanged:
        return unchanged[id(result)]
    if is_tensor(result):
        return DeviceRows(result)
    if isinstance(result, dict):
        return {key: to_host(value, {}, name) for key, value in result.items()}
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        cls: Any = type(result)
        return cls(*[unchanged[id(x)] if id(x) in unchanged else wrap_rows(x, name) for x in result])
    if isinstance(result, tuple):
        return tuple([to_host(part, {} if k else unchanged, name) for k, part in enumerate(result)])
    refuse_array(result, name)
    return result


def wrap_rows(field: Any, name: str) -> DeviceRows:
    """Return a field of a new state as DeviceRows; raise UserError where it is a numpy array."""
    refuse_array(field, name)
    return DeviceRows(field)


def refuse_array(value: Any, name: str) -> None:
    """Raise UserError where a client method returns a numpy array."""
    if isinstance(value, np.ndarray | np.generic):
        raise UserError(
            f"the client method {name} returns a numpy array where its clients' arrays are on a device: use f.xp in "
            "place of np, as in f.xp.sqrt(x)"
        )


def refuse_numpy(error: TypeError, name: str) -> None:
    """Raise UserError where an error says that numpy was given a tensor of a GPU."""
    if "numpy" in str(error):
        raise UserError(
            f"the client method {name} gives arrays to numpy that are on a device: use f.xp in place of np, as in "
            f"f.xp.sqrt(x) ({error})"
        ) from error
