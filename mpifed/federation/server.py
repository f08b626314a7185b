"""The server's side of a round: who takes part, what is evaluated, and the model that a run starts from."""

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core import signals
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.calls import Calls, ClientMethod
from mpifed.federation.ending import Ending
from mpifed.federation.evaluation import Evaluated, Evaluation
from mpifed.federation.ids import numbers_or_refused
from mpifed.federation.method import ServerState
from mpifed.federation.participation.participants import Participants, draws, recentred
from mpifed.federation.participation.selection import Selector
from mpifed.federation.request import EVALUATE, MAXIMA, SAVE, SERVICE, WHOLE, Request
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import Setup
from mpifed.federation.transport import Transport


class Federation(Calls):
    """m clients behind a transport.

    ``m`` clients, ``n`` parameters, ``samples`` of all clients together, ``cohort`` the number of clients that a round
    selects, ``selected`` those selected last (None: all), ``dtype`` of models and messages. Sums have the same bits for
    any number of ranks, unless ``reproducible`` is false.

        >>> class Listening(mpifed.algorithms.FedAvg, tag="listening"):
        ...     def round(self, fed: mpifed.Federation, server):
        ...         assert fed.m == 128 and server.x.shape == (fed.n,)
        ...         return super().round(fed, server)
        >>> mpifed.run(algorithm=Listening(), rounds=2).cr
        2
    """

    def __init__(
        self,
        transport: Transport,
        setup: Setup,
        selector: Selector,
        sizes: Array,
        schedule: Schedule | None = None,
        reproducible: bool = True,
    ) -> None:
        super().__init__(transport, setup, schedule, reproducible)
        self.problem, self.n = setup.problem, len(setup.start)
        self.samples, self.cohort = np.sum(sizes).item(), selector.size
        self.evaluation = Evaluation(setup)
        self.endings: list[Ending] = []
        self.counts: Array | None = None  # (m,) what clients count in ``share``, where that is not 1 each
        self.participants = Participants(selector, setup)
        self._draw = draws(self, self.participants)
        self._rng: np.random.Generator | None = None
        self.first: list[Callable[[Callable[..., Any]], None]] = []  # what is done, by inspect, before anything else

    def begin(self, round: int) -> None:
        """Begin round 0, the start, which is charged to no ledger, or round 1, 2 …"""
        # in an evaluation, for what a selection learns of clients is charged to no ledger; once, also after a
        # resumption
        while self.first:
            self.first.pop(0)(self.inspect)
        self.round = round
        self.calls = 0
        self._rng = None
        self.slowest = self.computing = self.mpi = 0.0
        self.schedule.begin(round)

    @property
    def rng(self) -> np.random.Generator:
        """The server's random stream of this round; it goes on from one use to the next."""
        if self._rng is None:
            self._rng = stream(self.setup.seed, "server", self.round)
        return self._rng

    def initial(self) -> Array:
        """The model (n,) that the run starts from: 0, but for networks."""
        return self.setup.start.copy()

    def select(self, x: Array, units: int = 1, given: tuple[Any, ...] = ()) -> Array | None:
        """The clients selected for this round, rising, or None for all; a second call selects anew.

        A selection by scores sends the model x to candidates, which reply with one number; ``given`` are numbers that
        ``score_move`` of the algorithm gets too. With a table [system], those of them that reply; they do ``units``
        times the ``work`` of the algorithm.
        In an asynchronous run, the clients that are not under way: all in round 1, then those that arrived last.
        """
        return self.schedule.select(lambda again: self._draw(again, x, given), units)

    @property
    def free(self) -> Array | None:
        """The clients that are not under way, rising, or None for all: without [asynchronous] always all."""
        return self.schedule.free

    def drop(self, age: int = 0) -> None:
        """In an asynchronous run, let clients drop what they began at least ``age`` rounds ago: they are free again.

        What they were sent is charged, their uploads never travel.
        """
        self.schedule.drop(age)

    def estimate(self, around: Any, of: Array | None, last: str | None = None) -> Any:
        """The mean of what the selected clients ``of`` have sent, where it stands for that over all clients.

        Under a selection with unequal probabilities p_i each upload weighs 1/(m p_i) about the point ``around``, of a
        tuple each part about its own: around + mean of (upload − around)/(m p_i), which has the mean over all clients
        as its expectation. Otherwise, and with ``last``, as ``mean``.
        """
        weights = self.participants.selector.weights
        if weights is None or of is None or last is not None:
            return self.mean(of=of, last=last)
        # about the point ``around`` the errors of the weights cancel where all uploads are alike, as near an optimum
        own = weights[of]
        return recentred(self.mean(of=of, weights=own), 1.0 - float(own.mean()), around)

    @property
    def local_steps(self) -> Array | None:
        """The local steps of each client selected last, ``most`` of f.steps: (c,), handed on as ``each``; None: all."""
        return self.schedule.steps

    def share(self, clients: Array | None) -> float:
        """The part that some clients (None: all) are of all."""
        if clients is None:
            return 1.0
        return (len(clients) if self.counts is None else float(self.counts[clients].sum())) / self.m

    def mask(self, selected: Array | None) -> Array:
        """(m,) bool: which clients are selected."""
        mask = np.full(self.m, selected is None)
        if selected is not None:
            known = selected is self.schedule.selected
            mask[selected if known else numbers_or_refused(selected, self.m, "the array that fed.mask gets")] = True
        return mask

    def observed(self, server: ServerState) -> ServerState:
        """The server's state with the model that is recorded in its field x."""
        for ending in self.endings:
            server = ending.observed(server)
        return server

    def evaluate(self, x: Array) -> Evaluated:
        """The sums and maxima over all clients of what ``evaluation`` computes of each at x; charged to no ledger."""
        found: dict[str, Array] = self._ask(Request(WHOLE, (x,), reduce=self._sum, verb=EVALUATE))
        sums = {name: value for name, value in found.items() if np.size(value)}
        maxima: dict[str, Array] = {}
        # names alone are those of maxima: a request of their own, which methods without any are spared
        if len(sums) < len(found):
            maxima = self._ask(Request(MAXIMA, (x,), reduce="max", verb=EVALUATE))
        for ending in self.endings:
            sums = ending.evaluated(x, sums)
        return Evaluated(sums, maxima)

    def inspect(self, method: ClientMethod, reduce: str = "rows", args: tuple[Any, ...] = ()) -> Any:
        """The replies of all clients to method(f, client, *args), charged to no ledger: rows, "sum" or "max"."""
        reduce = self._sum if reduce == "sum" else reduce
        return self._ask(Request(method.__name__, args, reduce=reduce, verb=EVALUATE))

    def ask(self, service: str, reduce: str, args: tuple[Any, ...] = ()) -> Any:
        """The replies of a service of the hosts, charged to no ledger."""
        return self._ask(Request(service, args, reduce=reduce, verb=SERVICE))

    def save(self, serial: int) -> None:
        """Have all hosts write the state of their clients. OSError where a disk does not take it."""
        code = int(self._ask(Request("save", (serial,), reduce="max", verb=SAVE)))
        if code:
            raise OSError(code, os.strerror(code))

    def saved(self) -> dict[str, Array]:
        """What a checkpoint keeps of stages and schedule: arrays with a blank in their names."""
        found = self.schedule.saved()
        for stage in self.stages:
            found |= stage.saved()
        return found

    def restore(self, seconds: float, under_way: str, arrays: dict[str, Array]) -> None:
        """Go on from what ``saved`` put among the arrays of a checkpoint."""
        self.schedule.restore(seconds, under_way, arrays)
        for stage in self.stages:
            stage.restore(arrays)

    @property
    def stop_signal(self) -> str:
        """The signal that tells the run to end, received here or by a host; empty where there was none."""
        told = int(self._transport.report.signal)
        return signals.stop_signal or (signals.name(told) if told else "")
