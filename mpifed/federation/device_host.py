"""Where clients live on a device: samples and state are tensors there, and what travels is numpy's.

Only client methods know of the device: what they receive is moved there, and what they return comes back. Servers,
messages, sums, compressors, masks and checkpoints work as they do with clients in memory.
"""

from collections.abc import Sequence
from functools import partial
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from mpifed.core.arrays import is_tensor, on, to_numpy
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.data.blocks import Block
from mpifed.data.device_block import FEW, DeviceBlock, coarse, grouped
from mpifed.data.fill import SameSizeBlocks
from mpifed.federation.host import Answer, Host
from mpifed.federation.local import Local
from mpifed.federation.method import Method
from mpifed.federation.request import Collected, Request
from mpifed.federation.setup import Setup
from mpifed.federation.wire.stage import Visit

ROOM = 1 << 28  # bytes of samples that are computed on at a time, at most


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


class OnDevice:
    """A method whose client methods get tensors, and whose results come back to the host."""

    def __init__(self, method: Any) -> None:
        self._method = method

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._method, name)
        if callable(found):
            found = partial(self._call, found, name)
        return found

    def _call(self, method: Any, name: str, *args: Any) -> Any:
        """What a client method returns; where the first argument is no client, what any other method returns."""
        if not args or not isinstance(args[0], Local):
            return method(*args)
        f, *rest = args
        sent = tuple([moved(part, f.xp) for part in rest])
        try:
            result = method(f, *sent)
        except TypeError as error:
            refuse_numpy(error, name)
            raise
        known = {}
        for there, here in zip(sent[:1], rest[:1], strict=True):
            known = {id(tensor): field for tensor, field in zip(there, here, strict=True)} | {id(there): here}
        return back(result, known, name)


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
    """What a client method returned, as the host takes it: state as DeviceRows, everything else in memory.

    ``known``: id of a tensor, or of the state, -> what it was before, which the host knows by its identity.
    """
    if id(result) in known:
        return known[id(result)]
    if is_tensor(result):
        return to_numpy(result)
    if isinstance(result, dict):
        return {key: back(value, {}, name) for key, value in result.items()}
    if isinstance(result, tuple) and hasattr(result, "_fields"):
        return type(result)(*[known[id(field)] if id(field) in known else rows_of(field, name) for field in result])
    if isinstance(result, tuple):
        first, *rest = result
        return back(first, known, name), *[back(part, {}, name) for part in rest]
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


class DeviceHost(Host):
    """The same as Host with samples and state on a ``device``.

    All blocks of clients of one size have the same number of clients, ``room``: fewer are filled up by repeating the
    first, and what comes of these is dropped. Then no bit of a client's result depends on who else is called. It is
    about as many as a round with ``cohort`` clients of all m calls, of those sizes.
    """

    def __init__(self, setup: Setup, data: Dataset, lo: int, hi: int, device: Any, cohort: int) -> None:
        super().__init__(setup, data, lo, hi)
        self.device = device
        self.use(setup.algorithm)
        self.evaluation: Any = OnDevice(self.evaluation)
        counts = np.bincount([coarse(int(-(-d // 4) * 4)) for d in data.sizes])
        groups = []
        for D, alike in groupby(self.same_size, lambda group: coarse(group.blocks[0].b.shape[1])):
            share = -(-cohort * int(counts[D]) // setup.m)
            most = max(FEW, ROOM // max(1, D * data.n * self.dtype.itemsize))
            room = min(-(-share // FEW) * FEW, most)
            groups.append(self._grouped(list(alike), D, room))
        self.same_size = groups
        self.blocks = [block for group in groups for block in group.blocks]
        self.starts = np.cumsum([0, *map(len, self.blocks)])
        parts = [slice(a, b) for a, b in pairwise(self.starts.tolist())]
        self.whole = [(part, block, self.ids[part]) for part, block in zip(parts, self.blocks, strict=True)]
        self.edges = np.cumsum([0, *map(len, self.same_size)])

    def _grouped(self, alike: Sequence[SameSizeBlocks], D: int, room: int) -> SameSizeBlocks:
        """Groups of clients on the device, with their test samples."""
        group = grouped(alike, D, self.device, room, DeviceBlock)
        begin = 0
        for block in [block for same in alike for block in same.blocks]:
            for rows, tests in block.tests:
                self._add_tests(group, begin + rows, tests)
            begin += len(block)
        return group

    def _add_tests(self, group: SameSizeBlocks, positions: Array, tests: Block) -> None:
        """Give test samples to the blocks of the clients at ``positions`` of a group, rising."""
        whole = DeviceBlock.moved([tests], tests.b.shape[1], on(self.device))
        numbers = group.starts.searchsorted(positions, "right") - 1
        for k in np.unique(numbers).tolist():
            found = np.flatnonzero(numbers == k)
            own = whole.part(slice(int(found[0]), int(found[-1]) + 1))
            rows = positions[found] - group.starts[k]
            group.blocks[k].tests.append((rows, own))
            own.training = group.blocks[k], rows

    def use(self, method: Method) -> None:
        self.algorithm: Any = OnDevice(method)

    def join(self) -> None:
        super().join()
        self.state = type(self.state)(*map(self._rows, self.state))

    def restore(self, arrays: dict[str, Array]) -> None:
        super().restore(arrays)
        self.state = type(self.state)(*map(self._rows, self.state))

    def _rows(self, field: Array) -> DeviceRows:
        return DeviceRows(on(self.device).asarray(field))

    def _run(self, request: Request, answer: Answer) -> tuple[Collected, Array | None]:
        return super()._run(request, partial(filled, request.each is not None, answer))


def filled(each: bool, answer: Answer, visit: Visit, *args: Any) -> tuple[Any, Any]:
    """The new state and the reply of the clients of a visit, computed with as many clients as their block has room for.

    ``each``: the last argument has a row for each client.
    """
    f, picks, state = visit
    count, room = len(f), f.block.room  # type: ignore[attr-defined]
    if count == room or (not f.block.parts and f.block.place is None):
        return answer(visit, *args)
    rows = np.concatenate([np.arange(count), np.zeros(room - count, np.intp)])
    if each:
        args = (*args[:-1], args[-1][rows])
    slots = np.arange(picks.start, picks.stop) if isinstance(picks, slice) else picks
    more = Visit(f.take(rows), slots[rows], type(state)(*[field[rows] for field in state]))
    new, reply = answer(more, *args)
    if new is more.state:
        return state, first(reply, count)
    pairs = zip(state, more.state, new, strict=True)
    kept = type(state)(*[before if after is seen else after[:count] for before, seen, after in pairs])
    return kept, first(reply, count)


def first(reply: Any, count: int) -> Any:
    """The reply of the first ``count`` clients."""
    if isinstance(reply, dict):
        return {name: part[:count] for name, part in reply.items()}
    if isinstance(reply, tuple):
        return tuple([part[:count] for part in reply])
    return None if reply is None else reply[:count]
