"""The server's side of a round: it calls, clients answer; and the ledger of what travelled between them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core import signals
from mpifed.core.errors import Trouble
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.request import ASKED, FAULT, Ledger, Reply, Request, width
from mpifed.federation.selection import Draws
from mpifed.federation.stragglers import Devices
from mpifed.federation.transport import Transport
from mpifed.problems.base import Problem

Method = Callable[..., Any]


class Federation:
    """m clients behind a transport.

    ``m`` clients, ``n`` parameters, ``samples`` of all clients together, ``chosen`` the clients drawn last (None: all),
    ``dtype`` of models and messages. Sums have the same bits for any number of ranks, unless ``reproducible`` is false.
    """

    def __init__(
        self,
        transport: Transport,
        problem: Problem,
        draws: Draws,
        seed: int,
        sizes: Array,
        start: Array,
        dtype: str,
        reproducible: bool = True,
        devices: Devices | None = None,
    ) -> None:
        self.problem, self.m, self.n, self.dtype = problem, len(sizes), len(start), np.dtype(dtype)
        self._start = start.astype(self.dtype)
        self._sum = "sum" if reproducible else "plain sum"
        self.samples = int(np.sum(sizes))
        self.selected = draws.size
        self.ledger, self.charging, self.devices = Ledger(), False, devices
        self.chosen: Array | None = None
        self.times_selected = np.zeros(self.m, np.int64)
        self.round = self.calls = self.drawn = 0
        self.seconds = 0.0 * transport.seconds
        self.mpi = self.kept = 0.0
        self.steering = "the step size"  # what to look at when numbers are not finite
        self._transport, self._draws, self._seed = transport, draws, seed

    def begin(self, round: int) -> None:
        """Round 1, 2 …: from here on requests are charged and timed to it."""
        self.round, self.calls, self.drawn, self.charging = round, 0, 0, True
        self.seconds[:] = 0.0
        self.mpi = 0.0
        if self.devices is not None:
            self.devices.begin()

    @property
    def rng(self) -> np.random.Generator:
        """The server's random stream of this round."""
        return stream(self._seed, "server", self.round)

    def initial(self) -> Array:
        """The model (n,) that the run starts from: 0, but for networks."""
        return self._start.copy()

    def select(self, x: Array) -> Array | None:
        """The clients drawn for this round, rising, or None for all; a second call draws anew.

        A biased selection sends the model x to candidates, who answer with one number (``score`` of the algorithm). With a
        table [system] those of the drawn who answer.
        """
        self.chosen = self._draws.draw(self.round, self.drawn)
        if self._draws.batch_size is not None and self.chosen is not None:
            scores = self._ask("score", (x, self._draws.batch_size), self.chosen)
            order = np.argsort(-scores, kind="stable")[: self._draws.size]
            if self.devices is not None:
                self.devices.score(self.chosen, self.round, self.drawn, self._draws.batch_size, self.dtype.itemsize)
            self.chosen = np.sort(self.chosen[order])
        if self.devices is not None:
            self.chosen = self.devices.answer(self.chosen, self.round, self.drawn)
        self.drawn += 1
        self.times_selected[slice(None) if self.chosen is None else self.chosen] += 1
        return self.chosen

    def mask(self, chosen: Array | None) -> Array:
        """(m,) bool: who is chosen."""
        mask = np.full(self.m, chosen is None)
        if chosen is not None:
            mask[chosen] = True
        return mask

    def call(self, method: Method, *args: Any, to: Array | None = None, each: Array | None = None) -> Any:
        """Call a client method on ``to`` (None: all); their replies at the server, a row a client in client order."""
        return self._ask(method.__name__, args, to, each)

    def sum(
        self,
        method: Method,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        last: str | None = None,
        charge: bool = True,
    ) -> Any:
        """The same, with the replies added up on their way.

        With ``last`` every client's field of that name is added up instead, also of those not called: their last upload.
        Without ``charge`` it costs nothing: what the server has already.
        """
        return self._ask(method.__name__, args, to, each, self._sum, last, charge=charge)

    def mean(
        self,
        method: Method,
        *args: Any,
        to: Array | None = None,
        each: Array | None = None,
        last: str | None = None,
        charge: bool = True,
    ) -> Any:
        """The sum over the number of those who are added up."""
        total = self.sum(method, *args, to=to, each=each, last=last, charge=charge)
        count = self.m if last is not None or to is None else len(to)
        return tuple([divided(t, count) for t in total]) if isinstance(total, tuple) else divided(total, count)

    def solve(
        self, method: Method, *args: Any, last: str, then: Callable[..., Array], to: Array | None = None
    ) -> Array:
        """What ``then(rows, *args)`` makes of the field ``last`` of all clients once ``method`` has run, (m, n) -> (n,).

        It must work on each column by itself: long rows are spread over the ranks by column.
        """
        return self._ask(method.__name__, args, to, last=last, then=then)

    def max(self, method: Method, *args: Any, to: Array | None = None, each: Array | None = None) -> Any:
        """The elementwise largest of the replies."""
        return self._ask(method.__name__, args, to, each, "max")

    def measure(self, x: Array) -> list[Array]:
        """The sums over all clients of what hosts measure at x, charged to nobody.

        ``kept`` then has the seconds that it took longer for gradients that the next round may begin with.
        """
        measured = list(self._ask("measure", (x,), reduce=self._sum, evaluation=True))
        self.kept = later(self._transport.seconds[:, 1], self._transport.seconds[:, 2])
        return measured

    def inspect(self, method: Method, reduce: str = "rows") -> Any:
        """The replies of all clients, charged to nobody: rows, or "max"."""
        return self._ask(method.__name__, reduce=reduce, evaluation=True)

    def save(self, serial: int) -> None:
        """Have all hosts write the state of their clients. OSError where a disk does not take it."""
        code = int(self._ask("save", (serial,), reduce="max", evaluation=True))
        if code:
            raise OSError(code, os.strerror(code))

    @property
    def asked(self) -> str:
        """The signal that asks to end the run, here or on a host; empty where there was none."""
        return signals.stop_signal or signals.name(int(self._transport.seconds[:, ASKED].max(initial=0)))

    def _fault(self, request: Request, faults: Array) -> None:
        """Raise what went wrong on a host."""
        if faults.min() < 0:
            raise self._transport.complaint()
        client, what = int(faults[faults > 0].min()) - 1, "loss or gradient" if request.evaluation else "reply"
        raise Trouble(
            f"the {what} of client {client} is not finite in round {self.round}, method {request.method}: the iterates "
            f"diverge or the data do, so look at {self.steering}"
        )

    def _ask(
        self,
        method: str,
        args: tuple[Any, ...] = (),
        to: Array | None = None,
        each: Array | None = None,
        reduce: str = "rows",
        last: str | None = None,
        then: Any = None,
        evaluation: bool = False,
        charge: bool = True,
    ) -> Any:
        request = Request(method, args, to, each, reduce, last, then, (self.round, self.calls), evaluation)
        self.calls += 1
        reply = self._transport.send(request)
        if (faults := self._transport.seconds[:, FAULT]).any():
            self._fault(request, faults)
        if not request.evaluation:
            self.seconds += self._transport.seconds
            self.mpi += self._transport.mpi
            if self.charging and charge:
                count = self.m if request.to is None else len(request.to)
                self.ledger.charge(request, count, reply.rows.shape[-1] * self.dtype.itemsize)
        return unpack(reply)


def divided(total: Array, count: int) -> Array:
    """total / count, in place where that saves memory."""
    return np.divide(total, count, out=total) if total.ndim else total / count


def later(first: Array, second: Array) -> float:
    """How much later the slowest host is done that after ``first`` (hosts,) seconds works ``second`` more."""
    return float((first + second).max() - first.max()) if len(first) else 0.0


def unpack(reply: Reply) -> Any:
    """The arrays that a client method replied with, in the place of each the rows or the reduction of all."""
    rows, layout = reply
    front = rows.shape[:-1]
    if not layout:
        return None
    if len(layout) == 1:
        return rows.reshape(front + layout[0])
    parts, column = [], 0
    for shape in layout:
        size = width(shape)
        parts.append(rows[..., column : column + size].reshape(front + shape))
        column += size
    return tuple(parts)
