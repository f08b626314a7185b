"""Sums of many replies that are added up as they come, so that a host keeps a few of them and not one a client."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import Collected, Layout, width
from mpifed.federation.sums import Node, dense, finite, scattered

ROOM = 1 << 19  # bytes of replies that are added up in a few calls of numpy; where all have no more, they are kept


class Running(Collected):
    """The replies of clients ``ids``, rising, added up along ``tree`` with the bits of sums.subtotals; few ones kept.

    ``kept`` says whether ``rows`` has a row a client; otherwise ``subtotals`` has the sum of each subtree, and ``bad``
    is the position of the first client whose reply is not finite, or None.
    """

    def __init__(self, ids: Array, dtype: Any, tree: Sequence[Node]) -> None:
        super().__init__(len(ids), dtype, lend=True)
        self.ids, self.tree = ids, tree
        self.kept = True
        self.bad: int | None = None
        self.came = 0  # how many clients have replied
        self.node = 0  # the subtree that is being added up
        self.level = 0  # the clients of a small subtree of this level are added up at once …
        self.begin = self.end = 0  # … now those from ``begin`` on and before ``end``
        self.waiting: list[Array] = []  # their replies
        self.first = 0  # the first client of the last part
        self.parts: list[tuple[int, Array]] = []  # of the subtree: where each meets the one before, its sum

    def put(self, rows: slice | Array, parts: tuple[Array, ...], names: tuple[str, ...] = ()) -> None:
        """The replies of the next clients."""
        if self.layout is None or not self.layout.shapes:
            self._lay(parts, names)
        if self.kept:
            super().put(rows, parts, names)
            return
        block = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1, dtype=self.rows.dtype)
        own = self.ids[self.came : self.came + len(block)]
        a = 0
        while a < len(block):
            if own[a] >= self.end:
                self._next(int(own[a]))
            b = int(own.searchsorted(self.end))
            self.waiting.append(block[a:b])
            self.came += b - a
            a = b
        # what stays is copied: a row of a block keeps all of the block in memory
        self.parts = [(meets, row if row.base is None else row.copy()) for meets, row in self.parts]

    def close(self) -> Array:
        """The sums of the subtrees, all replies being there: (k, N)."""
        self._together()
        self._finish()
        self.subtotals += 0.0
        return self.subtotals

    def _lay(self, parts: tuple[Array, ...], names: tuple[str, ...]) -> None:
        """Decide from the first replies whether all are kept."""
        length = sum(width(part.shape[1:]) for part in parts)
        most = ROOM // max(1, length * self.rows.dtype.itemsize)
        self.kept = len(self.ids) <= max(1, most)
        if not self.kept:
            self.level = max(0, most.bit_length() - 1)
            self.layout = Layout(tuple([part.shape[1:] for part in parts]), names)
            self.rows = np.zeros((0, length), self.rows.dtype)
            self.subtotals = np.zeros((len(self.tree), length), self.rows.dtype)

    def _next(self, client: int) -> None:
        """Add up the replies that wait; from now on those of the small subtree of ``client`` do."""
        self._together()
        while client >= (end := self.tree[self.node][1] + 1 << self.tree[self.node][0]):
            self._finish()
            self.node += 1
        level, index = self.tree[self.node]
        self.begin = max(client >> self.level << self.level, index << level)
        self.end = min((client >> self.level) + 1 << self.level, end)

    def _together(self) -> None:
        """Make a part of the replies that wait."""
        if not self.waiting:
            return
        rows = self.waiting[0] if len(self.waiting) == 1 else np.concatenate(self.waiting)
        self.waiting = []
        ids = self.ids[self.came - len(rows) : self.came]
        row = dense(rows) if ids[-1] - self.begin < len(rows) else scattered(rows, ids)
        if self.bad is None and not finite(row):
            fine = np.isfinite(rows).all(axis=1)
            # the sum of finite numbers may overflow
            self.bad = None if fine.all() else self.came - len(rows) + int(np.argmin(fine))
        # clients come in rising order, so a stack of unfinished subtrees is as deep as the tree, whatever their number
        meets = (int(ids[0]) ^ self.first).bit_length() if self.parts else 0
        self.first = int(ids[0])
        # everything on the stack below the level at which this part meets the one before is complete
        self._merge(meets)
        self.parts.append((meets, row))

    def _finish(self) -> None:
        if self.parts:
            self._merge(1 << 62)
            self.subtotals[self.node] = self.parts.pop()[1]

    def _merge(self, meets: int) -> None:
        """Add up the parts that meet below a level."""
        while len(self.parts) > 1 and self.parts[-1][0] < meets:
            _, right = self.parts.pop()
            self.parts[-1][1][...] += right
