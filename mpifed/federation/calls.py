"""How the server calls client methods: requests, what they cost, and what is wrong where one fails."""

from collections.abc import Callable
from typing import Any, TypedDict, Unpack

import numpy as np

from mpifed.core.errors import RunError, UserError
from mpifed.core.typing import Array
from mpifed.federation.ids import arranged, in_order, there, with_rows
from mpifed.federation.ledger import Ledger
from mpifed.federation.request import FOR_THE_RECORD, Reply, Request, unpack
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import Setup
from mpifed.federation.stage import WEIGHTED, Postage, ServerStage
from mpifed.federation.sums import divided
from mpifed.federation.traits import steering
from mpifed.federation.transport import Transport

ClientMethod = Callable[..., Any]


class Rare(TypedDict, total=False):
    """What few calls need.

    ``charge``: false for what the server has already; true charges what travels before round one too. ``bits`` of one
    client's reply, where it is compressed, and ``down`` of the message that each client makes its arrays from, where
    that is compressed. ``weights`` (c,), which the uploads that arrive are multiplied with.
    ``averaged``: the sum is for a mean.
    """

    charge: bool | None
    bits: int | None
    down: int | None
    weights: Array | None
    averaged: bool


class Calls:
    """Calls of client methods, of all m clients or of some; ``ledger`` charges what travels."""

    def __init__(
        self, transport: Transport, setup: Setup, schedule: Schedule | None = None, reproducible: bool = True
    ) -> None:
        self.m, self.dtype = setup.m, setup.start.dtype
        self.schedule = Schedule(setup.m) if schedule is None else schedule
        self.stages: list[ServerStage] = [*self.schedule.stages]  # a list that is empty is not walked
        self.ledger = Ledger()
        self.round = self.calls = 0
        self.slowest = self.computing = self.mpi = 0.0  # seconds of the round: slowest hosts, all hosts, in MPI
        self._transport, self.setup = transport, setup
        self._sum = "sum" if reproducible else "plain sum"
        self.unfailing = False  # whether numbers of the record that are not finite are recorded, and do not end the run
        self.count = setup.m  # how many clients the last request called; 1 where a stage has made a mean of replies
        self._there: tuple[Array | None] | None = None  # whose uploads ``arrivals`` said may be asked for

    @property
    def selected(self) -> Array | None:
        """The clients that take part in the round; None: all."""
        return self.schedule.selected

    @property
    def times_selected(self) -> Array:
        """How often each client has taken part: (m,)."""
        return self.schedule.times_selected

    def call(
        self,
        method: ClientMethod | None = None,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        of: Array | None = None,
        **rare: Unpack[Rare],
    ) -> Any:
        """Call a client method on ``to`` (None: all); their replies, a row a client in the order of ``to``.

        ``to`` are numbers of clients, each once, in any order, or a mask (m,). Row i of ``each`` goes to client to[i]
        alone. Without a method: what the clients ``of``, those that ``arrivals`` returned, have uploaded.
        """
        if method is None:
            return self._arrived("rows", of, None, rare)
        return self._ask(*self._posted(Request(method.__name__, args, to, each), rare))

    def sum(
        self,
        method: ClientMethod | None = None,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        of: Array | None = None,
        last: str | None = None,
        **rare: Unpack[Rare],
    ) -> Any:
        """The same, with the replies added up on their way.

        With ``last`` every client's field of that name is added up instead, also of those not called: their last
        upload that has arrived.
        """
        if method is None:
            return self._arrived(self._sum, of, last, rare)
        return self._ask(*self._posted(Request(method.__name__, args, to, each, self._sum, last), rare))

    def mean(
        self,
        method: ClientMethod | None = None,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        of: Array | None = None,
        last: str | None = None,
        **rare: Unpack[Rare],
    ) -> Any:
        """The sum over the number of clients added up."""
        rare["averaged"] = True
        total = self.sum(method, *args, to=to, each=each, of=of, last=last, **rare)
        count = self.m if last is not None else self.count
        return tuple([divided(t, count) for t in total]) if isinstance(total, tuple) else divided(total, count)

    def solve(
        self, method: ClientMethod, *args: Any, last: str, then: Callable[..., Array], to: Array | None = None
    ) -> Array:
        """Run ``method``, then apply ``then(rows, *args)``, (m, n) -> (n,), to the field ``last`` of all clients.

        ``then`` must treat each column on its own: long rows are spread over the ranks by column.
        """
        return self._ask(Request(method.__name__, args, to, last=last, then=then))

    def max(self, method: ClientMethod, *args: Any, to: Array | None = None) -> Any:
        """The elementwise largest of the replies."""
        return self._ask(Request(method.__name__, args, to, reduce="max"))

    def send(
        self,
        method: ClientMethod,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        bits: int | None = None,
    ) -> None:
        """Have the clients ``to`` (None: all) begin a client method; ``arrivals`` tells whose uploads are there.

        Nothing is computed before an upload is asked for: ``call``, ``sum`` and ``mean`` without a method, of=arrived.
        In an asynchronous run arrays reach the client method as rows (c, …), for each client has begun from its own,
        and numbers as numbers; ``each`` must be None.
        """
        request = Request(method.__name__, args, to, each, key=(self.round, self.calls))
        if to is not self.schedule.selected:
            arranged(request, self.m)
        postage = Postage(bits=bits)
        # where nothing is simulated, sending and asking for uploads are one request: no key is used up before it
        if self.schedule.send(request, postage):
            self.calls += 1
            if self.round > 0:
                self.ledger.charge(request, request.count(self.m), 0, postage)

    def arrivals(self) -> Array | None:
        """The clients whose uploads are there, rising, or None for all: all that ``send`` went to.

        In an asynchronous run the first to arrive ([asynchronous]); the simulated time goes on to the last of them.
        Their uploads must be asked for, once: only then have they finished what they began. A round may send and wait
        several times, and its clients arrive several times.
        """
        arrived = self.schedule.arrivals()
        self._there = (arrived,)
        return arrived

    @property
    def staleness(self) -> Array:
        """How many rounds old the uploads are that arrived last: (c,) whole numbers, in the order of ``arrivals``."""
        return self.schedule.ages

    def _posted(self, request: Request, rare: Rare) -> tuple[Request, Postage]:
        """A request and what its messages cost."""
        postage = Postage(rare.get("charge"), rare.get("bits"), averaged=rare.get("averaged", False))
        if (down := rare.get("down")) is not None:
            postage.down = down, request.count(self.m)
        return request, postage

    def _arrived(self, reduce: str, of: Array | None, last: str | None, rare: Rare) -> Any:
        """The uploads of the clients ``of``, which have arrived; those that are lacking are computed before."""
        if self._there is None:
            raise UserError("uploads are asked for without a client method: fed.send and fed.arrivals must come before")
        places = None
        weights = rare.get("weights")
        if of is not self._there[0] and of is not None:
            of, weights, places = there(of, weights, self._there[0], self.m)
        # once only: a second request for the same uploads would compute them again, with other random numbers
        self._there = None
        lacking, request, postage = self.schedule.uploads(of)
        # all clients under way compute in one request, so that ranks are busy together and not one after the other
        if lacking is not None:
            lacking.key = (self.round, self.calls)  # no call of its own: what clients draw does not depend on it
            self._pass(lacking, Postage())
        request.reduce = reduce
        request.last = last
        postage.charge = rare.get("charge")
        postage.averaged = rare.get("averaged", False)
        if weights is not None:
            request.stages = {WEIGHTED: weights}
            request.to = np.arange(self.m) if request.to is None else request.to
        found = self._ask(request, postage)
        return found if places is None or reduce != "rows" else in_order(found, places)

    def _pass(self, request: Request, postage: Postage) -> Reply:
        """Send a request through the stages to the hosts; their reply."""
        for stage in self.stages:
            stage.down(request, postage)
        reply, report = self._transport.send(request), self._transport.report
        if report.failed:
            raise self._transport.complaint()
        # the smallest client number of all ranks is reported as m − number, because reports keep the largest
        if report.fault and not (self.unfailing and request.verb in FOR_THE_RECORD):
            what = "loss or gradient" if request.verb in FOR_THE_RECORD else "reply"
            raise RunError(
                f"the {what} of client {self.m - int(report.fault)} is not finite in round {self.round}, method "
                f"{request.method}: the iterates diverge or the data do, so {steering(self.setup.algorithm)}"
            )
        if request.verb not in FOR_THE_RECORD:
            self.slowest += report.slowest
            self.computing += report.computing
            self.mpi += self._transport.mpi
        return reply

    def _ask(self, request: Request, postage: Postage | None = None) -> Any:
        """Send a request, charge it, and unpack the reply."""
        postage = postage or Postage()
        places = None
        # the schedule's own array is in order; asking for its identity saves a look at every number of it
        if request.to is not None and request.to is not self.schedule.selected:
            places = arranged(request, self.m)
        self.count = self.m if request.to is None else len(request.to)
        if request.each is not None and (type(request.each) is not np.ndarray or len(request.each) != self.count):
            with_rows(request, self.count)
        request.key = (self.round, self.calls)
        self.calls += 1
        reply = self._pass(request, postage)
        # round 0 is the start: what clients and server must agree on before the first round is no communication of a
        # round
        charged = self.round > 0 if postage.charge is None else postage.charge
        if charged and request.verb not in FOR_THE_RECORD:
            for stage in self.stages:
                stage.cost(request, reply, self.count, postage)
            self.ledger.charge(request, self.count, reply.rows.shape[-1] * self.dtype.itemsize, postage)
        for stage in self.stages:
            stage.open(request, reply)
        # replies that are reduced, by hosts or by a stage, are no rows any more
        return unpack(reply) if places is None or reply.rows.ndim < 2 else in_order(unpack(reply), places)
