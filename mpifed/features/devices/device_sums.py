"""Replies on a device and their sums there, with the additions of ``sums`` in the same order."""

from typing import Any

import numpy as np

from mpifed.core.arrays import Namespace, to_numpy
from mpifed.core.typing import Array
from mpifed.features.devices.on_device import DeviceRows
from mpifed.federation.request import ReplyLayout, RowBuffer, entry_count
from mpifed.federation.sums import Subtree, sum_scattered


class DeviceRowBuffer(RowBuffer):
    """Replies of ``count`` clients as ``tensor`` (count, N) on a device, in client order."""

    def __init__(self, count: int, dtype: Any, xp: Namespace) -> None:
        super().__init__(count, dtype, lend=True)
        self.xp = xp
        self.tensor: Any = xp.asarray(self.rows)

    def put(self, rows: slice | Array, parts: tuple[Array, ...], names: tuple[str, ...] = ()) -> None:
        """Store the replies of one block in ``rows``."""
        flat = [self.move(part).reshape(len(part), -1) for part in parts]
        if self.layout is None or not self.layout.shapes:
            self.layout = ReplyLayout(tuple([part.shape[1:] for part in parts]), names)
            columns = sum(entry_count(shape) for shape in self.layout.shapes)
            if len(flat) == 1 and len(flat[0]) == len(self.tensor) and isinstance(rows, slice):
                self.tensor = flat[0]
                return
            self.tensor = self.tensor.new_empty((len(self.tensor), columns))
        column = 0
        for part in flat:
            self.tensor[rows, column : column + part.shape[1]] = part
            column += part.shape[1]

    def move(self, part: Any) -> Any:
        """Return a part of a reply on the device, in the type of messages."""
        return self.xp.asarray(part.rows if isinstance(part, DeviceRows) else part, dtype=self.tensor.dtype)


def sum_subtrees(rows: Any, ids: Array | None, lo: int, tree: list[Subtree]) -> Array:
    """Return the sums (k, N) of k subtrees over ``rows`` (c, N) of the clients ``ids``, rising; None: lo, lo+1 …"""
    total = np.zeros((len(tree), rows.shape[1]), to_numpy(rows[:0]).dtype)
    for k, (level, index) in enumerate(tree):
        start, stop = index << level, (index + 1) << level
        a, b = (start - lo, stop - lo) if ids is None else np.searchsorted(ids, [start, stop]).tolist()
        part = rows[a:b]
        if len(part):
            total[k] = to_numpy(sum_dense(part) if ids is None else sum_scattered(part, ids[a:b] - start))
    total += 0.0
    return total


def sum_dense(rows: Any) -> Any:
    """Return the tree sum of rows 0, 1, 2 …"""
    while len(rows) > 1:
        pairs = len(rows) // 2
        half = rows.new_empty(((len(rows) + 1) // 2, rows.shape[1]))
        half[:pairs] = rows[0 : 2 * pairs : 2] + rows[1 : 2 * pairs : 2]
        half[pairs:] = rows[2 * pairs :]
        rows = half
    return rows[0]
