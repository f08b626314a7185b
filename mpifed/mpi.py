"""MPI: rank 0 calls, the other ranks serve. The only importer of mpi4py.

A request is one broadcast: a head (what is called, the shapes of what follows), then the arrays. Both sides expect a
message to be as long as the one that followed the same predecessor last time; only when it is longer does the rest
come in a second broadcast. Replies are one gather, a message a rank, whose first bytes are the rank's seconds.
"""
from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import mpi4py
import numpy as np

from mpifed.component import UserError
from mpifed.data.clients import Array
from mpifed.federation import finish
from mpifed.host import Host, Reply, Request, width
from mpifed.message import Head, join, pack, unpack
from mpifed.sums import Node
from mpifed.versions import library

# World starts MPI, once it knows that launcher and library go together; before, a library may end the process
if "mpi4py.MPI" not in sys.modules:
    mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
from mpi4py import MPI

STOP = "stop"


class Traffic:
    """What this rank sent and received, and the seconds it took."""

    def __init__(self) -> None:
        self.calls = self.sent = self.received = 0
        self.comm = self.wait = 0.0

    def count(self, sent: int, received: int) -> None:
        self.calls += 1
        self.sent += sent
        self.received += received


class World:
    """The ranks of this run; a mismatch of launcher and MPI library is refused."""

    def __init__(self, announced: int | None = None, launcher: str = "") -> None:
        if launcher == "Open MPI" and launcher not in library():
            raise UserError(mismatch(announced))
        if not MPI.Is_initialized():
            with warnings.catch_warnings(action="ignore"):         # of a launcher that does not go with the library
                MPI.Init()
        self.comm = MPI.COMM_WORLD
        self.rank, self.size = self.comm.rank, self.comm.size
        self.library = library()
        if announced is not None and announced > 1 and self.size == 1:
            raise UserError(mismatch(announced))

    def share(self, value: Any) -> Any:
        """The value of rank 0, on every rank; for small settings, not for arrays."""
        return self.comm.bcast(value, 0)

    def agree(self, error: str | None) -> str | None:
        """The first rank's error, on every rank, or None where all is well."""
        return next((e for e in self.comm.allgather(error) if e is not None), None)

    def collect(self, value: Any) -> list[Any]:
        """The values of all ranks, at rank 0; for a few numbers, not for arrays."""
        return self.comm.gather(value, 0) or []

    def collect_rows(self, values: Array, counts: list[int]) -> Array:
        """The (c,) float64 arrays of all ranks one after the other, at rank 0; ``counts`` their lengths."""
        out = np.empty(sum(counts)) if self.rank == 0 else None
        self.comm.Gatherv(np.ascontiguousarray(values, float), (out, counts) if self.rank == 0 else None, 0)
        return np.zeros(0) if out is None else out

    def abort(self, code: int = 1) -> None:
        """End every rank at once."""
        sys.stdout.flush()
        sys.stderr.flush()
        self.comm.Abort(code)


class Channel:
    """Requests down and replies up between rank 0 and the hosts, on every rank of ``world``."""

    def __init__(self, world: World, cuts: list[int]) -> None:
        self.comm, self.world, self.cuts = world.comm, world, np.asarray(cuts)
        self.traffic = Traffic()
        self._expected: dict[str, int] = {}
        self._before = ""
        self._layouts: dict[tuple[str, ...], Any] = {}

    def broadcast(self, message: Array | None) -> Array:
        """Rank 0's message (bytes, its length in the first 8), on every rank."""
        size = self._expected.get(self._before, 1024)
        if message is None or len(message) < size:
            buffer = np.empty(size, np.uint8)
            if message is not None:
                buffer[: len(message)] = message
        else:
            buffer = message
        self._timed(self.comm.Bcast, buffer[:size])
        length = int(buffer[:8].view(np.int64)[0])
        if length > size:
            if message is None:
                buffer = np.concatenate([buffer, np.empty(length - size, np.uint8)])
            self._timed(self.comm.Bcast, buffer[size:length])
        self._expected[self._before] = length
        sent = length if self.comm.rank == 0 else 0
        self.traffic.count(sent, 0 if sent else length)
        return buffer

    def scatter(self, each: Array | None, ids: Array | None, head: Head) -> Array:
        """The rows of ``each`` of this rank's clients among ``ids``."""
        kind, shape = head.row
        counts = self.counts(ids)
        size = width(shape) * np.dtype(kind).itemsize
        mine = np.empty((counts[self.comm.rank], *shape), kind)
        send = (np.ascontiguousarray(each).view(np.uint8).ravel(), [c * size for c in counts]) if each is not None else None
        self._timed(self.comm.Scatterv, send, mine.view(np.uint8).ravel() if mine.size else np.empty(0, np.uint8), 0)
        self.traffic.count(sum(counts) * size if each is not None else 0, mine.nbytes)
        return mine

    def counts(self, ids: Array | None) -> list[int]:
        """How many of the clients ``ids`` (None: all) live on each rank; none on rank 0."""
        edges = self.cuts if ids is None else np.searchsorted(ids, self.cuts)
        return [0, *np.diff(edges).tolist()]

    def layout(self, key: tuple[str, ...], mine: Any) -> Any:
        """The shapes of a reply, which ranks tell each other when a method is called for the first time."""
        if self._layouts.get(key) is None:
            every = self._timed(self.comm.allgather, mine)
            self._layouts[key] = next((found for found in every if found is not None), None)
        return self._layouts[key]

    def gather(self, rows: Array | None, lengths: list[int], seconds: tuple[float, float]) -> tuple[Array, list[Array]]:
        """At rank 0: the seconds (ranks, 2) and the bytes of the rows of every rank, ``lengths`` bytes each."""
        head = np.array(seconds).view(np.uint8)
        mine = head if rows is None else np.concatenate([head, rows.view(np.uint8).ravel()])
        sizes = [16 + length for length in lengths]
        ends = np.cumsum(sizes)
        every = np.empty(ends[-1], np.uint8) if self.comm.rank == 0 else None
        self._timed(self.comm.Gatherv, mine, (every, sizes) if every is not None else None, 0)
        self.traffic.count(0 if every is not None else len(mine), 0 if every is None else len(every) - 16)
        parts = [] if every is None else [every[end - size : end] for end, size in zip(ends, sizes, strict=True)]
        return np.array([part[:16].view(float) for part in parts]), [part[16:] for part in parts]

    def reduce(self, row: Array | None, columns: int, dtype: Any, seconds: tuple[float, float]) -> tuple[Array, Array]:
        """At rank 0: the seconds (ranks, 2) and the plain MPI sum (columns,) of the rows of all hosts, in one reduction."""
        mine = np.zeros(columns + 2 * self.comm.size, dtype)
        mine[columns + 2 * self.comm.rank :][:2] = seconds
        if row is not None:
            mine[:columns] = row
        every = np.empty_like(mine)
        self._timed(self.comm.Reduce, mine, every if self.comm.rank == 0 else None, MPI.SUM, 0)
        self.traffic.count(mine.nbytes if self.comm.rank else 0, 0 if self.comm.rank else mine.nbytes)
        return every[columns:].reshape(-1, 2).astype(float), every[:columns]

    def _timed(self, function: Any, *args: Any) -> Any:
        started = time.perf_counter()
        result = function(*args)
        self.traffic.comm += time.perf_counter() - started
        return result


class Server(Channel):
    """Rank 0: the transport that a Federation sends requests through."""

    def __init__(self, world: World, cuts: list[int], trees: list[list[Node]], dtype: str) -> None:
        super().__init__(world, cuts)
        self.tree = [node for tree in trees for node in tree]
        self.rows_of = {"sum": [0, *map(len, trees)], "max": [0] + [1] * len(trees)}
        self.dtype = np.dtype(dtype)
        self.compute = self.evaluate = np.zeros(len(trees))
        self.mpi = 0.0

    def send(self, request: Request) -> Reply:
        """Send a request, and put together what the hosts reply."""
        before = self.traffic.comm
        head, arrays = pack(request)
        self.broadcast(join(head, arrays))
        self._before = request.method
        if head.each == "scattered":
            self.scatter(request.each, request.to, head)
        layout = self.layout(signature(request), None)
        columns = sum(width(shape) for shape in layout or ())
        if request.reduce == "plain sum":
            seconds, total = self.reduce(None, columns, self.dtype, (0.0, 0.0))
            every = total[None]
        else:
            rows = self.rows_of.get(request.reduce) or self.counts(request.to)
            seconds, parts = self.gather(None, [r * columns * self.dtype.itemsize for r in rows], (0.0, 0.0))
            every = np.concatenate([part.view(self.dtype) for part in parts]).reshape(sum(rows), columns)
        self.compute, self.evaluate = seconds[1:, 0], seconds[1:, 1]
        self.mpi = self.traffic.comm - before
        waited = min(self.mpi, float(seconds[1:].sum(axis=1).max()))    # for the slowest host
        self.traffic.comm -= waited
        self.traffic.wait += waited
        return finish(request, Reply(every, layout), self.tree)

    def stop(self) -> None:
        """Let the hosts go."""
        self.broadcast(join(pack(Request(STOP))[0], []))


def serve(world: World, cuts: list[int], host: Host) -> Traffic:
    """Ranks above 0: answer requests until the server says stop."""
    channel = Channel(world, cuts)
    while True:
        before = channel.traffic.comm
        message = channel.broadcast(None)
        channel.traffic.wait += channel.traffic.comm - before      # the time until a request comes is waiting
        channel.traffic.comm = before
        request, head = unpack(message)
        if request.method == STOP:
            return channel.traffic
        channel._before = request.method
        if head.each == "here" and request.each is not None:
            lo, hi = (host.lo, host.hi) if request.to is None else np.searchsorted(request.to, [host.lo, host.hi])
            request = request._replace(each=request.each[lo:hi])
        elif head.each == "scattered":
            request = request._replace(each=channel.scatter(None, request.to, head))
        reply = host.handle(request)
        layout = channel.layout(signature(request), reply.layout)
        columns = sum(width(shape) for shape in layout or ())
        rows = reply.rows if reply.rows.shape[1] == columns else np.zeros((len(reply.rows), columns), host.dtype)
        if request.reduce == "plain sum":
            channel.reduce(rows[0], columns, host.dtype, (host.compute, host.evaluate))
        else:
            channel.gather(np.ascontiguousarray(rows, host.dtype), [], (host.compute, host.evaluate))


def signature(request: Request) -> tuple[str, ...]:
    return request.method, request.reduce, request.last or ""


def mismatch(announced: int | None) -> str:
    """What to say when launcher and library do not go together."""
    return (f"the launcher started {announced} processes, but mpi4py uses {library()}, which knows nothing of it: start them "
            "with the mpirun (or srun --mpi=...) of that library, or set MPI4PY_LIBMPI")
