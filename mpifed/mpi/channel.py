"""The channel of requests and replies over MPI: rank 0 calls, the other ranks serve.

A request is one broadcast. All ranks expect the message that followed the last one the time before, and so know its
length and layout; a second broadcast describes any other message. Long arrays are sent apart (shared.py). Replies
travel up a tree of ranks or in slices (replies.py).
"""

import time
from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from mpifed.core.errors import RunError, UserError, failure_message
from mpifed.core.typing import Array
from mpifed.federation import sums
from mpifed.federation.host import Host
from mpifed.federation.request import HostReport, Reply, Request, entry_count, make_read_only
from mpifed.federation.sums import finish_reduction
from mpifed.federation.transport import RankTraffic
from mpifed.mpi.communicator import Communicator, wait_patiently
from mpifed.mpi.plan import FRONT, MessageForm, MessagePlan, MessagePlans, align_size, make_form, request_key
from mpifed.mpi.reduction_choice import AUTO, ReductionChoice
from mpifed.mpi.replies import Replies
from mpifed.mpi.shared import LongArrays

STOP = "stop"
LONG = 1e-3  # seconds: if ranks share cores and hosts compute for longer, waiting ranks sleep in between
ERROR = 1  # tag of messages with an error of a host

RowsOrNone = Array | None  # None: rank 0 sends none, and the others receive none


class Channel:
    """A channel between rank 0 and the hosts, on every rank of ``world``: requests down and replies up."""

    def __init__(self, world: Communicator, cuts: list[int], dtype: str, reduction: str = AUTO) -> None:
        self.comm = world.comm
        self.cuts = np.asarray(cuts)
        self.dtype = np.dtype(dtype)
        self.traffic = RankTraffic()
        self.patient = False
        # where ranks may survive others, none may wait for a dead one, neither in an Ibcast nor in a barrier of shared
        # memory
        self.shares_cores = not world.is_fault_tolerant() and world.shares_cores()
        self.plans = MessagePlans()
        self.memory = LongArrays(world.comm, sharing=not world.is_fault_tolerant())
        trees = [sums.find_subtrees(lo, hi, int(cuts[-1])) for lo, hi in pairwise(cuts)]
        self.tree = [node for tree in trees for node in tree]
        self.choice = ReductionChoice(world.nodes(), [[], *trees], reduction)

    def count_by_rank(self, ids: Array | None) -> list[int]:
        """Return the number of clients ``ids`` (None: all) on each rank; rank 0 has none."""
        return [0, *np.diff(self.cuts if ids is None else ids.searchsorted(self.cuts)).tolist()]

    def scatter(self, plan: MessagePlan, each: Array | None, ids: Array | None) -> Array:
        """Scatter the rows of ``each``; return those of this rank's clients among ``ids``."""
        dtype, shape = plan.each or ("", ())
        counts = self.count_by_rank(ids)
        rows = np.empty((counts[self.comm.rank], *shape), dtype)
        send = (
            None if each is None else (np.ascontiguousarray(each).reshape(-1), [c * entry_count(shape) for c in counts])
        )
        self.time_call(self.comm.Scatterv, send, rows.reshape(-1), 0)
        self.traffic.count(0 if each is None else each.nbytes, rows.nbytes, 1 if each is None else 0)
        return rows

    def replies(self, plan: MessagePlan, request: Request, own_layout: Any) -> tuple[Any, Replies]:
        """Return layout and transport of the replies to ``request``; ranks exchange shapes at its first time."""
        if plan.replies is None:
            # a host without a client in the request has no reply to measure, but must send rows of that length
            layouts = {one for one in self.comm.allgather(own_layout) if one is not None}
            if len(layouts) > 1:
                raise UserError(
                    f"replies to {request.method} have other names or shapes for some clients than for others"
                )
            layout = next(iter(layouts), None)
            rows = self.choice.vectors(request.reduce)
            if request.reduce == "rows":
                rows = self.count_by_rank(None if request.last else request.to)
            if layout is None:
                # no host had a client: the plan stays without a layout, which the next request finds
                return None, Replies(self, request.reduce, rows, 0)
            plan.replies = (
                layout,
                Replies(self, request.reduce, rows, sum(entry_count(shape) for shape in layout.shapes)),
            )
        return plan.replies

    def transfer(self, request: Request, replies: Replies, rows: RowsOrNone, report: HostReport | None) -> RowsOrNone:
        """Send the replies up and reduce them; return the result at rank 0."""
        last = partial(finish_reduction, request, tree=self.tree)
        if request.reduce != "rows":
            return replies.reduce(rows, report, last)
        counts = self.count_by_rank(None if request.last else request.to)
        return replies.gather_rows(rows, report, last, counts, by_column=request.then is not None)

    def time_call(self, call: Callable[..., Any], *args: Any) -> Any:
        """Return the result of a call of MPI, and add its seconds to the traffic."""
        started = time.perf_counter()
        result = call(*args)
        self.traffic.comm += time.perf_counter() - started
        return result

    def spread(self, plan: MessagePlan, arrays: list[Array] | None = None) -> None:
        """Send the long arrays of a request to all ranks."""
        sent, received = self.time_call(self.memory.spread, plan, arrays)
        self.traffic.count(sent, received, int(received > 0))
        self.traffic.shared = self.memory.shared

    def broadcast_message(self, message: Array) -> None:
        """Broadcast the next message; the one before said how hosts wait for it."""
        # all ranks have ``patient`` from the same message, because MPI does not match an Ibcast with a Bcast
        if self.patient:
            self.time_call(wait_patiently, self.comm.Ibcast(message, 0).Test)
        else:
            self.time_call(self.comm.Bcast, message, 0)

    def wait_for_hosts(self, patient: bool) -> None:
        """Wait for the slowest host without taking its core, before the blocking calls that carry replies."""
        self.patient = patient
        if patient:
            self.time_call(wait_patiently, self.comm.Ibarrier().Test)


class Server(Channel):
    """The channel at rank 0: the transport of a Federation."""

    report = HostReport()
    mpi = 0.0

    @property
    def reduction(self) -> str:
        """Description of the ways by which sums reached the server."""
        return self.choice.describe_ways()

    def send(self, request: Request) -> Reply:
        """Send a request to the hosts, and return their replies."""
        before = self.traffic.comm
        # collectives in the order of Service.serve (broadcast, scatter, barrier, shapes, replies); otherwise both hang
        plan = self.broadcast(request)
        if plan.each is not None:
            self.scatter(plan, request.each, request.to)
        self.wait_for_hosts(plan.patient)
        layout, replies = self.replies(plan, request, None)
        rows = self.transfer(request, replies, None, None)
        self.report = replies.report
        self.mpi = self.traffic.comm - before
        busy = max(self.report.slowest, self.report.evaluating)
        # hosts learn of it with the next message of this plan, because all ranks must change at once
        plan.patient = self.shares_cores and busy > LONG
        waited = min(self.mpi, busy)  # for the slowest host, while the server is in MPI
        self.traffic.comm -= waited
        self.traffic.wait += waited
        assert rows is not None
        return Reply(rows, layout)

    def broadcast(self, request: Request) -> MessagePlan:
        """Send the message of a request to all hosts, and return its plan."""
        plans, key = self.plans, request_key(request)
        expected, plan = plans.expected, plans.by_key.get(key)
        text = b""
        if plan is None:
            new_form = make_form(request)
            text = msgspec.msgpack.encode(new_form)
            plan = plans.make(new_form, plans.count)
            plan.patient = self.shares_cores
            plans.by_key[key] = plan
        long_arrays = plan.write(request)
        if plan is expected:
            self.broadcast_message(plan.message)
        else:
            # hosts are in a broadcast of the expected length, so this note has it too, and announces a second one
            note = np.zeros(len(expected.message), np.uint8)
            full = np.concatenate([np.frombuffer(text.ljust(align_size(len(text)), b" "), np.uint8), plan.message])
            FRONT.pack_into(note.data, 0, plan.number, len(full), len(text))
            self.broadcast_message(note)
            self.time_call(self.comm.Bcast, full, 0)
        if long_arrays:
            self.spread(plan, long_arrays)
        self.traffic.count(len(plan.message), 0)
        plans.follow(plan)
        return plan

    def host_error(self) -> Exception:
        """Return the error of the first host that failed in the last request."""
        # all are received, or one would be left for the next request; that of the lowest rank is raised in every run
        _, cls, text = min(self.comm.recv(tag=ERROR) for _ in range(int(self.report.failed)))
        return cls(text)

    def stop(self, collect: bool = True) -> None:
        """Release the hosts; with ``collect`` they report their traffic afterwards."""
        self.broadcast(Request(STOP, (collect,)))


class Service(Channel):
    """The channel at a rank above 0: a host that replies to requests."""

    def serve(self, host: Host) -> RankTraffic | None:
        """Reply to requests until the server says stop; return the traffic, or None if it will not be collected."""
        while True:
            before = self.traffic.comm
            plan, request = self.receive()
            self.traffic.wait += self.traffic.comm - before  # time until a request arrives is waiting
            self.traffic.comm = before
            if request.method == STOP:
                return self.traffic if request.args[0] else None
            if plan.each is not None:
                request.each = make_read_only(self.scatter(plan, None, request.to))
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
            except BaseException as mistake:  # this rank still takes part in the reduction, or others would wait
                error = mistake
                reply, report = host.error_reply(request)
            self.wait_for_hosts(plan.patient)
            try:
                _, replies = self.replies(plan, request, reply.layout)
            except UserError:
                continue  # rank 0 has raised it too, and sends stop
            rows = reply.rows.astype(replies.dtype, copy=False)
            if rows.shape[1] != replies.columns:  # no client of this host was called
                rows = np.full((len(rows), replies.columns), -np.inf if request.reduce == "max" else 0, replies.dtype)
            self.transfer(request, replies, rows, report)
            if error is not None:
                # after the replies, whose report tells rank 0 how many errors to receive
                cls = UserError if isinstance(error, UserError) else RunError
                self.comm.send((self.comm.rank, cls, failure_message(self.comm.rank, error)), 0, ERROR)

    def receive(self) -> tuple[MessagePlan, Request]:
        """Receive the next message from rank 0; return its plan and request."""
        plans = self.plans
        plan = plans.expected
        self.broadcast_message(plan.message)
        number, size, text = FRONT.unpack_from(plan.data)
        if size:
            full = np.empty(size, np.uint8)
            self.time_call(self.comm.Bcast, full, 0)
            if text:
                plans.make(msgspec.msgpack.decode(full[:text].data, type=MessageForm), number)
            plan = plans.by_number[number]
            plan.message[:] = full[align_size(text) :]
        if plan.long:
            self.spread(plan)
        self.traffic.count(0, len(plan.message), 1)
        plans.follow(plan)
        return plan, plan.read()
