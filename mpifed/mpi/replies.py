"""How the replies to requests of one plan travel to rank 0, with the report of the hosts.

Sums climb a star or a tree of ranks, or are made in slices of coordinates: every rank gets its slice of all rows,
reduces it, and sends the result on; so no rank receives more than its share. Rows are gathered.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import ANY_ORDER, MASKED, HostReport
from mpifed.federation.sums import depth
from mpifed.federation.transport import Traffic
from mpifed.mpi.plan import BIG
from mpifed.mpi.reduction_choice import SLICES, Choice
from mpifed.mpi.tree_messages import Climb

Finish = Callable[[Array], Array]  # rows (k, w) of all hosts -> (w,)


class Ways(Protocol):
    """What is asked of the channel: how this rank reaches the others."""

    comm: Any
    traffic: Traffic
    dtype: np.dtype[Any]
    choice: Choice

    def timed(self, call: Callable[..., Any], *args: Any) -> Any: ...


class Replies:
    """Replies of ``columns`` numbers, of which rank r sends ``rows[r]``; all ranks make them together."""

    def __init__(self, channel: Ways, reduce: str, rows: list[int], columns: int) -> None:
        self.comm = channel.comm
        self.timed = channel.timed
        self.traffic = channel.traffic
        self.rank = self.comm.rank
        self.plain = reduce in ANY_ORDER
        self.dtype = np.dtype(np.uint64) if reduce == MASKED else channel.dtype
        self.rows = rows
        self.columns = columns
        size = columns * self.dtype.itemsize
        self.long = max(rows) * size > BIG
        choice = channel.choice
        # one rank chooses for all: two that took different ways would wait for each other for ever
        ways = (choice.way(reduce, size), choice.way("rows", 0)) if self.rank == 0 else None
        self.way, other = self.comm.bcast(ways, 0)
        if reduce != "rows":
            choice.longest[self.way] = max(columns, choice.longest.get(self.way, 0))
        self.rooms = [np.empty(0, self.dtype)] * 2  # of rows that leave, and of those that come
        # rank 0 has a slice too, though no clients: it would wait idly otherwise
        self.edges = np.linspace(0, columns, self.comm.size + 1).astype(int)
        self.widths = np.diff(self.edges)
        if self.way == SLICES or reduce == "rows":  # the report alone
            self.climb = Climb(self.comm, self.traffic, choice.route(other, "rows"), 0, self.dtype)
        else:
            add = np.maximum if reduce == "max" else np.add
            self.climb = Climb(self.comm, self.traffic, choice.route(self.way, reduce), columns, self.dtype, add)

    @property
    def report(self) -> HostReport:
        """At rank 0 the report of all hosts together."""
        return HostReport._make(self.climb.report.tolist())

    def reduce(self, rows: Array | None, report: HostReport | None, finish: Finish) -> Array | None:
        """At rank 0 what ``finish`` makes of the rows of all hosts (columns,); None on the others."""
        if self.way != SLICES:
            return self.climb(rows, report)
        return self._scatter(rows, report) if self.plain else self.slices(rows, report, finish, self.rows)

    def bring(
        self, rows: Array | None, report: HostReport | None, finish: Finish, counts: list[int], by_column: bool
    ) -> Array | None:
        """At rank 0 what ``finish`` makes of the rows of all hosts, of which rank r has ``counts[r]``.

        ``by_column`` it can be made in slices of columns, and is where rows are long.
        """
        if by_column and self.long:
            return self.slices(rows, report, finish, counts)
        every = self.collect(rows, report, counts)
        return None if every is None else finish(every)

    def collect(self, rows: Array | None, report: HostReport | None, counts: list[int]) -> Array | None:
        """At rank 0 the rows of all hosts (sum of counts, columns); None on the others."""
        # reports first, and on every rank: who skipped them where it has no rows would leave its parent waiting
        self.climb((), report)
        if not self.columns:
            return np.empty((sum(counts), 0), self.dtype) if self.rank == 0 else None
        mine = np.empty(0, self.dtype) if rows is None else np.ascontiguousarray(rows).reshape(-1)
        return self._gather(mine, (sum(counts), self.columns), [k * self.columns for k in counts])

    def slices(self, rows: Array | None, report: HostReport | None, finish: Finish, counts: list[int]) -> Array | None:
        """The same as ``reduce``, in slices of columns; rank r has ``counts[r]`` rows."""
        self.climb((), report)
        rows = np.empty((0, self.columns), self.dtype) if rows is None else np.ascontiguousarray(rows)
        width = self.widths[self.rank]
        mine = rows.reshape(-1)
        if len(rows) > 1:
            # all rows of the first rank's slice, then all of the second's …: Alltoallv takes one stretch for each rank
            mine = self.room(0, rows.size)
            for a, b in pairwise(self.edges):
                mine[len(rows) * a : len(rows) * b].reshape(len(rows), b - a)[...] = rows[:, a:b]
        # rows arrive by rank, so in client order: ``finish`` adds them up along the same tree as one process does
        every = self.room(1, sum(counts) * width).reshape(sum(counts), width)
        self.timed(self.comm.Alltoallv, (mine, len(rows) * self.widths), (every, np.array(counts) * width))
        others = sum(1 for rank, k in enumerate(counts) if k and rank != self.rank)
        self.traffic.count(mine.nbytes, every.nbytes, others)
        return self._gather(finish(every), self.columns, self.widths)

    def room(self, number: int, size: int) -> Array:
        """Memory for ``size`` numbers, kept for the next request: new memory would cost each of them page faults."""
        if len(self.rooms[number]) < size:
            self.rooms[number] = np.empty(size, self.dtype)
        return self.rooms[number][:size]

    def _scatter(self, rows: Array | None, report: HostReport | None) -> Array | None:
        # MPI adds up in an order of its own, which depends on the number of ranks: for sums in any order alone
        self.climb((), report)
        slice_ = np.empty(self.widths[self.rank], self.dtype)
        mine = np.zeros(self.columns, self.dtype) if rows is None else np.ascontiguousarray(rows[0])
        self.timed(self.comm.Reduce_scatter, mine, slice_, self.widths)
        self.traffic.count(mine.nbytes, mine.nbytes, depth(self.comm.size))
        return self._gather(slice_, self.columns, self.widths)

    def _gather(self, mine: Array, shape: int | tuple[int, int], lengths: Any) -> Array | None:
        """At rank 0 the numbers of all ranks one after the other, of rank r so many as ``lengths[r]``."""
        if self.rank:
            self.timed(self.comm.Gatherv, mine, None, 0)
            self.traffic.count(mine.nbytes, 0)
            return None
        every = np.empty(shape, self.dtype)
        self.timed(self.comm.Gatherv, mine, (every, lengths), 0)
        self.traffic.count(0, every.nbytes - mine.nbytes, self.comm.size - 1)
        return every
