"""How the replies to requests of one plan travel to rank 0, with the report of every host.

Short rows travel with the report in one message a rank. Long ones are reduced in slices of coordinates: every rank gets
its slice of all rows, reduces it, and sends the result on; so no rank receives more than its share.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import NUMBERS, SUMMED
from mpifed.mpi.plan import BIG

Finish = Callable[[Array], Array]  # rows (k, w) of all hosts -> (w,)


class Replies:
    """Replies of ``columns`` numbers of type ``dtype``, of which rank r sends ``rows[r]``."""

    def __init__(self, channel: Any, rows: list[int], columns: int, dtype: Any, plain: bool) -> None:
        self.comm, self.collective, self.traffic = channel.comm, channel.collective, channel.traffic
        self.rank, ranks = self.comm.rank, self.comm.size
        self.rows, self.columns, self.dtype, self.plain = rows, columns, np.dtype(dtype), plain
        self.long = max(rows) * columns * self.dtype.itemsize > BIG
        self.alone = sum(rows) == 1
        self.edges = np.linspace(0, columns, ranks + 1).astype(int)
        self.widths = np.diff(self.edges)
        self.reports = np.zeros((ranks, NUMBERS))
        size = columns * self.dtype.itemsize
        if self.long:
            return
        if plain:
            self.mine = np.zeros(columns + NUMBERS * ranks, dtype)
            self.every = np.empty_like(self.mine)
            self.reports = self.every[columns:].reshape(-1, NUMBERS)
            return
        sizes = [8 * NUMBERS + -(-k * size // 8) * 8 for k in rows]
        ends = np.cumsum(sizes)
        self.sizes = sizes
        self.offsets = (ends - sizes)[:, None] // 8 + np.arange(NUMBERS)
        self.mine = np.zeros(sizes[self.rank], np.uint8)
        self.part = self._rows(self.mine, rows[self.rank])
        self.every = np.zeros(ends[-1] if self.rank == 0 else 0, np.uint8)
        if self.rank == 0:
            self.parts = [
                row
                for end, length, k in zip(ends, sizes, rows, strict=True)
                for row in self._rows(self.every[end - length : end], k)
            ]

    @property
    def report(self) -> Array:
        """The report of all hosts together (NUMBERS,), at rank 0."""
        hosts = self.reports[1:]
        return np.concatenate([hosts[:, :SUMMED].sum(axis=0), hosts[:, SUMMED:].max(axis=0)])

    def reduce(self, rows: Array | None, report: Array, finish: Finish) -> Array | None:
        """At rank 0 what ``finish`` makes of the rows of all hosts (columns,); None on the others."""
        if self.plain and not self.long:
            return self._plain(rows, report)
        if not self.long:
            return self._inline(rows, report, finish)
        if self.alone:
            every = self.collect(rows, report, self.rows)
            return None if every is None else every[0]
        rows = np.empty((0, self.columns), self.dtype) if rows is None else np.ascontiguousarray(rows)
        return self._scatter(rows, report) if self.plain else self._slices(rows, report, finish)

    def collect(self, rows: Array | None, report: Array, counts: list[int]) -> Array | None:
        """At rank 0 the rows of all hosts (sum of counts, columns); None on the others."""
        self.gather(report)
        if not self.columns:
            return np.empty((sum(counts), 0), self.dtype) if self.rank == 0 else None
        every = np.empty((sum(counts), self.columns), self.dtype) if self.rank == 0 else None
        mine = np.empty(0, self.dtype) if rows is None else np.ascontiguousarray(rows).reshape(-1)
        self.collective("Gatherv", mine, None if every is None else (every, [k * self.columns for k in counts]), 0)
        self._count(mine.nbytes, 0 if every is None else every.nbytes)
        return every

    def gather(self, report: Array) -> None:
        """The reports of all hosts to rank 0."""
        self.collective("Gather", report, self.reports if self.rank == 0 else None, 0)
        self._count(report.nbytes, self.reports.nbytes)

    def _inline(self, rows: Array | None, report: Array, finish: Finish) -> Array | None:
        if rows is not None:
            self.mine[: 8 * NUMBERS].view(float)[:] = report
            self.part[...] = rows
        self.collective("Gatherv", self.mine, (self.every, self.sizes) if self.rank == 0 else None, 0)
        self._count(len(self.mine), len(self.every))
        if self.rank:
            return None
        self.reports = self.every.view(float)[self.offsets]
        return self.parts[0].copy() if self.alone else finish(self.parts)  # type: ignore[arg-type]

    def _plain(self, rows: Array | None, report: Array) -> Array | None:
        if rows is not None:
            self.mine[: self.columns] = rows[0]
            self.mine[self.columns + NUMBERS * self.rank :][:NUMBERS] = report
        self.collective("Reduce", self.mine, self.every if self.rank == 0 else None)
        self._count(self.mine.nbytes, self.every.nbytes)
        if self.rank:
            return None
        return self.every[: self.columns].copy()

    def _scatter(self, rows: Array, report: Array) -> Array | None:
        slice_ = np.empty(self.widths[self.rank], self.dtype)
        mine = rows[0] if len(rows) else np.zeros(self.columns, self.dtype)
        self.collective("Reduce_scatter", mine, slice_, self.widths)
        self._count(mine.nbytes, mine.nbytes)
        self.gather(report)
        return self._join(slice_)

    def _slices(self, rows: Array, report: Array, finish: Finish) -> Array | None:
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
        self.gather(report)
        return self._join(slice_)

    def _join(self, slice_: Array) -> Array | None:
        every = np.empty(self.columns, self.dtype) if self.rank == 0 else None
        self.collective("Gatherv", slice_, None if every is None else (every, self.widths), 0)
        self._count(slice_.nbytes, 0 if every is None else every.nbytes)
        return every

    def _rows(self, message: Array, k: int) -> Array:
        size = k * self.columns * self.dtype.itemsize
        return message[8 * NUMBERS : 8 * NUMBERS + size].view(self.dtype).reshape(k, self.columns)

    def _count(self, sent: int, received: int) -> None:
        self.traffic.count(sent if self.rank else 0, 0 if self.rank else received)
