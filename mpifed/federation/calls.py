"""How the server calls client methods: requests, what they cost, and what is wrong where one fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict, Unpack

import numpy as np

from mpifed.core.errors import Trouble, UserError
from mpifed.core.typing import Array
from mpifed.federation import masked_sums
from mpifed.federation.arrivals import NOTHING_SENT, Flights
from mpifed.federation.compression import Downloads
from mpifed.federation.ledger import Ledger
from mpifed.federation.request import ARRIVE, MASKED, HostReport, Request, unpack
from mpifed.federation.setup import Setup
from mpifed.federation.sums import divided
from mpifed.federation.transport import Transport

Method = Callable[..., Any]


class Rare(TypedDict, total=False):
    """What few calls need.

    ``charge``: false for what the server has already; true charges what travels before round one too. ``bits`` of one
    client's reply, where it is compressed. ``weights`` (c,), which the uploads that arrive are multiplied with.
    """

    charge: bool | None
    bits: int | None
    weights: Array | None


class Calls:
    """Calls of client methods, of all m clients or of some; ``ledger`` charges what travels."""

    def __init__(self, transport: Transport, setup: Setup, reproducible: bool = True) -> None:
        self.m, self.dtype = setup.m, setup.start.dtype
        self.selected: Array | None = None
        self.times_selected = np.zeros(self.m, np.int64)
        self.flights: Flights | None = None
        self.ledger = Ledger()
        self.round = self.calls = 0
        self.slowest = self.computing = self.mpi = 0.0  # seconds of the round: slowest hosts, all hosts, in MPI
        self._transport, self._setup = transport, setup
        self._sum = self._uploads = "sum" if reproducible else "plain sum"
        self._masks, self.downloads = setup.masks, Downloads(setup)
        self._asked: Array | None = None  # the clients selected, those that do not reply too: they agree on masks
        self._sent: Request | None = None  # what clients have begun, until their uploads are asked for
        self._there = False  # whether ``arrivals`` said whose uploads may be asked for
        if self._masks is not None and self._masks.sums != "float":
            self._uploads = MASKED

    def call(
        self,
        method: Method | None = None,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        of: Array | None = None,
        **rare: Unpack[Rare],
    ) -> Any:
        """Call a client method on ``to`` (None: all); their replies at the server, a row a client in client order.

        Row i of ``each`` goes to client to[i] alone. Without a method: what the clients ``of``, those that ``arrivals``
        returned, have uploaded.
        """
        if method is None:
            return self._ask(self._arrived("rows", of, None, rare), rare.get("charge"))
        return self._ask(Request(method.__name__, args, to, each, bits=rare.get("bits")), rare.get("charge"))

    def sum(
        self,
        method: Method | None = None,
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
            return self._added(self._arrived(self._uploads, of, last, rare), rare.get("charge"))
        request = Request(method.__name__, args, to, each, self._uploads, last, bits=rare.get("bits"))
        return self._added(request, rare.get("charge"))

    def mean(
        self,
        method: Method | None = None,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        of: Array | None = None,
        last: str | None = None,
        **rare: Unpack[Rare],
    ) -> Any:
        """The sum over the number of clients added up."""
        total = self.sum(method, *args, to=to, each=each, of=of, last=last, **rare)
        some = to if method is not None else of
        count = self.m if last is not None or some is None else len(some)
        return tuple([divided(t, count) for t in total]) if isinstance(total, tuple) else divided(total, count)

    def solve(
        self, method: Method, *args: Any, last: str, then: Callable[..., Array], to: Array | None = None
    ) -> Array:
        """Run ``method``, then apply ``then(rows, *args)``, (m, n) -> (n,), to the field ``last`` of all clients.

        ``then`` must treat each column on its own: long rows are spread over the ranks by column.
        """
        request = Request(method.__name__, args, to, last=last, then=then)
        if self._masks is not None:
            raise self._single(request)
        return self._ask(request)

    def max(self, method: Method, *args: Any, to: Array | None = None) -> Any:
        """The elementwise largest of the replies."""
        return self._ask(Request(method.__name__, args, to, reduce="max"))

    def send(
        self, method: Method, *args: Any, to: Array | None = None, each: Array | None = None, bits: int | None = None
    ) -> None:
        """Have the clients ``to`` (None: all) begin a client method; ``arrivals`` tells whose uploads are there.

        Nothing is computed before an upload is asked for: ``call``, ``sum`` and ``mean`` without a method, of=arrived.
        In an asynchronous run arrays reach the client method as rows (c, …), for each client has begun from its own,
        and numbers as numbers; ``each`` must be None.
        """
        request = Request(method.__name__, args, to, each, bits=bits)
        if self.flights is None:
            self._sent = request
            return
        if each is not None:
            raise UserError(f"{request.method} cannot be sent with each = … in an asynchronous run: use an argument")
        request.key = (self.round, self.calls)
        self.calls += 1
        self.flights.send(request)
        if self.round > 0:
            self.ledger.charge(request, self.m if to is None else len(to), 0)

    def arrivals(self) -> Array | None:
        """The clients whose uploads are there, rising, or None for all: all that ``send`` went to.

        In an asynchronous run the first to arrive ([asynchronous]); the simulated time goes on to the last of them.
        Their uploads must be asked for, once: only then have they finished what they began.
        """
        if self.flights is not None:
            self.selected = self.flights.arrive()
            self._count()
        elif self._sent is None:
            raise UserError(NOTHING_SENT)
        self._there = True
        return self.selected if self._sent is None else self._sent.to

    @property
    def staleness(self) -> Array:
        """How many rounds old the uploads are that arrived last: (c,) whole numbers, in the order of ``arrivals``."""
        if self.flights is not None:
            return self.flights.ages
        sent = None if self._sent is None else self._sent.to
        return np.zeros(self.m if sent is None else len(sent), np.int64)

    def _count(self) -> None:
        self.times_selected[slice(None) if self.selected is None else self.selected] += 1

    def _arrived(self, reduce: str, of: Array | None, last: str | None, rare: Rare) -> Request:
        """The request for the uploads of the clients ``of``, which have arrived; before it they compute."""
        if not self._there:
            raise UserError("uploads are asked for without a client method: fed.send and fed.arrivals must come before")
        sent, weights, self._there = self._sent, rare.get("weights"), False
        if self.flights is not None:
            if self.flights.lacking(slice(None) if of is None else of):
                self._ask(self.flights.request())
            return Request(ARRIVE, (), of, None, reduce, last, bits=self.flights.bits, weights=weights)
        assert sent is not None
        to = np.arange(self.m) if sent.to is None and weights is not None else sent.to
        return Request(sent.method, sent.args, to, sent.each, reduce, last, bits=sent.bits, weights=weights)

    def _fault(self, request: Request, report: HostReport) -> None:
        """Raise what went wrong on a host."""
        if report.failed:
            raise self._transport.complaint()
        what = f"{'loss or gradient' if request.evaluation else 'reply'} of client {self.m - int(report.fault)}"
        method = self.flights.method if self.flights is not None and request.method == ARRIVE else request.method
        raise Trouble(
            f"the {what} is not finite in round {self.round}, method {method}: the iterates "
            f"diverge or the data do, so look at {self._setup.algorithm.steering()}"
        )

    def _added(self, request: Request, charge: bool | None) -> Any:
        """Ask for a sum of uploads; under masks, all clients asked have agreed on them, whether they reply or not."""
        if self._masks is not None:
            if charge is False:
                raise self._single(request)
            if request.to is self.selected and self._asked is not request.to:
                request.peers = np.arange(self.m) if self._asked is None else self._asked
        return self._ask(request, charge)

    def _single(self, request: Request) -> UserError:
        """The error of a request that needs uploads one by one."""
        return UserError(
            f"masks cannot be used with {self._setup.algorithm.label()}: its server needs the uploads of "
            f"{request.method} one by one, and masks hide single uploads"
        )

    def _ask(self, request: Request, charge: bool | None = None) -> Any:
        """Send a request, charge it, and unpack the reply."""
        request.key, request.exact = (self.round, self.calls), charge is False
        self.calls += not request.rest  # what clients draw does not depend on when they compute
        if self.flights is not None and not (request.evaluation or request.rest or request.method == ARRIVE):
            self.flights.refuse_away(request)
        self.downloads.pack(request)
        reply, report = self._transport.send(request), self._transport.report
        if report.failed or report.fault:
            self._fault(request, report)
        if not request.evaluation:
            self.slowest += report.slowest
            self.computing += report.computing
            self.mpi += self._transport.mpi
            if not request.rest and (self.round > 0 if charge is None else charge):
                count = self.m if request.to is None else len(request.to)
                numbers, request.bits = reply.rows.shape[-1], self.downloads.bits(request, reply.layout)
                size = numbers * self.dtype.itemsize
                self.ledger.charge(request, count, size, self._charged(request, count, numbers))
        if request.reduce == MASKED:
            reply.rows = masked_sums.opened(self._setup, request, reply.rows).astype(self.dtype, copy=False)
        return unpack(reply)

    def _charged(self, request: Request, count: int, numbers: int) -> tuple[int, int] | None:
        """The bytes up and down of ``count`` replies under masks; None where there are none."""
        if self._masks is None or not numbers:
            return None
        if request.reduce in ("rows", "max"):
            raise self._single(request)
        if request.bits is not None:
            raise UserError(f"masks cannot be used with {self._setup.algorithm.label()}: it compresses its uploads")
        return self._masks.charged(count if request.peers is None else len(request.peers), count, numbers)
