"""Messages up a tree of ranks: each has the report and the sums of all hosts below its sender."""

import struct
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import NUMBERS, HostReport, add_report
from mpifed.federation.transport import RankTraffic
from mpifed.mpi.plan import BIG
from mpifed.mpi.rank_trees import Route

# The report is in front of the vectors, in the same message, so that it costs no second one, and seconds, faults and
# signals of all hosts are known together with the sum.
FRONT = struct.Struct(f"={NUMBERS}d")
REPORT = FRONT.size
TAG = 2  # MPI's tag of these messages


class TreeMessages:
    """The messages of this rank on a route, for vectors of ``columns`` numbers, in buffers that are made once.

    ``add`` adds two vectors. A message of more than BIG bytes travels as two, the report and the vectors.
    """

    def __init__(
        self, comm: Any, traffic: RankTraffic, route: Route, columns: int, dtype: Any, add: Any = np.add
    ) -> None:
        self.comm = comm
        self.traffic = traffic
        self.add = add
        self.columns = columns
        self.dtype = np.dtype(dtype)
        self.task = route.task(comm.rank)
        self.parent = route.parents[comm.rank]
        self.top = comm.rank == 0
        up = 0 if self.top else len(self.task.sent)
        size = columns * self.dtype.itemsize
        # long vectors to which nothing is added are not copied: they are sent from their own memory, and the sum of a
        # single child is received in its final memory
        self.sends_rows = up * size > BIG and not self.task.children
        self.receives_sum = self.top and len(self.task.children) == 1 and size > BIG
        # buffers live as long as the plan, because new memory would cost every message page faults
        message, self.report, self.sent = self.buffer(0 if self.sends_rows else up)
        self.message = split_message(message, up * size)
        self.front = self.message[0].data
        self.children: list[tuple[int, list[Array], Array, list[tuple[int, int, int]]]] = []
        # Example: rank 1 has the sums of two subtrees and receives one each from ranks 2 and 3. Vectors 0 and 1 are its
        # own, 2 and 3 are received, 4 and 5 are sent. The additions (1, 2, 2) and (2, 3, 5) make vector 5, and the copy
        # (0, 4) vector 4, to which nothing is added
        self.received: list[Array] = []
        for (child, count), additions in zip(self.task.children, self.task.additions, strict=True):
            message, report, vectors = self.buffer(0 if self.receives_sum else count)
            self.children.append((child, split_message(message, count * size), report, additions))
            self.received.extend(vectors)
        counts = [count for _, count in self.task.children]
        self.bytes = 0 if self.top else REPORT + up * size, len(counts) * REPORT + sum(counts) * size
        self.messages = sum(2 if count * size > BIG else 1 for count in counts)
        if self.top:
            # the server has no report of its own: others are added to the first child's, in its receive buffer, which
            # each request overwrites
            self.report = self.children[0][2]

    def __call__(self, rows: Any, report: HostReport | None) -> Array | None:
        """Add up the ``rows`` of all hosts; return the sum (columns,) at rank 0, None on the others.

        At rank 0 ``self.report`` is afterwards the report of all hosts together.
        """
        self.traffic.count(*self.bytes, self.messages)
        if report is None:
            # a new array, because the sum becomes the method's own, and the next request overwrites buffers
            total = np.empty(self.columns, self.dtype)
            if self.receives_sum:
                self.children[0][1][1:] = [total]
            self.receive([], [total])
            return total
        # packed before the children's reports are added
        FRONT.pack_into(self.front, 0, *report)
        if self.children:
            self.receive(rows, self.sent)
        elif self.sends_rows:
            self.message[1:] = [rows]
        else:
            self.sent[...] = rows
        started = time.perf_counter()
        # MPI keeps the order of parts with one tag. A blocking Send cannot hang here, because a parent posts all its
        # receives before it waits for any
        for part in self.message:
            self.comm.Send(part, self.parent, TAG)
        self.traffic.comm += time.perf_counter() - started
        return None

    def receive(self, rows: Iterable[Array], places: Iterable[Array]) -> None:
        """Receive from the children in turn, add this rank's ``rows``, and write the sums to ``places``."""
        vectors = [*rows, *self.received, *places]
        # all receives are posted at once, so that no ready child waits; additions follow the order of the route, or
        # bits would depend on arrival times
        pending = [[self.comm.Irecv(part, child, TAG) for part in parts] for child, parts, _, _ in self.children]
        for requests, (_, _, report, additions) in zip(pending, self.children, strict=True):
            started = time.perf_counter()
            for request in requests:
                request.Wait()
            self.traffic.comm += time.perf_counter() - started
            if report is not self.report:
                add_report(self.report, report)
            for a, b, target in additions:
                self.add(vectors[a], vectors[b], out=vectors[target])
        # after all additions, until which unchanged vectors stay in the children's buffers
        if not self.receives_sum:
            for number, target in self.task.copies:
                vectors[target][...] = vectors[number]

    def buffer(self, count: int) -> tuple[Array, Array, Array]:
        """Make a buffer for ``count`` vectors; return its bytes, and views of report and vectors (count, columns)."""
        message = np.zeros(REPORT + count * self.columns * self.dtype.itemsize, np.uint8)
        return message, message[:REPORT].view(float), message[REPORT:].view(self.dtype).reshape(count, self.columns)


def split_message(room: Array, size: int) -> list[Array]:
    """Split a message with vectors of ``size`` bytes into the parts in which it is sent.

    Long vectors are sent apart from the report, so that they may be in any array.
    """
    return [room[:REPORT], room[REPORT:]] if size > BIG else [room]
