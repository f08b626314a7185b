"""How the replies to requests of one plan travel to rank 0, with the seconds that every host spent.

Short rows ride with the seconds in one message a rank. Long ones are reduced in slices of coordinates: every rank gets its
slice of all rows, reduces it, and sends the result on; so no rank receives more than its share.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import SPENT
from mpifed.mpi.plan import BIG

Finish = Callable[[Array], Array]  # rows (k, w) of all hosts -> (w,)


class Answer:
    """Replies of ``columns`` numbers of type ``dtype``, of which rank r sends ``rows[r]``."""

    def __init__(self, channel: Any, rows: list[int], columns: int, dtype: Any, plain: bool) -> None:
        self.comm, self.collective, self.traffic = channel.comm, channel.collective, channel.traffic
        self.rank, ranks = self.comm.rank, self.comm.size
        self.rows, self.columns, self.dtype, self.plain = rows, columns, np.dtype(dtype), plain
        self.long = max(rows) * columns * self.dtype.itemsize > BIG
        self.alone = sum(rows) == 1
        self.edges = np.linspace(0, columns, ranks + 1).astype(int)
        self.widths = np.diff(self.edges)
        self.seconds = np.zeros((ranks, SPENT))
        size = columns * self.dtype.itemsize
        if self.long:
            return
        if plain:
            self.mine = np.zeros(columns + SPENT * ranks, dtype)
            self.every = np.empty_like(self.mine)
            self.seconds = self.every[columns:].reshape(-1, SPENT)
            return
        sizes = [8 * SPENT + -(-k * size // 8) * 8 for k in rows]
        ends = np.cumsum(sizes)
        self.sizes = sizes
        self.places = (ends - sizes)[:, None] // 8 + np.arange(SPENT)
        self.mine = np.zeros(sizes[self.rank], np.uint8)
        self.part = self._rows(self.mine, rows[self.rank])
        self.every = np.zeros(ends[-1] if self.rank == 0 else 0, np.uint8)
        if self.rank == 0:
            self.parts = [
                row
                for end, length, k in zip(ends, sizes, rows, strict=True)
                for row in self._rows(self.every[end - length : end], k)
            ]

    def reduce(self, rows: Array | None, spent: Array, finish: Finish) -> Array | None:
        """At rank 0 what ``finish`` makes of the rows of all hosts (columns,); None on the other ranks."""
        if self.plain and not self.long:
            return self._plain(rows, spent)
        if not self.long:
            return self._inline(rows, spent, finish)
        if self.alone:
            every = self.collect(rows, spent, self.rows)
            return None if every is None else every[0]
        rows = np.empty((0, self.columns), self.dtype) if rows is None else np.ascontiguousarray(rows)
        return self._scatter(rows, spent) if self.plain else self._slices(rows, spent, finish)

    def collect(self, rows: Array | None, spent: Array, counts: list[int]) -> Array | None:
        """At rank 0 the rows of all hosts (sum of counts, columns); None on the other ranks."""
        self.report(spent)
        if not self.columns:
            return np.empty((sum(counts), 0), self.dtype) if self.rank == 0 else None
        every = np.empty((sum(counts), self.columns), self.dtype) if self.rank == 0 else None
        mine = np.empty(0, self.dtype) if rows is None else np.ascontiguousarray(rows).reshape(-1)
        self.collective("Gatherv", mine, None if every is None else (every, [k * self.columns for k in counts]), 0)
        self._count(mine.nbytes, 0 if every is None else every.nbytes)
        return every

    def report(self, spent: Array) -> None:
        """The seconds of all hosts to rank 0."""
        self.collective("Gather", spent, self.seconds if self.rank == 0 else None, 0)
        self._count(spent.nbytes, self.seconds.nbytes)

    def _inline(self, rows: Array | None, spent: Array, finish: Finish) -> Array | None:
        if rows is not None:
            self.mine[: 8 * SPENT].view(float)[:] = spent
            self.part[...] = rows
        self.collective("Gatherv", self.mine, (self.every, self.sizes) if self.rank == 0 else None, 0)
        self._count(len(self.mine), len(self.every))
        if self.rank:
            return None
        self.seconds = self.every.view(float)[self.places]
        return self.parts[0].copy() if self.alone else finish(self.parts)  # type: ignore[arg-type]

    def _plain(self, rows: Array | None, spent: Array) -> Array | None:
        if rows is not None:
            self.mine[: self.columns] = rows[0]
            self.mine[self.columns + SPENT * self.rank :][:SPENT] = spent
        self.collective("Reduce", self.mine, self.every if self.rank == 0 else None)
        self._count(self.mine.nbytes, self.every.nbytes)
        if self.rank:
            return None
        return self.every[: self.columns].copy()

    def _scatter(self, rows: Array, spent: Array) -> Array | None:
        slice_ = np.empty(self.widths[self.rank], self.dtype)
        mine = rows[0] if len(rows) else np.zeros(self.columns, self.dtype)
        self.collective("Reduce_scatter", mine, slice_, self.widths)
        self._count(mine.nbytes, mine.nbytes)
        self.report(spent)
        return self._join(slice_)

    def _slices(self, rows: Array, spent: Array, finish: Finish) -> Array | None:
        width = self.widths[self.rank]
        mine = (
            rows.reshape(-1)
            if len(rows) <= 1
            else np.concatenate([rows[:, a:b].reshape(-1) for a, b in pairwise(self.edges)])
        )
        every = np.empty((sum(self.rows), width), self.dtype)
        self.collective("Alltoallv", (mine, len(rows) * self.widths), (every, np.array(self.rows) * width))
        self._count(mine.nbytes, every.nbytes)
        slice_ = finish(every)
        self.report(spent)
        return self._join(slice_)

    def _join(self, slice_: Array) -> Array | None:
        every = np.empty(self.columns, self.dtype) if self.rank == 0 else None
        self.collective("Gatherv", slice_, None if every is None else (every, self.widths), 0)
        self._count(slice_.nbytes, 0 if every is None else every.nbytes)
        return every

    def _rows(self, message: Array, k: int) -> Array:
        size = k * self.columns * self.dtype.itemsize
        return message[8 * SPENT : 8 * SPENT + size].view(self.dtype).reshape(k, self.columns)

    def _count(self, sent: int, received: int) -> None:
        self.traffic.count(sent if self.rank else 0, 0 if self.rank else received)
