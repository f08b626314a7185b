"""Rounds on simulated devices, some of which are slow, distant or absent."""

from collections.abc import Callable

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.simulated_time.devices import SimulatedDevices
from mpifed.federation.method import FederatedMethod
from mpifed.federation.schedule import Schedule, SelectionDraw
from mpifed.federation.traits import Participation

DROPOUT = 0  # number of the stream of a round


class DeviceRounds(Schedule):
    """Schedule of rounds with the clients that reply in time.

    ``dropped``, ``late`` and ``shortened`` count clients of the round, ``called`` those that it selected. ``among``
    selects among clients that are there; a selection by scores knows these itself.
    """

    def __init__(
        self,
        devices: SimulatedDevices,
        algorithm: FederatedMethod,
        cohort: int,
        among: Callable[..., Array] | None = None,
    ) -> None:
        super().__init__(len(devices.sizes))
        self.among = among
        self.cohort = cohort
        self.devices, self.system = devices, devices.system
        if self.system.least > cohort:
            raise UserError(
                f"system.least = {self.system.least} is wrong: it must be at most the {cohort} clients that a round "
                "selects"
            )
        self.everyone = algorithm.participation.everyone
        self.asks_all = algorithm.participation is Participation.ALL
        self.every = algorithm.local_steps(devices.sizes) if self.system.partial else None  # (m,) of a full round
        self.called = self.dropped = self.late = self.shortened = 0

    def begin(self, round: int) -> None:
        """Begin a round when enough clients are there; if the method never selects, all clients reply."""
        super().begin(round)
        presence = self.devices.presence
        if presence is not None:
            self.seconds = presence.wait(round, self.seconds, self.system.least)
            self.present = np.flatnonzero(presence.there)
        self.called = self.dropped = self.late = self.shortened = 0
        if round and self.asks_all:
            self.reply(None, 1)

    def select(self, draw: SelectionDraw, repeats: int) -> Array | None:
        if self.present is None or self.among is None:
            self.requested_clients = draw(self.again)
        else:
            self.requested_clients = self.among(self.devices.seed, self.cohort, self.round, self.again, self.present)
        self.selected = self.reply(self.requested_clients, repeats)
        self.again += 1
        self.count()
        return self.selected

    def row(self) -> dict[str, float]:
        row = {"selected": self.called, "dropped": self.dropped, "late": self.late, "simulated_seconds": self.seconds}
        if self.present is not None:
            row["available"] = len(self.present)
        return row if self.every is None else row | {"shortened": self.shortened}

    def note_scores(self, candidates: Array, batch: int | None, size: int) -> None:
        devices = self.devices
        work = devices.work if batch is None else np.minimum(batch or np.inf, devices.sizes)
        factor = devices.factor(candidates, self.round, self.again)
        self.seconds += float(devices.times(candidates, factor, work, devices.model, size).max())

    def fit_steps(self, ids: Array, T: Array) -> tuple[Array, Array]:
        """Return the local steps (c,) that fit into the deadline and their times; all steps take T (c,)."""
        assert self.every is not None
        assert self.system.deadline is not None
        idle, every = self.devices.round_times(ids, 0.0), self.every[ids]
        step = (T - idle) / every
        steps = np.clip(np.floor((self.system.deadline - idle) / step), 1, every)
        # floor of a rounded quotient may be one too many: then this client would be late after all
        steps -= (idle + steps * step > self.system.deadline) & (steps > 1) & (steps < every)
        short = (steps < every) & (self.system.deadline < T)
        steps = np.where(short, steps, every).astype(np.int64)
        return steps, np.where(short, idle + steps * step, T)

    def reply(self, selected: Array | None, repeats: int) -> Array | None:
        """Return the ``selected`` clients (rising; None: all) that reply (None: all), and advance simulated time.

        Clients do ``repeats`` times the work that the algorithm states; ``passes`` of the table replace all of it.
        """
        devices, system = self.devices, self.system
        everyone = np.arange(self.m)
        ids = everyone if selected is None else selected
        work = devices.work if system.passes is not None else repeats * devices.work
        T = devices.times(ids, devices.factor(ids, self.round, self.again), work, *devices.bytes)
        steps = None
        if self.every is not None:
            steps, T = self.fit_steps(ids, T)
        gone, late = self.absent(ids, T)
        replies = ~(gone | late)
        self.called += len(ids)
        self.dropped += int(gone.sum())
        self.late += int(late.sum())
        waited = T[replies]
        if self.everyone:  # clients that are not selected reply too, and the server waits for them
            factor = devices.factor(everyone, self.round, self.again)
            waited = devices.times(everyone, factor, work, *devices.bytes)
        patience = system.deadline or 0.0 if late.any() else 0.0
        self.seconds += max(float(waited.max(initial=0.0)), patience)
        if steps is not None and self.every is not None:
            self.steps = steps[replies]
            self.shortened += int((self.steps < self.every[ids[replies]]).sum())
        return selected if replies.all() else ids[replies]

    def absent(self, ids: Array, T: Array) -> tuple[Array, Array]:
        """Return which of the clients ``ids`` with times T drop out, and which are late: bool (c,) each."""
        system = self.system
        gone, late = np.zeros((2, len(ids)), bool)
        if system.dropout:
            draws = stream(self.devices.seed, "system", self.round, self.again, DROPOUT)
            gone = draws.random(self.m)[ids] < system.dropout
        if self.devices.presence is not None:
            ends = self.seconds + (T if system.deadline is None else np.minimum(T, system.deadline))
            gone |= self.devices.presence.changes[ids] < ends
        if system.deadline is not None:
            late = ~gone & (system.deadline < T)
        replies = ~(gone | late)
        missing = min(system.least, len(ids)) - int(replies.sum())
        if missing > 0:
            order = np.lexsort((T, gone))  # the late before those that dropped out, the fastest first
            back = order[~replies[order]][:missing]
            gone[back] = False
            late[back] = False
        return gone, late
