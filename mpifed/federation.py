"""The server's side of a round: it calls, clients answer; and the ledger of what travelled between them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

from mpifed import sums
from mpifed.data.clients import Array
from mpifed.host import Host, Reply, Request
from mpifed.problems.base import Problem
from mpifed.rng import stream
from mpifed.selection import Draws

Method = Callable[..., Any]


class Transport(Protocol):
    """Carries requests to the hosts and their replies back."""

    compute: Array   # (hosts,) seconds each host computed for the last request
    evaluate: Array  # (hosts,) seconds each host measured for the last request
    mpi: float       # seconds the server spent in MPI for the last request

    def send(self, request: Request) -> Reply: ...


class InProcess:
    """One process holds server and clients."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.compute, self.evaluate, self.mpi = np.zeros(1), np.zeros(1), 0.0

    def send(self, request: Request) -> Reply:
        reply = self.host.handle(request)
        self.compute[0], self.evaluate[0] = self.host.compute, self.host.evaluate
        return finish(request, reply, self.host.tree)


class Ledger:
    """What travelled between server and clients: the paper's communication, whatever the number of ranks.

    An exchange is one download and one upload of those called, in whatever order. Arrays of real numbers are charged, to
    each client who receives or sends them; single numbers (a step size, the round) and who is chosen are not.
    """

    def __init__(self) -> None:
        self.uploads = self.downloads = self.bytes_up = self.bytes_down = 0
        self.up = self.down = 0    # requests that brought something up, or down

    @property
    def exchanges(self) -> int:
        return max(self.up, self.down)

    def charge(self, request: Request, clients: int, reply: int) -> None:
        """Charge one request to ``clients`` clients, each answering with ``reply`` bytes."""
        shared = sum(a.nbytes for a in request.args if isinstance(a, np.ndarray) and a.dtype.kind == "f")
        own = request.each.nbytes if request.each is not None and request.each.dtype.kind == "f" else 0
        self.down += bool(shared or own)
        self.downloads += clients if shared or own else 0
        self.bytes_down += shared * clients + own
        self.up += bool(reply)
        self.uploads += clients if reply else 0
        self.bytes_up += reply * clients


class Federation:
    """m clients behind a transport.

    ``m`` clients, ``n`` parameters, ``samples`` of all clients together, ``chosen`` the clients drawn last (None: all),
    ``dtype`` of models and messages. Sums have the same bits for any number of ranks, unless ``reproducible`` is false.
    """

    def __init__(self, transport: Transport, problem: Problem, draws: Draws, seed: int, sizes: Array, start: Array,
                 dtype: str, reproducible: bool = True) -> None:
        self.problem, self.m, self.n, self.dtype = problem, len(sizes), len(start), np.dtype(dtype)
        self._start = start.astype(self.dtype)
        self._sum = "sum" if reproducible else "plain sum"
        self.samples = int(np.sum(sizes))
        self.selected = draws.size
        self.ledger, self.charging = Ledger(), False
        self.chosen: Array | None = None
        self.times_selected = np.zeros(self.m, np.int64)
        self.round = self.calls = self.drawn = 0
        self.compute = 0.0 * transport.compute
        self.mpi = 0.0
        self._transport, self._draws, self._seed = transport, draws, seed

    def begin(self, round: int) -> None:
        """Round 1, 2 …: from here on requests are charged and timed to it."""
        self.round, self.calls, self.drawn, self.charging = round, 0, 0, True
        self.compute[:] = 0.0
        self.mpi = 0.0

    @property
    def rng(self) -> np.random.Generator:
        """The server's random stream of this round."""
        return stream(self._seed, "server", self.round)

    def initial(self) -> Array:
        """The model (n,) that the run starts from: 0, but for networks."""
        return self._start.copy()

    def select(self, x: Array) -> Array | None:
        """The clients drawn for this round, rising, or None for all; a second call draws anew.

        A biased selection sends the model x to candidates, who answer with one number (``score`` of the algorithm).
        """
        self.chosen = self._draws.draw(self.round, self.drawn)
        if self._draws.batch_size is not None and self.chosen is not None:
            scores = self._ask(Request("score", (x, self._draws.batch_size), self.chosen))
            order = np.argsort(-scores, kind="stable")[: self._draws.size]
            self.chosen = np.sort(self.chosen[order])
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
        return self._ask(Request(method.__name__, args, to, each))

    def sum(self, method: Method, *args: Any, to: Array | None = None, each: Array | None = None,
            last: str | None = None, charge: bool = True) -> Any:
        """The same, with the replies added up on their way.

        With ``last`` every client's field of that name is added up instead, also of those not called: their last upload.
        Without ``charge`` it costs nothing: what the server has already.
        """
        return self._ask(Request(method.__name__, args, to, each, self._sum, last), charge)

    def mean(self, method: Method, *args: Any, to: Array | None = None, each: Array | None = None,
             last: str | None = None, charge: bool = True) -> Any:
        """The sum over the number of those who are added up."""
        total = self.sum(method, *args, to=to, each=each, last=last, charge=charge)
        count = self.m if last is not None or to is None else len(to)
        return tuple(t / count for t in total) if isinstance(total, tuple) else total / count

    def max(self, method: Method, *args: Any, to: Array | None = None, each: Array | None = None) -> Any:
        """The elementwise largest of the replies."""
        return self._ask(Request(method.__name__, args, to, each, "max"))

    def measure(self, x: Array) -> list[Array]:
        """The sums over all clients of what hosts measure at x, charged to nobody."""
        return list(self._ask(Request("measure", (x,), reduce=self._sum, evaluation=True)))

    def inspect(self, method: Method, reduce: str = "rows") -> Any:
        """The replies of all clients, charged to nobody: rows, or "max"."""
        return self._ask(Request(method.__name__, reduce=reduce, evaluation=True))

    def _ask(self, request: Request, charge: bool = True) -> Any:
        request = request._replace(place=(self.round, self.calls))
        self.calls += 1
        reply = self._transport.send(request)
        if not request.evaluation:
            self.compute += self._transport.compute
            self.mpi += self._transport.mpi
            if self.charging and charge:
                count = self.m if request.to is None else len(request.to)
                self.ledger.charge(request, count, reply.rows.shape[-1] * self.dtype.itemsize)
        return unpack(reply)


def finish(request: Request, reply: Reply, tree: Sequence[sums.Node]) -> Reply:
    """The last step of a reduction at the server, over what the hosts sent one after the other."""
    if request.reduce == "sum":
        return reply._replace(rows=sums.total(reply.rows, list(tree)))
    if request.reduce == "plain sum":
        return reply._replace(rows=reply.rows.sum(axis=0))
    if request.reduce == "max":
        return reply._replace(rows=reply.rows.max(axis=0))
    return reply


def unpack(reply: Reply) -> Any:
    """The arrays that a client method replied with, in the place of each the rows or the reduction of all."""
    parts, column, front = [], 0, reply.rows.shape[:-1]
    for shape in reply.layout or ():
        size = int(np.prod(shape, dtype=np.int64))
        parts.append(reply.rows[..., column : column + size].reshape((*front, *shape)))
        column += size
    return None if not parts else parts[0] if len(parts) == 1 else tuple(parts)


