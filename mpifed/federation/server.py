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
        self._selector = selector

    def begin(self, round: int) -> None:
        """Begin round 0, the start, which is charged to no ledger, or round 1, 2 …"""
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

    def select(self, x: Array, units: int = 1) -> Array | None:
        """The clients selected for this round, rising, or None for all; a second call selects anew.

        A biased selection sends the model x to candidates, which reply with one number (``score`` of the algorithm).
        With a table [system], those of them that reply; they do ``units`` times the ``work`` of the algorithm.
        In an asynchronous run, the clients that are not under way: all in round 1, then those that arrived last.
        """
        if self.flights is not None:
            self.selected = self.flights.free()
            return self.selected
        again, selector = self.selections, self._selector
        self.selected = selector.select(self.round, again)
        if selector.batch_size is not None and self.selected is not None:
            scores = self._ask(Request("score", (x, selector.batch_size), self.selected))
            order = np.argsort(-scores, kind="stable")[: selector.size]
            if self.devices is not None:
                self.devices.score(self.selected, self.round, again, selector.batch_size, self.dtype.itemsize)
            self.selected = np.sort(self.selected[order])
        self._asked = self.selected
        if self.devices is not None:
            self.selected = self.devices.reply(self.selected, self.round, again, units)
        self.selections += 1
        self._count()
        return self.selected

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
