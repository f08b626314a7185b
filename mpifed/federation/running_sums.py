"""Sums of long replies that are added up as they come, so that a host keeps a few of them and not one a client."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import Collected, Layout, width
from mpifed.federation.sums import Node, finite

LONG = 1 << 12  # numbers of a reply from which on the work for each row is little beside its additions


class Running(Collected):
    """The replies of clients ``ids``, rising, added up along ``tree`` with the bits of sums.subtotals; short ones kept.

    ``kept`` says whether ``rows`` has a row a client; otherwise ``subtotals`` has the sum of each subtree, and ``bad``
    is the position of the first client whose reply is not finite, or None.
    """

    def __init__(self, ids: Array, dtype: Any, tree: Sequence[Node]) -> None:
        super().__init__(len(ids), dtype, lend=True)
        self.clients, self.tree = ids, tree
        self.kept = True
        self.bad: int | None = None
        self.node = self.next = 0  # the subtree that is being added up, and the position of the next client
        self.parts: list[tuple[int, Array]] = []  # of it: the level at which each part meets the one before, its sum

    def put(self, rows: slice | Array, parts: tuple[Array, ...], names: tuple[str, ...] = ()) -> None:
        """The replies of the next clients."""
        if self.layout is None or not self.layout.shapes:
            length = sum(width(part.shape[1:]) for part in parts)
            # short rows are kept and added up in a few calls of numpy; long ones would take the memory of all clients
            self.kept = length < LONG or len(self.clients) < 2
            if not self.kept:
                self.ids = self.clients.tolist()
                self.ends = [(index + 1) << level for level, index in self.tree]
                self.layout = Layout(tuple([part.shape[1:] for part in parts]), names)
                self.rows = np.zeros((0, length), self.rows.dtype)
                self.subtotals = np.zeros((len(self.tree), length), self.rows.dtype)
        if self.kept:
            super().put(rows, parts, names)
            return
        block = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1, dtype=self.rows.dtype)
        if self.bad is None and not finite(block):
            self.bad = self.next + int(np.argmin(np.isfinite(block).all(axis=1)))
        # clients come in rising order, so a stack of unfinished subtrees is as deep as the tree, whatever their number
        for row in block:
            self._add(row)
        # what stays is copied: a row of a block keeps all of the block in memory
        self.parts = [(meets, row if row.base is None else row.copy()) for meets, row in self.parts]

    def close(self) -> Array:
        """The sums of the subtrees, all replies being there: (k, N)."""
        self._finish()
        self.subtotals += 0.0
        return self.subtotals

    def _add(self, row: Array) -> None:
        client = self.ids[self.next]
        while client >= self.ends[self.node]:
            self._finish()
            self.node += 1
        # the level at which this client meets the one before: everything below it on the stack is complete
        meets = (client ^ self.ids[self.next - 1]).bit_length() if self.parts else 0
        self._merge(meets)
        self.parts.append((meets, row))
        self.next += 1

    def _finish(self) -> None:
        if self.parts:
            self._merge(1 << 62)
            self.subtotals[self.node] = self.parts.pop()[1]

    def _merge(self, meets: int) -> None:
        """Add up the parts that meet below a level."""
        while len(self.parts) > 1 and self.parts[-1][0] < meets:
            _, right = self.parts.pop()
            self.parts[-1][1][...] += right
