"""Requests and replies over MPI: rank 0 calls, the other ranks serve.

A request is one broadcast. All ranks expect the message that followed the last one the time before, so they know its
length and its layout; only when another comes does a second broadcast say what it is. Long arrays follow on their own
(shared.py). Replies travel up a tree of ranks or in slices (replies.py).
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from mpifed.core.errors import RunError, UserError, failure
from mpifed.core.typing import Array
from mpifed.federation import sums
from mpifed.federation.host import Host
from mpifed.federation.request import HostReport, Reply, Request, protected, width
from mpifed.federation.sums import finish
from mpifed.federation.transport import Traffic
from mpifed.mpi.communicator import Communicator, patiently
from mpifed.mpi.plan import FRONT, Form, Plan, Plans, aligned, form, kind
from mpifed.mpi.reduction_choice import AUTO, Choice
from mpifed.mpi.replies import Replies
from mpifed.mpi.shared import LongArrays

STOP = "stop"
LONG = 1e-3  # seconds: where ranks share cores and hosts compute so long, waiting ranks take naps
COMPLAINT = 1  # tag of the errors of hosts

Rows = Array | None  # None: rank 0 has none of its own, and the others get none


class Channel:
    """Requests down and replies up between rank 0 and the hosts, on every rank of ``world``."""

    def __init__(self, world: Communicator, cuts: list[int], dtype: str, reduction: str = AUTO) -> None:
        self.comm = world.comm
        self.cuts = np.asarray(cuts)
        self.dtype = np.dtype(dtype)
        self.traffic = Traffic()
        self.patient = False
        # where ranks survive others, none may wait for a dead one: neither in an Ibcast nor in shared memory, whose
        # barriers hold the ranks that live on
        self.crowded = not world.survives() and world.crowded()
        self.plans = Plans()
        self.memory = LongArrays(world.comm, sharing=not world.survives())
        trees = [sums.nodes(lo, hi, int(cuts[-1])) for lo, hi in pairwise(cuts)]
        self.tree = [node for tree in trees for node in tree]
        self.choice = Choice(world.nodes(), [[], *trees], reduction)

    def counts(self, ids: Array | None) -> list[int]:
        """How many of the clients ``ids`` (None: all) live on each rank; none on rank 0."""
        return [0, *np.diff(self.cuts if ids is None else ids.searchsorted(self.cuts)).tolist()]

    def scatter(self, plan: Plan, each: Array | None, ids: Array | None) -> Array:
        """The rows of ``each`` of this rank's clients among ``ids``."""
        dtype, shape = plan.each or ("", ())
        counts = self.counts(ids)
        mine = np.empty((counts[self.comm.rank], *shape), dtype)
        send = None if each is None else (np.ascontiguousarray(each).reshape(-1), [c * width(shape) for c in counts])
        self.timed(self.comm.Scatterv, send, mine.reshape(-1), 0)
        self.traffic.count(0 if each is None else each.nbytes, mine.nbytes, 1 if each is None else 0)
        return mine

    def replies(self, plan: Plan, request: Request, mine: Any) -> tuple[Any, Replies]:
        """How replies to ``request`` travel; ranks tell each other their shapes when it comes for the first time."""
        if plan.replies is None:
            # a host with no client in the request has no reply to measure, but sends rows of their length
            layouts = {found for found in self.comm.allgather(mine) if found is not None}
            if len(layouts) > 1:
                raise UserError(
                    f"replies to {request.method} have other names or shapes for some clients than for others"
                )
            layout = next(iter(layouts), None)
            rows = self.choice.vectors(request.reduce)
            if request.reduce == "rows":
                rows = self.counts(None if request.last else request.to)
            if layout is None:
                # no host had a client: the plan stays without replies, so that the next request finds their shapes
                return None, Replies(self, request.reduce, rows, 0)
            plan.replies = layout, Replies(self, request.reduce, rows, sum(width(shape) for shape in layout.shapes))
        return plan.replies

    def transfer(self, request: Request, replies: Replies, rows: Rows, report: HostReport | None) -> Rows:
        """Replies up: at rank 0 what is left of them when the ranks have done their part of the reduction."""
        last = partial(finish, request, tree=self.tree)
        if request.reduce != "rows":
            return replies.reduce(rows, report, last)
        counts = self.counts(None if request.last else request.to)
        return replies.bring(rows, report, last, counts, by_column=request.then is not None)

    def timed(self, call: Callable[..., Any], *args: Any) -> Any:
        """What a call of MPI returns, on this rank's clock."""
        started = time.perf_counter()
        found = call(*args)
        self.traffic.comm += time.perf_counter() - started
        return found

    def spread(self, plan: Plan, arrays: list[Array] | None = None) -> None:
        """Bring the long arrays of a request to all ranks."""
        sent, received = self.timed(self.memory.spread, plan, arrays)
        self.traffic.count(sent, received, int(received > 0))
        self.traffic.shared = self.memory.shared

    def announce(self, message: Array) -> None:
        """Broadcast the message that hosts wait for; the one before said how they wait."""
        # all ranks took ``patient`` from the same message: MPI does not match an Ibcast with a Bcast of another rank
        if self.patient:
            self.timed(patiently, self.comm.Ibcast(message, 0).Test)
        else:
            self.timed(self.comm.Bcast, message, 0)

    def meet(self, patient: bool) -> None:
        """Before replies travel, which takes many blocking calls: wait for the slowest host without taking its core."""
        self.patient = patient
        if patient:
            self.timed(patiently, self.comm.Ibarrier().Test)


class Server(Channel):
    """Rank 0: the transport that a Federation sends requests through."""

    report = HostReport()
    mpi = 0.0

    @property
    def reduction(self) -> str:
        """How sums reached the server."""
        return self.choice.used()

    def send(self, request: Request) -> Reply:
        """Send a request, and put together what the hosts reply."""
        before = self.traffic.comm
        # collectives in the order of Service.serve: broadcast, scatter, barrier, shapes, replies; otherwise both hang
        plan = self.broadcast(request)
        if plan.each is not None:
            self.scatter(plan, request.each, request.to)
        self.meet(plan.patient)
        layout, replies = self.replies(plan, request, None)
        rows = self.transfer(request, replies, None, None)
        self.report = replies.report
        self.mpi = self.traffic.comm - before
        busy = max(self.report.slowest, self.report.evaluating)
        # it takes effect with the next message of this plan, which tells the hosts: none may change its mind alone
        plan.patient = self.crowded and busy > LONG
        waited = min(self.mpi, busy)  # for the slowest host, which computes while the server is in MPI
        self.traffic.comm -= waited
        self.traffic.wait += waited
        assert rows is not None
        return Reply(rows, layout)

    def broadcast(self, request: Request) -> Plan:
        """Send the message of a request to all hosts; its plan."""
        plans, key = self.plans, kind(request)
        expected, plan = plans.expected, plans.by_kind.get(key)
        text = b""
        if plan is None:
            made = form(request)
            text = msgspec.msgpack.encode(made)
            plan = plans.make(made, plans.count)
            plan.patient = self.crowded
            plans.by_kind[key] = plan
        apart = plan.write(request)
        if plan is expected:
            self.announce(plan.message)
        else:
            # hosts are in a broadcast of the expected length: so has this note, which tells that of the second one
            note = np.zeros(len(expected.message), np.uint8)
            whole = np.concatenate([np.frombuffer(text.ljust(aligned(len(text)), b" "), np.uint8), plan.message])
            FRONT.pack_into(note.data, 0, plan.number, len(whole), len(text))
            self.announce(note)
            self.timed(self.comm.Bcast, whole, 0)
        if apart:
            self.spread(plan, apart)
        self.traffic.count(len(plan.message), 0)
        plans.follow(plan)
        return plan

    def complaint(self) -> Exception:
        """The error of the first of the hosts that failed in the last request."""
        # all are received, or one would be left over for the next request; the lowest rank's is the same in every run
        _, kind, text = min(self.comm.recv(tag=COMPLAINT) for _ in range(int(self.report.failed)))
        return kind(text)

    def stop(self, collect: bool = True) -> None:
        """Let the hosts go; with ``collect`` they will be asked what they did."""
        self.broadcast(Request(STOP, (collect,)))


class Service(Channel):
    """The ranks above 0: hosts that reply to requests."""

    def serve(self, host: Host) -> Traffic | None:
        """Reply to requests until the server says stop; None where it will not ask what this rank did."""
        while True:
            before = self.traffic.comm
            plan, request = self.receive()
            self.traffic.wait += self.traffic.comm - before  # the time until a request comes is waiting
            self.traffic.comm = before
            if request.method == STOP:
                return self.traffic if request.args[0] else None
            if plan.each is not None:
                request.each = protected(self.scatter(plan, None, request.to))
            elif request.each is not None:
                lo, hi = (host.lo, host.hi) if request.to is None else request.to.searchsorted([host.lo, host.hi])
                request.each = request.each[lo:hi]
            if plan.form.then is not None:
                request.then = host.then(request, plan.form.then)
            error = None
            try:
                reply, report = host.handle(request)
            except KeyboardInterrupt:
                raise
            except BaseException as mistake:  # it takes part in the reduction all the same, or the others would wait
                error = mistake
                reply, report = host.excuse(request)
            self.meet(plan.patient)
            try:
                _, replies = self.replies(plan, request, reply.layout)
            except UserError:
                continue  # rank 0 has raised it too, and says stop
            rows = reply.rows.astype(replies.dtype, copy=False)
            if rows.shape[1] != replies.columns:  # no client of this host was called
                rows = np.full((len(rows), replies.columns), -np.inf if request.reduce == "max" else 0, replies.dtype)
            self.transfer(request, replies, rows, report)
            if error is not None:
                # after the replies, whose report tells rank 0 how many complaints to receive
                kind = UserError if isinstance(error, UserError) else RunError
                self.comm.send((self.comm.rank, kind, failure(self.comm.rank, error)), 0, COMPLAINT)

    def receive(self) -> tuple[Plan, Request]:
        """The next message from rank 0."""
        plans = self.plans
        plan = plans.expected
        self.announce(plan.message)
        number, more, text = FRONT.unpack_from(plan.data)
        if more:
            whole = np.empty(more, np.uint8)
            self.timed(self.comm.Bcast, whole, 0)
            if text:
                plans.make(msgspec.msgpack.decode(whole[:text].data, type=Form), number)
            plan = plans.numbered[number]
            plan.message[:] = whole[aligned(text) :]
        if plan.long:
            self.spread(plan)
        self.traffic.count(0, len(plan.message), 1)
        plans.follow(plan)
        return plan, plan.read()
