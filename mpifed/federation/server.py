"""The server's side of a round: who takes part, what is evaluated, and the model that a run starts from."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from mpifed.core import signals
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.calls import Calls, Method
from mpifed.federation.evaluation import Evaluation
from mpifed.federation.participation import Participation, recentred
from mpifed.federation.request import EVALUATE, SAVE, Request
from mpifed.federation.selection import Selector
from mpifed.federation.setup import Setup
from mpifed.federation.stragglers import Devices
from mpifed.federation.transport import Transport


class Federation(Calls):
    """m clients behind a transport.

    ``m`` clients, ``n`` parameters, ``samples`` of all clients together, ``cohort`` the number of clients that a round
    selects, ``selected`` those selected last (None: all), ``dtype`` of models and messages. Sums have the same bits for
    any number of ranks, unless ``reproducible`` is false.
    """

    def __init__(
        self,
        transport: Transport,
        setup: Setup,
        selector: Selector,
        sizes: Array,
        devices: Devices | None = None,
        reproducible: bool = True,
    ) -> None:
        super().__init__(transport, setup, reproducible)
        self.problem, self.n = setup.problem, len(setup.start)
        self.samples, self.cohort = int(np.sum(sizes)), selector.size
        self.devices, self.evaluation = devices, Evaluation(setup)
        self.flights = None if devices is None else devices.flights
        self.selections = 0
        self.participation = Participation(selector, setup)

    def begin(self, round: int) -> None:
        """Begin round 0, the start, which is charged to no ledger, or round 1, 2 …"""
        self.participation.learn(self)
        self.round, self.calls, self.selections = round, 0, 0
        self.slowest = self.computing = self.mpi = 0.0
        if self.devices is not None:
            self.devices.begin(round)

    @property
    def rng(self) -> np.random.Generator:
        """The server's random stream of this round."""
        return stream(self._setup.seed, "server", self.round)

    def initial(self) -> Array:
        """The model (n,) that the run starts from: 0, but for networks."""
        return self._setup.start.copy()

    def select(self, x: Array, units: int = 1, given: tuple[Any, ...] = ()) -> Array | None:
        """The clients selected for this round, rising, or None for all; a second call selects anew.

        A selection by scores sends the model x to candidates, which reply with one number; ``given`` are numbers that
        ``score_move`` of the algorithm gets too. With a table [system], those of them that reply; they do ``units``
        times the ``work`` of the algorithm.
        In an asynchronous run, the clients that are not under way: all in round 1, then those that arrived last.
        """
        if self.flights is not None:
            self.selected = self.flights.free()
            return self.selected
        again = self.selections
        self.selected = self.participation.select(self, x, given)
        self._asked = self.selected
        if self.devices is not None:
            self.selected = self.devices.reply(self.selected, self.round, again, units)
        self.selections += 1
        self._count()
        return self.selected

    def estimate(self, around: Any, of: Array | None, last: str | None = None) -> Any:
        """The mean of what the selected clients ``of`` have sent, where it stands for that over all clients.

        Under a selection with unequal probabilities p_i each upload weighs 1/(m p_i) about the point ``around``, of a
        tuple each part about its own: around + mean of (upload − around)/(m p_i), which has the mean over all clients
        as its expectation. Otherwise, and with ``last``, as ``mean``.
        """
        weights = None if last is not None else self.participation.weights(of)
        if weights is None:
            return self.mean(of=of, last=last)
        return recentred(self.mean(of=of, weights=weights), 1.0 - float(weights.mean()), around)

    @property
    def local_steps(self) -> Array | None:
        """The local steps of each client selected last, ``most`` of f.steps: (c,), handed on as ``each``; None: all."""
        return None if self.devices is None else self.devices.steps

    def mask(self, selected: Array | None) -> Array:
        """(m,) bool: which clients are selected."""
        mask = np.full(self.m, selected is None)
        if selected is not None:
            mask[selected] = True
        return mask

    def observed(self, server: Any) -> Any:
        """The server's state with the model that is recorded in its field x."""
        return server

    def evaluate(self, x: Array) -> dict[str, Array]:
        """name -> the sum over all clients of what ``evaluation`` computes of each at x; charged to no ledger."""
        found = self._ask(Request(EVALUATE, (x,), reduce=self._sum, evaluation=True))
        return dict(zip(self.evaluation.names, found, strict=True))

    def inspect(self, method: Method, reduce: str = "rows", args: tuple[Any, ...] = ()) -> Any:
        """The replies of all clients to method(f, client, *args), charged to no ledger: rows, "sum" or "max"."""
        reduce = self._sum if reduce == "sum" else reduce
        return self._ask(Request(method.__name__, args, reduce=reduce, evaluation=True))

    def save(self, serial: int) -> None:
        """Have all hosts write the state of their clients. OSError where a disk does not take it."""
        code = int(self._ask(Request(SAVE, (serial,), reduce="max", evaluation=True)))
        if code:
            raise OSError(code, os.strerror(code))

    @property
    def stop_signal(self) -> str:
        """The signal that tells the run to end, received here or by a host; empty where there was none."""
        return signals.stop_signal or signals.name(int(self._transport.report.signal))
