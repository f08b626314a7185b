"""Simulated devices of clients, the times that they take and at which they are there: computed, never measured."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from mpifed.compressors.compressor import Compressor
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.simulated_time.availability import Intervals, find_ends
from mpifed.features.simulated_time.system import KEYS, System
from mpifed.federation.setup import RunSpec

JITTER = 1  # number of the stream of a round; dropping out has 0, and streams of clients are in round 0
PRESENCE = 3  # third number of the streams of rounds; dropping out has 0, and jitter 1
DRAWS = 10_000  # draws of a round after which too few clients are taken to be there in all


class Presence:
    """The clients that are ``there`` (m,) bool, and the times (m,) at which that ``changes``.

    This one draws them anew in each round, with the probabilities p (m,); in a round nobody comes or leaves.
    """

    def __init__(self, p: Array, seed: int) -> None:
        self.p = p
        self.seed = seed
        self.there = np.ones(len(p), bool)
        self.changes = np.full(len(p), np.inf)

    def wait(self, round: int, seconds: float, minimum: int) -> float:
        """Return the time of the first moment from ``seconds`` on at which at least ``minimum`` clients are there."""
        for again in range(DRAWS):
            self.there = stream(self.seed, "system", round, again, PRESENCE).random(len(self.p)) < self.p
            if np.count_nonzero(self.there) >= minimum:
                return seconds
        raise UserError(
            f"fewer than {minimum} clients were there in {DRAWS:,} draws of round {round}: give a larger "
            "system.availability, or a smaller system.least"
        )

    def update(self, seconds: float) -> None:
        """Go on to a later time of the same round."""


class TimedPresence(Presence):
    """Clients that are there in intervals which repeat after a period.

    Interval k of its client is there from cP + begin[k] until cP + end[k], in period c = 0, ±1, ±2 …; sums are rounded
    in this way alone, so that who is there depends on the time and not on the moments asked for before. ``edges`` are
    begin and end of each interval in turn, sorted by client and time; ``next`` and ``cycle`` (m,) are the edge that
    each client comes to next, and in which period.
    """

    def __init__(self, intervals: Intervals, m: int) -> None:
        self.period = intervals.period
        client, begin, end = join_intervals(*intervals)
        self.edges = np.stack([begin, end], axis=1).ravel()
        cuts = 2 * np.searchsorted(client, np.arange(m + 1))
        self.first = cuts[:-1]
        self.last = cuts[1:] - 1
        # time begins in the last interval of the period before, or after it
        self.there = self.first < self.last
        self.next = self.last.copy()
        self.cycle = np.full(m, -1.0)
        self.changes = np.where(self.there, self.edges[self.last] - self.period, np.inf)

    def wait(self, round: int, seconds: float, minimum: int) -> float:
        self.update(seconds)
        last = seconds + 2 * self.period
        while (missing := minimum - np.count_nonzero(self.there)) > 0:
            arrivals = self.changes[~self.there]
            # before so many of those that are away now have come, too few are there
            seconds = np.partition(arrivals, missing - 1)[missing - 1] if missing <= len(arrivals) else np.inf
            if seconds > last:
                raise UserError(
                    f"system.least = {minimum} is wrong: by system.availability never so many clients are there at a "
                    "time, so give a smaller one"
                )
            self.update(seconds)
        return float(seconds)

    def update(self, seconds: float) -> None:
        P = self.period
        ids = np.flatnonzero(self.changes <= seconds)
        skipped = np.floor((seconds - self.changes[ids]) / P)  # whole periods, after which all is as before
        if skipped.any():
            skipped -= (self.cycle[ids] + skipped) * P + self.edges[self.next[ids]] > seconds
            self.cycle[ids] += skipped
        while len(ids):
            edge = self.next[ids] + 1
            is_over = edge > self.last[ids]
            edge[is_over] = self.first[ids[is_over]]
            self.cycle[ids] += is_over
            self.next[ids] = edge
            self.there[ids] = edge % 2 == 1
            changes = self.cycle[ids] * P + self.edges[edge]
            self.changes[ids] = changes
            ids = ids[changes <= seconds]


def join_intervals(client: Array, begin: Array, end: Array, period: float) -> tuple[Array, Array, Array]:
    """Return sorted intervals, joined where one ends when the next one of its client begins, also after a period."""
    is_next = client[1:] == client[:-1]
    joins = is_next & (begin[1:] == end[:-1])
    opens = np.append(True, ~joins)
    client = client[opens]
    begin = begin[opens]
    end = end[np.append(~joins, True)]
    heads, tails = find_ends(client)
    wraps = end[tails] == begin[heads] + period
    end[tails[wraps]] = period + end[heads[wraps]]
    end[tails[wraps & (heads == tails)]] = np.inf  # always there
    stays = np.ones(len(client), bool)
    stays[heads[wraps & (heads < tails)]] = False
    return client[stays], begin[stays], end[stays]


class SimulatedDevices:
    """Simulated devices of m clients with ``sizes`` samples.

    ``work`` (m,) are sample gradients between two selections, ``bytes`` those of a client down and up per selection,
    which ``compressors`` (up, down) reduce.
    """

    def __init__(
        self, system: System, setup: RunSpec, sizes: Array, compressors: Mapping[str, Compressor] | None = None
    ) -> None:
        self.system = system
        self.seed = setup.seed
        self.sizes = sizes
        self.speed, self.down, self.up, self.latency = (
            system.draw_property(setup.seed, key, len(sizes)) for key in KEYS
        )
        self.work = system.count_work(setup.algorithm, sizes) if setup.counted is None else setup.counted.work
        self.model, self.bytes = setup.start.nbytes, message_sizes(setup, compressors or {})

    @cached_property
    def presence(self) -> Presence | None:
        """The clients that are there, or None where all always are; rank 0 alone asks for it and reads a trace."""
        match self.system.draw_availability(self.seed, len(self.sizes)):
            case None:
                return None
            case Intervals() as intervals:
                return TimedPresence(intervals, len(self.sizes))
            case p:
                return Presence(p, self.seed)

    def factor(self, ids: Array, round: int, again: int) -> Any:
        """Return the random factor on the computing times of clients ``ids`` in a selection: (c,), or one number."""
        if not self.system.jitter:
            return 1.0
        # drawn for all m clients and then indexed: a client's factor does not depend on who else is selected
        normal = stream(self.seed, "system", round, again, JITTER).standard_normal(len(self.sizes))
        return np.exp(self.system.jitter * normal[ids])

    def times(self, ids: Array, factor: Any, work: Array, down: float, up: float) -> Array:
        """Return T of clients ``ids`` for ``work`` (m,) sample gradients times ``factor`` and these bytes: (c,)."""
        latency = self.latency[ids]
        return latency + down / self.down[ids] + work[ids] / self.speed[ids] * factor + latency + up / self.up[ids]

    def round_times(self, ids: Array, factor: Any) -> Array:
        """Return T of clients ``ids`` for the method's own work and bytes: (c,)."""
        return self.times(ids, factor, self.work, *self.bytes)


def message_sizes(setup: RunSpec, compressors: Mapping[str, Compressor]) -> list[float]:
    """Return the bytes that a selected client downloads and uploads for each selection."""
    n = setup.shared_start.size
    size = setup.start.itemsize
    sizes = []
    for count, way in zip(setup.algorithm.message_size(n), ("down", "up"), strict=True):
        C = compressors.get(way)
        # a compressed message has whole bytes, and there are count/n of them
        sizes.append(count * size if C is None else count / n * -(-C.bits(n, size) // 8))
    return sizes
