"""The server's calls of client methods: requests, their cost, and the error where one fails."""

from collections.abc import Callable
from typing import Any, Protocol, TypedDict, Unpack, cast, overload

import numpy as np

from mpifed.core.errors import RunError, UserError
from mpifed.core.typing import Array
from mpifed.federation.ids import match_arrived, require_rows, restore_order, sort_clients
from mpifed.federation.ledger import Ledger
from mpifed.federation.method import Args, Called, CalledWithRow, ClientMethod, Row
from mpifed.federation.request import FOR_THE_RECORD, Reply, Request, unpack_reply
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import RunSpec
from mpifed.federation.sums import divide_sum
from mpifed.federation.traits import divergence_advice
from mpifed.federation.transform import WEIGHTED, MessageCost, Transform
from mpifed.federation.transport import Transport


class CallOptions(TypedDict, total=False):
    """Keywords that few calls need.

    ``charge``: false for what the server has already; true charges messages before round one too. ``bits`` of one
    client's compressed reply, and ``down`` of the compressed message from which each client makes its arrays.
    ``weights`` (c,) multiply the uploads that arrive. ``averaged``: the sum is for a mean.
    """

    charge: bool | None
    bits: int | None
    down: int | None
    weights: Array | None
    averaged: bool


class CallVerb(Protocol):
    """The signature of ``call``, ``sum`` and ``mean`` for type checkers: ``args`` are those of the client method."""

    @overload
    def __call__(self, *, of: Array | None, last: str | None = None, **options: Unpack[CallOptions]) -> Any: ...
    @overload
    def __call__(
        self,
        method: Called[*Args],
        *args: *Args,
        to: Array | None = None,
        last: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Any: ...
    @overload
    def __call__(
        self,
        method: CalledWithRow[*Args, Row],
        *args: *Args,
        each: Row,
        to: Array | None = None,
        last: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Any: ...


def check_arguments(method: Callable[..., Any]) -> CallVerb:
    """Return a method of a server as it is, with the signature that type checkers compare calls with."""
    return cast(CallVerb, method)


class ClientCaller:
    """The part of a server that calls client methods, of all m clients or of some, and charges them to ``ledger``."""

    def __init__(
        self, transport: Transport, setup: RunSpec, schedule: Schedule | None = None, reproducible: bool = True
    ) -> None:
        self.m, self.dtype = setup.m, setup.start.dtype
        self.schedule = Schedule(setup.m) if schedule is None else schedule
        self.transforms: list[Transform] = []  # of messages; empty in a plain run
        self.ledger = Ledger()
        self.round = self.calls = 0
        self.slowest = self.computing = self.mpi = 0.0  # seconds of the round: slowest hosts, all hosts, in MPI
        self._transport, self.setup = transport, setup
        self._sum = "sum" if reproducible else "plain sum"
        self.count = setup.m  # number of replies in the last reply, by which ``mean`` divides
        self._arrived_clients: tuple[Array | None] | None = None  # what ``arrivals`` returned, until it is asked for

    @property
    def selected(self) -> Array | None:
        """Clients that take part in the round; None: all."""
        return self.schedule.selected

    @property
    def times_selected(self) -> Array:
        """Number of times that each client has taken part: (m,)."""
        return self.schedule.times_selected

    @check_arguments
    def call(
        self,
        method: ClientMethod | None = None,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        of: Array | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Call a client method on the clients ``to`` (None: all); return a row for each, in the order of ``to``.

        ``to`` are numbers of clients, each once, in any order, or a mask (m,). Row i of ``each`` goes to client to[i]
        alone. Without a method: return the uploads of the clients ``of``, those that ``arrivals`` returned.
        """
        if method is None:
            return self._collect_uploads("rows", of, None, options)
        return self._ask(*self._prepare(Request(method.__name__, args, to, each), options))

    @check_arguments
    def sum(
        self,
        method: ClientMethod | None = None,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        of: Array | None = None,
        last: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Call a client method like ``call``, and return the sum of the replies.

        With ``last``: of the field of that name over all clients, called or not, each as of its last arrived upload.
        """
        if method is None:
            return self._collect_uploads(self._sum, of, last, options)
        return self._ask(*self._prepare(Request(method.__name__, args, to, each, self._sum, last), options))

    @check_arguments
    def mean(
        self,
        method: ClientMethod | None = None,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        of: Array | None = None,
        last: str | None = None,
        **options: Unpack[CallOptions],
    ) -> Any:
        """Call a client method like ``sum``, and return the sum divided by the number of clients in it."""
        total = cast(Any, self.sum)(method, *args, to=to, each=each, of=of, last=last, averaged=True, **options)
        count = self.m if last is not None else self.count
        return tuple([divide_sum(t, count) for t in total]) if isinstance(total, tuple) else divide_sum(total, count)

    def solve(
        self,
        method: Called[*Args],
        *args: *Args,
        last: str,
        then: Callable[[Array, *Args], Array],
        to: Array | None = None,
    ) -> Array:
        """Run ``method``, then apply ``then(rows, *args)``, (m, n) -> (n,), to the field ``last`` of all clients.

        ``then`` must treat each column on its own: long rows are spread over the ranks by column.
        """
        return self._ask(Request(method.__name__, args, to, last=last, then=then))

    def max(self, method: Called[*Args], *args: *Args, to: Array | None = None) -> Any:
        """Call a client method like ``call``, and return the elementwise maximum of the replies."""
        return self._ask(Request(method.__name__, args, to, reduce="max"))

    @overload
    def send(self, method: Called[*Args], *args: *Args, to: Array | None = None, bits: int | None = None) -> None: ...
    @overload
    def send(
        self,
        method: CalledWithRow[*Args, Row],
        *args: *Args,
        each: Row,
        to: Array | None = None,
        bits: int | None = None,
    ) -> None: ...
    def send(  # type: ignore[misc]  # mypy does not see that Any takes *Args
        self,
        method: ClientMethod,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        bits: int | None = None,
    ) -> None:
        """Start a client method on the clients ``to`` (None: all); ``arrivals`` returns whose uploads are there.

        Nothing is computed before an upload is asked for: ``call``, ``sum`` and ``mean`` without a method, of=arrived.
        In an asynchronous run arrays reach the client method as rows (c, …), for each client has begun from its own,
        and numbers as numbers; ``each`` must be None.
        """
        request = Request(method.__name__, args, to, each, key=(self.round, self.calls))
        if to is not self.schedule.selected:
            sort_clients(request, self.m)
        cost = MessageCost(bits=bits)
        # without a simulation, sending and asking for uploads are one request, so no key is used up here
        if self.schedule.send(request, cost):
            self.calls += 1
            if self.round > 0:
                self.ledger.charge(request, request.count(self.m), 0, cost)

    def arrivals(self) -> Array | None:
        """Return the clients whose uploads are there, rising, or None for all: those that ``send`` went to.

        In an asynchronous run return the first to arrive; the simulated time advances to the last of them.
        Their uploads must be asked for, once: only then have they finished what they began. A round may send and wait
        several times, and its clients arrive several times.
        """
        arrived = self.schedule.arrivals()
        self._arrived_clients = (arrived,)
        return arrived

    @property
    def staleness(self) -> Array:
        """Age in rounds of each upload that arrived last: (c,) whole numbers, in the order of ``arrivals``."""
        return self.schedule.ages

    def _prepare(self, request: Request, options: CallOptions) -> tuple[Request, MessageCost]:
        """Return a request and the cost of its messages."""
        cost = MessageCost(options.get("charge"), options.get("bits"), averaged=options.get("averaged", False))
        if (down := options.get("down")) is not None:
            cost.down = down, request.count(self.m)
        return request, cost

    def _collect_uploads(self, reduce: str, of: Array | None, last: str | None, options: CallOptions) -> Any:
        """Return arrived uploads of the clients ``of``; run client methods that have not run yet."""
        if self._arrived_clients is None:
            raise UserError("uploads are asked for without a client method: fed.send and fed.arrivals must come before")
        order = None
        weights = options.get("weights")
        if of is not self._arrived_clients[0] and of is not None:
            of, weights, order = match_arrived(of, weights, self._arrived_clients[0], self.m)
        # once only: a second request for these uploads would compute them again, with other random numbers
        self._arrived_clients = None
        missing, request, cost = self.schedule.uploads(of)
        # all clients that still have to compute do so in one request, so that ranks are busy at the same time
        if missing is not None:
            missing.key = (self.round, self.calls)  # not counted, so that clients' random numbers stay
            self._send(missing, MessageCost())
        request.reduce = reduce
        request.last = last
        cost.charge = options.get("charge")
        cost.averaged = options.get("averaged", False)
        if weights is not None:
            request.transforms = {WEIGHTED: weights}
            request.to = np.arange(self.m) if request.to is None else request.to
        uploads = self._ask(request, cost)
        return uploads if order is None or reduce != "rows" else restore_order(uploads, order)

    def _send(self, request: Request, cost: MessageCost) -> Reply:
        """Send a request through the transforms to the hosts, and return their reply."""
        self.schedule.check(request)
        for transform in self.transforms:
            transform.begin(request, cost)
        reply, report = self._transport.send(request), self._transport.report
        if report.failed:
            raise self._transport.host_error()
        # the smallest client number of all ranks is reported as m − number, because reports keep the largest
        if report.fault and not (self.setup.records_nonfinite and request.request_type in FOR_THE_RECORD):
            quantity = "loss or gradient" if request.request_type in FOR_THE_RECORD else "reply"
            raise RunError(
                f"the {quantity} of client {self.m - int(report.fault)} is not finite in round {self.round}, method "
                f"{request.method}: the iterates diverge or the data do, so {divergence_advice(self.setup.algorithm)}"
            )
        if request.request_type not in FOR_THE_RECORD:
            self.slowest += report.slowest
            self.computing += report.computing
            self.mpi += self._transport.mpi
        return reply

    def _ask(self, request: Request, cost: MessageCost | None = None) -> Any:
        """Send a request, charge it, and return the unpacked reply."""
        cost = cost or MessageCost()
        order = None
        # the schedule's own array is in order, and an identity test is cheaper than looking at every number
        if request.to is not None and request.to is not self.schedule.selected:
            order = sort_clients(request, self.m)
        self.count = self.m if request.to is None else len(request.to)
        if request.each is not None and (type(request.each) is not np.ndarray or len(request.each) != self.count):
            require_rows(request, self.count)
        request.key = (self.round, self.calls)
        self.calls += 1
        reply = self._send(request, cost)
        # round 0 is the start: messages by which clients and server agree beforehand belong to no round
        charged = self.round > 0 if cost.charge is None else cost.charge
        if charged and request.request_type not in FOR_THE_RECORD:
            for transform in self.transforms:
                transform.charge(request, reply, self.count, cost)
            self.ledger.charge(request, self.count, reply.rows.shape[-1] * self.dtype.itemsize, cost)
        # what clients encoded last is decoded first
        for transform in reversed(self.transforms):
            transform.decode(request, reply)
        self.count = reply.count or self.count
        # reduced replies have no rows to put in order
        return (
            unpack_reply(reply) if order is None or reply.rows.ndim < 2 else restore_order(unpack_reply(reply), order)
        )
