"""Clients that are slow, far away or absent, and a clock of simulated time, which never measures."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.core.component import Table
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, Positive
from mpifed.federation.distributions import Distribution

RATES = ("speed", "bandwidth_down", "bandwidth_up")
DROPOUT, JITTER = 0, 1  # the streams of a round; those of the clients are in round 0


class System(Table):
    """Slow, distant and absent clients, and simulated_seconds; without this table all clients are equal and reply.

    From the request to its reply a selected client takes T = latency + b/bandwidth_down + w/speed·exp(jitter·N(0, 1)) +
    latency + b/bandwidth_up  seconds. b are the bytes that the algorithm sends to a client, and gets back, between two
    selections; w are the sample gradients that the client computes: as many as the algorithm states (FedADMM: at most),
    or ``passes`` times its samples. T is computed from these numbers and never measured. Of the selected clients

    - each drops out with probability ``dropout``, and the server does not wait for it;
    - those with T > deadline are late, and the server goes on without them after ``deadline`` seconds;
    - with ``partial``, a client that would be late takes as many of its local steps as fit into the deadline, and
      replies in time; where not even one fits, it is late, and takes one. Each of its steps takes the same time;
    - where fewer than ``least`` remain (or than were selected), the server waits for the fastest of the late ones until
      there are that many; where these are too few, for the fastest of those that dropped out, which then reply in T.

    To the algorithm, a client that does not reply looks like one that was not selected; the ledger charges only what
    the others exchange. A selection lasts as long as the largest T of the clients that reply (FedGiA: of all clients,
    because it uses all), and at least ``deadline`` if a client is late. All candidates of a selection by scores are
    awaited, each with the model down, one number up and its samples between (greedy: the work of a selection).
    simulated_seconds adds these times up.
    Numbers that an algorithm derives from the size of the selection do not change when clients are absent.
    """

    speed: Annotated[
        Distribution | None, Meta(description="sample gradients a second of a client; absent: no time")
    ] = None
    bandwidth_down: Annotated[Distribution | None, Meta(description="bytes a second to a client; absent: no time")] = (
        None
    )
    bandwidth_up: Annotated[Distribution | None, Meta(description="bytes a second from a client; absent: no time")] = (
        None
    )
    latency: Annotated[Distribution | None, Meta(description="seconds of a message, one way; absent: 0")] = None
    jitter: Annotated[
        float, Meta(ge=0, description="σ of the logarithm of a factor on computing, new in every selection")
    ] = 0.0
    passes: Annotated[
        Positive | None,
        Meta(description="a client's passes over its samples between two selections; absent: the algorithm's"),
    ] = None
    dropout: Annotated[float, Meta(ge=0, lt=1, description="probability that a client does not reply")] = 0.0
    deadline: Annotated[Positive | None, Meta(description="seconds until the server goes on; absent: never")] = None
    least: Annotated[int, Meta(ge=1, description="fewest replies that the server goes on with")] = 1
    partial: Annotated[
        bool, Meta(description="clients take fewer local steps where all of them do not fit into the deadline")
    ] = False

    def absence(self) -> str | None:
        """The key by which clients may be absent, or None."""
        return next((key for key in ("dropout", "deadline") if getattr(self, key)), None)

    def devices(self, seed: int, sizes: Array, model: Array, algorithm: Any, cohort: int) -> Devices:
        """Clients with ``sizes`` (m,) samples, ``cohort`` of them selected a round; ``model`` (n,) is like those sent.

        Raises UserError where clients cannot be absent, or their work is not known beforehand.
        """
        key = self.absence()
        if algorithm.everyone and key is not None:
            when = "some rounds" if algorithm.sometimes else "every round"
            raise UserError(
                f"system.{key} = {getattr(self, key)} is wrong: {algorithm.label()} needs a gradient of every client "
                f"in {when}, also of those that are not selected, so no client can be absent"
            )
        if self.least > cohort:
            raise UserError(
                f"system.least = {self.least} is wrong: it must be at most the {cohort} clients that a round selects"
            )
        work = algorithm.work(sizes) if self.passes is None else self.passes * sizes
        if work is None and self.speed is not None:
            raise UserError(
                f"system.passes is missing: {algorithm.label()} cannot tell beforehand how often its clients "
                "pass over their samples, so system.speed needs it"
            )
        self.refuse_partial(algorithm, sizes)
        return Devices(self, seed, sizes, model, algorithm, np.zeros(len(sizes)) if work is None else work)

    def refuse_partial(self, algorithm: Any, sizes: Array) -> None:
        """UserError where clients are to take fewer local steps, and nothing says when, or they cannot."""
        if not self.partial:
            return
        missing = next((key for key in ("deadline", "speed") if getattr(self, key) is None), None)
        if missing is not None:
            raise UserError(
                f"system.partial = true is wrong without system.{missing}: clients take fewer local steps where not "
                "all of them fit into the deadline"
            )
        if algorithm.local_steps(sizes) is None:
            kind = type(algorithm)
            able = [name for name in kind.choices if kind.member(name, "")().local_steps(sizes) is not None]
            raise UserError(
                f"system.partial = true is wrong: clients of {algorithm.label()} cannot take fewer local steps, those "
                f"of {', '.join(able)} can"
            )

    def drawn(self, seed: int, key: str, m: int) -> Array:
        """A property of m clients: (m,). UserError for rates that are not above 0."""
        distribution: Distribution | None = getattr(self, key)
        if distribution is None:
            return np.full(m, np.inf if key in RATES else 0.0)
        values = distribution.draw(stream(seed, "system", 0, (*RATES, "latency").index(key)), m)
        if not np.isfinite(values).all() or (key in RATES and not (values > 0).all()):
            given = toml_value(msgspec.to_builtins(distribution))
            right = "above 0 and finite" if key in RATES else "finite"
            raise UserError(f"system.{key} = {given} is wrong: it must be {right} for every client")
        return values


class Devices:
    """What m clients run on.

    ``seconds`` of simulated time so far; ``selected``, ``dropped``, ``late`` and ``shortened`` clients of the round;
    ``steps`` (c,) that those of the last reply take, None for all that the algorithm asks for.
    """

    def __init__(self, system: System, seed: int, sizes: Array, model: Array, algorithm: Any, work: Array) -> None:
        self.system, self.sizes, self.model, self.everyone = system, sizes, model.nbytes, algorithm.everyone
        self.speed, self.down, self.up, self.latency = (
            system.drawn(seed, key, len(sizes)) for key in (*RATES, "latency")
        )
        self.work, self.bytes = work, [model.itemsize * count for count in algorithm.traffic(len(model))]
        self.asks_all = algorithm.selections == 0
        self.seconds = 0.0
        self.every = algorithm.local_steps(sizes) if system.partial else None  # (m,) steps of a whole round
        self.steps: Array | None = None
        self.flights: Any = None  # of an asynchronous run
        self.selected = self.dropped = self.late = self.shortened = 0
        self._seed = seed

    def begin(self, round: int) -> None:
        """A new round; of a method that never selects all clients reply."""
        self.selected = self.dropped = self.late = self.shortened = 0
        if self.flights is not None:
            self.flights.begin()
        if round and self.asks_all:
            self.reply(None, round, 0)

    def kept(self) -> dict[str, Array]:
        """What a checkpoint keeps beside ``seconds``: arrays with a blank in their names."""
        return {}

    def resume(self, seconds: float, kept: dict[str, Array]) -> None:
        """Go on from the time of a checkpoint."""
        self.seconds = seconds

    def row(self) -> dict[str, float]:
        """The columns of the round."""
        if self.flights is not None:
            return dict(self.flights.row())
        row = {"asked": self.selected, "dropped": self.dropped, "late": self.late, "simulated_seconds": self.seconds}
        return row if self.every is None else row | {"shortened": self.shortened}

    def factor(self, ids: Array, round: int, again: int) -> Any:
        """By how much the computing of the clients ``ids`` differs in a selection: (c,), or one number."""
        if not self.system.jitter:
            return 1.0
        normal = stream(self._seed, "system", round, again, JITTER).standard_normal(len(self.sizes))
        return np.exp(self.system.jitter * normal[ids])

    def times(self, ids: Array, factor: Any, work: Array, down: float, up: float) -> Array:
        """T of the clients ``ids`` for ``work`` (m,) sample gradients, times ``factor``, and these bytes: (c,)."""
        return (
            self.latency[ids]
            + down / self.down[ids]
            + work[ids] / self.speed[ids] * factor
            + self.latency[ids]
            + up / self.up[ids]
        )

    def score(self, candidates: Array, round: int, again: int, batch: int | None, up: int) -> None:
        """Let the time pass in which candidates score themselves on ``batch`` samples (0: all; None: ``work``)."""
        work = self.work if batch is None else np.minimum(batch or np.inf, self.sizes)
        factor = self.factor(candidates, round, again)
        self.seconds += float(self.times(candidates, factor, work, self.model, up).max())

    def fitted(self, ids: Array, T: Array) -> tuple[Array, Array]:
        """The steps (c,) of clients that need T (c,) for all of theirs and have the deadline, and their own T."""
        assert self.every is not None
        assert self.system.deadline is not None
        idle, every = self.times(ids, 0.0, self.work, *self.bytes), self.every[ids]
        step = (T - idle) / every
        steps = np.clip(np.floor((self.system.deadline - idle) / step), 1, every)
        steps -= (idle + steps * step > self.system.deadline) & (steps > 1) & (steps < every)  # rounding
        short = (steps < every) & (self.system.deadline < T)
        steps = np.where(short, steps, every).astype(np.int64)
        return steps, np.where(short, idle + steps * step, T)

    def keep(self, steps: Array | None, ids: Array, replies: Array) -> None:
        """Keep the steps of those of the clients ``ids`` that reply, where they are their own."""
        if steps is None or self.every is None:
            return
        self.steps = steps[replies]
        self.shortened += int((self.steps < self.every[ids[replies]]).sum())

    def reply(self, selected: Array | None, round: int, again: int, units: int = 1) -> Array | None:
        """Those of ``selected`` (rising; None: all) that reply, None for all; the simulated time passes.

        ``again`` counts the selections of the round from 0. Clients do ``units`` times the work that the algorithm
        states; ``passes`` of the table stand for all of it.
        """
        m, system = len(self.sizes), self.system
        ids, steps = np.arange(m) if selected is None else selected, None
        work = self.work if system.passes is not None else units * self.work
        T = self.times(ids, self.factor(ids, round, again), work, *self.bytes)
        if self.every is not None:
            steps, T = self.fitted(ids, T)
        gone, late = np.zeros((2, len(ids)), bool)
        if system.dropout:
            gone = stream(self._seed, "system", round, again, DROPOUT).random(m)[ids] < system.dropout
        if system.deadline is not None:
            late = ~gone & (system.deadline < T)
        replies = ~(gone | late)
        if (missing := min(system.least, len(ids)) - int(replies.sum())) > 0:
            order = np.lexsort((T, gone))  # the late before those that dropped out, the fastest first
            back = order[~replies[order]][:missing]
            replies[back], gone[back], late[back] = True, False, False
        self.selected += len(ids)
        self.dropped += int(gone.sum())
        self.late += int(late.sum())
        every = np.arange(m)
        waited = self.times(every, self.factor(every, round, again), work, *self.bytes) if self.everyone else T[replies]
        self.seconds += max(float(waited.max()), system.deadline or 0.0) if late.any() else float(waited.max())
        self.keep(steps, ids, replies)
        return selected if replies.all() else ids[replies]
