"""Between a host and client methods that compute on a device: arrays go there, and what comes of them comes back."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from mpifed.core.arrays import is_tensor, on, to_numpy
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.local import Local


class DeviceRows(NDArrayOperatorsMixin):
    """A field of the clients' state on a device: to the host an array of numpy, of which only what it uses is copied.

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
        self.rows[picks] = self.like(values)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return np.asarray(to_numpy(self.rows), dtype)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        plain = [np.asarray(part) if isinstance(part, DeviceRows) else part for part in inputs]
        return getattr(ufunc, method)(*plain, **named)

    def copy(self) -> "DeviceRows":
        return DeviceRows(self.rows.clone())

    def reshape(self, *shape: int) -> Array:
        """The numbers in memory."""
        return np.asarray(self).reshape(*shape)

    def like(self, values: Any) -> Any:
        """Values as a tensor of the same type on the same device."""
        if isinstance(values, DeviceRows):
            values = values.rows
        return on(self.rows.device).asarray(values, dtype=self.rows.dtype)


def on_device(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    """A client method whose clients' arrays are tensors, for a host to whose messages they are numpy's."""

    def called(f: Local, *rest: Any) -> Any:
        sent = tuple([moved(part, f.xp) for part in rest])
        try:
            result = method(f, *sent)
        except TypeError as error:
            refuse_numpy(error, name)
            raise
        known = {}
        # a state that comes back as it was, or a field of it, is known by its identity: the host copies no such field
        for there, here in zip(sent[:1], rest[:1], strict=True):
            known = {id(tensor): field for tensor, field in zip(there, here, strict=True)} | {id(there): here}
        return back(result, known, name)

    return called


def moved(part: Any, xp: Any) -> Any:
    """An argument on the device; a NamedTuple with its fields there, and numbers as they are."""
    if isinstance(part, DeviceRows):
        return part.rows
    if isinstance(part, np.ndarray):
        return xp.asarray(part)
    if isinstance(part, tuple) and hasattr(part, "_fields"):
        return type(part)(*[moved(field, xp) for field in part])
    return part.item() if isinstance(part, np.generic) else part


def back(result: Any, known: dict[int, Any], name: str) -> Any:
    """What a client method returned, as the host takes it: arrays as DeviceRows.

    ``known``: id of a tensor, or of the state, -> what it was before, which the host knows by its identity.
    """
    if id(result) in known:
        return known[id(result)]
    if is_tensor(result):
        return DeviceRows(result)
    if isinstance(result, dict):
        return {key: back(value, {}, name) for key, value in result.items()}
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        kind: Any = type(result)
        return kind(*[known[id(field)] if id(field) in known else rows_of(field, name) for field in result])
    if isinstance(result, tuple):
        return tuple([back(part, {} if k else known, name) for k, part in enumerate(result)])
    refuse_array(result, name)
    return result


def rows_of(field: Any, name: str) -> DeviceRows:
    """A field of a new state."""
    refuse_array(field, name)
    return DeviceRows(field)


def refuse_array(value: Any, name: str) -> None:
    """UserError where a client method returns an array of numpy."""
    if isinstance(value, np.ndarray | np.generic):
        raise UserError(
            f"the client method {name} returns a numpy array where its clients' arrays are on a device: use f.xp in "
            "place of np, as in f.xp.sqrt(x)"
        )


def refuse_numpy(error: TypeError, name: str) -> None:
    """UserError where an error says that numpy was given a tensor of a GPU."""
    if "numpy" in str(error):
        raise UserError(
            f"the client method {name} gives arrays to numpy that are on a device: use f.xp in place of np, as in "
            f"f.xp.sqrt(x) ({error})"
        ) from error
