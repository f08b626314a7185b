"""The transport of replies to rank 0, with the report of the hosts.

Sums climb a star or a tree of ranks, or are made in slices of coordinates: every rank gets its slice of all rows,
reduces it, and sends the result on, which balances the load. Rows are gathered.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import ANY_ORDER, MASKED, HostReport
from mpifed.federation.sums import tree_depth
from mpifed.federation.transport import RankTraffic
from mpifed.mpi.plan import BIG
from mpifed.mpi.rank_trees import TreeMessages
from mpifed.mpi.reduction_choice import SLICES, ReductionChoice

Finish = Callable[[Array], Array]  # rows (k, w) of all hosts -> (w,)


class Ways(Protocol):
    """The members of a channel that replies use."""

    comm: Any
    traffic: RankTraffic
    dtype: np.dtype[Any]
    choice: ReductionChoice

    def time_call(self, call: Callable[..., Any], *args: Any) -> Any: ...


class Replies:
    """The transport of replies of ``columns`` numbers, ``rows[r]`` from rank r; made by all ranks together."""

    def __init__(self, channel: Ways, reduce: str, rows: list[int], columns: int) -> None:
        self.comm = channel.comm
        self.time_call = channel.time_call
        self.traffic = channel.traffic
        self.rank = self.comm.rank
        self.plain = reduce in ANY_ORDER
        self.dtype = np.dtype(np.uint64) if reduce == MASKED else channel.dtype
        self.rows = rows
        self.columns = columns
        size = columns * self.dtype.itemsize
        self.long = max(rows) * size > BIG
        choice = channel.choice
        # one rank chooses for all, because two that took different ways would wait for each other for ever
        ways = (choice.way(reduce, size), choice.way("rows", 0)) if self.rank == 0 else None
        self.way, other = self.comm.bcast(ways, 0)
        if reduce != "rows":
            choice.longest[self.way] = max(columns, choice.longest.get(self.way, 0))
        self.buffers = [np.empty(0, self.dtype)] * 2  # for rows sent, and for rows received
        # rank 0 gets a slice too, although it has no clients: it would be idle otherwise
        self.edges = np.linspace(0, columns, self.comm.size + 1).astype(int)
        self.widths = np.diff(self.edges)
        if self.way == SLICES or reduce == "rows":  # the report alone
            self.tree = TreeMessages(self.comm, self.traffic, choice.route(other, "rows"), 0, self.dtype)
        else:
            add = np.maximum if reduce == "max" else np.add
            self.tree = TreeMessages(self.comm, self.traffic, choice.route(self.way, reduce), columns, self.dtype, add)

    @property
    def report(self) -> HostReport:
        """Return the report of all hosts together, at rank 0."""
        return HostReport._make(self.tree.report.tolist())

    def reduce(self, rows: Array | None, report: HostReport | None, finish: Finish) -> Array | None:
        """Reduce the rows of all hosts; return the result of ``finish`` (columns,) at rank 0, None on the others."""
        if self.way != SLICES:
            return self.tree(rows, report)
        return self._reduce_scatter(rows, report) if self.plain else self.reduce_slices(rows, report, finish, self.rows)

    def gather_rows(
        self, rows: Array | None, report: HostReport | None, finish: Finish, counts: list[int], by_column: bool
    ) -> Array | None:
        """Gather the rows of all hosts, ``counts[r]`` of rank r; return the result of ``finish`` at rank 0.

        With ``by_column``, ``finish`` treats columns independently, so that long rows are reduced in slices of columns.
        """
        if by_column and self.long:
            return self.reduce_slices(rows, report, finish, counts)
        all_rows = self.collect_rows(rows, report, counts)
        return None if all_rows is None else finish(all_rows)

    def collect_rows(self, rows: Array | None, report: HostReport | None, counts: list[int]) -> Array | None:
        """Gather the rows of all hosts; return them (sum of counts, columns) at rank 0, None on the others."""
        # reports first, and on every rank, even without rows: its parent waits for one
        self.tree((), report)
        if not self.columns:
            return np.empty((sum(counts), 0), self.dtype) if self.rank == 0 else None
        flat = np.empty(0, self.dtype) if rows is None else np.ascontiguousarray(rows).reshape(-1)
        return self._gather(flat, (sum(counts), self.columns), [k * self.columns for k in counts])

    def reduce_slices(
        self, rows: Array | None, report: HostReport | None, finish: Finish, counts: list[int]
    ) -> Array | None:
        """Reduce rows in slices of columns, ``counts[r]`` rows of rank r; return the result as ``reduce`` does."""
        self.tree((), report)
        rows = np.empty((0, self.columns), self.dtype) if rows is None else np.ascontiguousarray(rows)
        width = self.widths[self.rank]
        flat = rows.reshape(-1)
        if len(rows) > 1:
            # all rows of the first rank's slice, then of the second's …: Alltoallv needs contiguous parts
            flat = self.get_buffer(0, rows.size)
            for a, b in pairwise(self.edges):
                flat[len(rows) * a : len(rows) * b].reshape(len(rows), b - a)[...] = rows[:, a:b]
        # rows arrive by rank, so in client order, and ``finish`` adds them along the tree
        all_rows = self.get_buffer(1, sum(counts) * width).reshape(sum(counts), width)
        self.time_call(self.comm.Alltoallv, (flat, len(rows) * self.widths), (all_rows, np.array(counts) * width))
        others = sum(1 for rank, k in enumerate(counts) if k and rank != self.rank)
        self.traffic.count(flat.nbytes, all_rows.nbytes, others)
        return self._gather(finish(all_rows), self.columns, self.widths)

    def get_buffer(self, number: int, size: int) -> Array:
        """Return a buffer of ``size`` numbers, kept for later requests because new memory would cost page faults."""
        if len(self.buffers[number]) < size:
            self.buffers[number] = np.empty(size, self.dtype)
        return self.buffers[number][:size]

    def _reduce_scatter(self, rows: Array | None, report: HostReport | None) -> Array | None:
        """Reduce rows in slices by MPI, whose order of additions depends on the number of ranks."""
        self.tree((), report)
        slice_ = np.empty(self.widths[self.rank], self.dtype)
        mine = np.zeros(self.columns, self.dtype) if rows is None else np.ascontiguousarray(rows[0])
        self.time_call(self.comm.Reduce_scatter, mine, slice_, self.widths)
        self.traffic.count(mine.nbytes, mine.nbytes, tree_depth(self.comm.size))
        return self._gather(slice_, self.columns, self.widths)

    def _gather(self, mine: Array, shape: int | tuple[int, int], lengths: Any) -> Array | None:
        """Gather the numbers of all ranks, ``lengths[r]`` of rank r; return them as an array of ``shape`` at rank 0."""
        if self.rank:
            self.time_call(self.comm.Gatherv, mine, None, 0)
            self.traffic.count(mine.nbytes, 0)
            return None
        result = np.empty(shape, self.dtype)
        self.time_call(self.comm.Gatherv, mine, (result, lengths), 0)
        self.traffic.count(0, result.nbytes - mine.nbytes, self.comm.size - 1)
        return result
