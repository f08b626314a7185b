"""Replies that climb a tree of ranks: each link carries one message, the report and the sums of the hosts below it."""

import struct
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.request import NUMBERS, HostReport, add_report
from mpifed.federation.transport import Traffic
from mpifed.mpi.plan import BIG
from mpifed.mpi.rank_trees import Route

# The report stands in front of the vectors, in the same message: a reduction then costs no second one. Seconds, faults
# and signals of all hosts are known as soon as the sum is.
FRONT = struct.Struct(f"={NUMBERS}d")
REPORT = FRONT.size
TAG = 2  # of these messages


class Climb:
    """The messages of this rank on a route, for vectors of ``columns`` numbers; their buffers are made once.

    ``add`` adds two vectors. A message of more than BIG bytes travels as two, the report and the vectors.
    """

    def __init__(self, comm: Any, traffic: Traffic, route: Route, columns: int, dtype: Any, add: Any = np.add) -> None:
        self.comm = comm
        self.traffic = traffic
        self.add = add
        self.columns = columns
        self.dtype = np.dtype(dtype)
        self.stop = route.stop(comm.rank)
        self.parent = route.parents[comm.rank]
        self.top = comm.rank == 0
        up = 0 if self.top else len(self.stop.sent)
        size = columns * self.dtype.itemsize
        # long vectors are not copied where nothing is added to them: they are sent from where they are, and the whole
        # sum of a single child is received where it is wanted
        self.lent = up * size > BIG and not self.stop.children
        self.whole = self.top and len(self.stop.children) == 1 and size > BIG
        # buffers live as long as the plan: MPI may read and write until Wait, and page faults of new memory would be in
        # the time of every message
        message, self.report, self.sent = self.buffer(0 if self.lent else up)
        self.message = cut(message, up * size)
        self.front = self.message[0].data
        self.children: list[tuple[int, list[Array], Array, list[tuple[int, int, int]]]] = []
        # Example: rank 1 has the sums of two subtrees, and gets one each of ranks 2 and 3. Vectors 0 and 1 are its own,
        # 2 and 3 come, 4 and 5 leave. The additions (1, 2, 2) and (2, 3, 5) make the second that leaves, right in the
        # message; the copy (0, 4) is the first, to which nothing was added
        self.received: list[Array] = []
        for (child, count), additions in zip(self.stop.children, self.stop.additions, strict=True):
            room, report, vectors = self.buffer(0 if self.whole else count)
            self.children.append((child, cut(room, count * size), report, additions))
            self.received.extend(vectors)
        counts = [count for _, count in self.stop.children]
        self.bytes = 0 if self.top else REPORT + up * size, len(counts) * REPORT + sum(counts) * size
        self.messages = sum(2 if count * size > BIG else 1 for count in counts)
        if self.top:
            # the server has no report of its own: those of the other children are added to that of the first, in the
            # buffer into which MPI receives it, so that every request starts afresh without being cleared
            self.report = self.children[0][2]

    def __call__(self, rows: Any, report: HostReport | None) -> Array | None:
        """At rank 0 the sum of the ``rows`` of all hosts (columns,); None on the others.

        At rank 0 ``self.report`` then is the report of all hosts together.
        """
        self.traffic.count(*self.bytes, self.messages)
        if report is None:
            # new in every call: the sum becomes the method's own array, and buffers are overwritten by the next request
            total = np.empty(self.columns, self.dtype)
            if self.whole:
                self.children[0][1][1:] = [total]
            self.receive([], [total])
            return total
        # before the children's reports are added to it
        FRONT.pack_into(self.front, 0, *report)
        if self.children:
            self.receive(rows, self.sent)
        elif self.lent:
            self.message[1:] = [rows]
        else:
            self.sent[...] = rows
        started = time.perf_counter()
        # one tag for both parts: MPI keeps the order of messages between two ranks. A blocking Send cannot hang here,
        # because a parent posts all its receives before it waits for any
        for part in self.message:
            self.comm.Send(part, self.parent, TAG)
        self.traffic.comm += time.perf_counter() - started
        return None

    def receive(self, rows: Iterable[Array], places: Iterable[Array]) -> None:
        """Receive from the children in turn, and put the sums with this rank's ``rows`` in their ``places``."""
        vectors = [*rows, *self.received, *places]
        # all are asked for at once, so that a child that is ready need not wait; they are added in the order of the
        # route whoever comes first, or the bits would depend on the time
        pending = [[self.comm.Irecv(part, child, TAG) for part in parts] for child, parts, _, _ in self.children]
        for requests, (_, _, report, additions) in zip(pending, self.children, strict=True):
            started = time.perf_counter()
            for request in requests:
                request.Wait()
            self.traffic.comm += time.perf_counter() - started
            if report is not self.report:
                add_report(self.report, report)
            for a, b, place in additions:
                self.add(vectors[a], vectors[b], out=vectors[place])
        # after all additions: what is sent on as it came lies in the children's buffers until then
        if not self.whole:
            for number, place in self.stop.copies:
                vectors[place][...] = vectors[number]

    def buffer(self, count: int) -> tuple[Array, Array, Array]:
        """Room for a message of ``count`` vectors: its bytes, the report in them, and the vectors (count, columns)."""
        room = np.zeros(REPORT + count * self.columns * self.dtype.itemsize, np.uint8)
        return room, room[:REPORT].view(float), room[REPORT:].view(self.dtype).reshape(count, self.columns)


def cut(room: Array, size: int) -> list[Array]:
    """The parts in which a message with vectors of ``size`` bytes travels.

    Long vectors travel on their own, so that they can come from any array and go into any.
    """
    return [room[:REPORT], room[REPORT:]] if size > BIG else [room]
