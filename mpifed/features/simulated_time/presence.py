"""Who of the clients is there at a moment of simulated time, and until when."""

import msgspec
import numpy as np

from mpifed.core.component import shorten_value
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.simulated_time.availability import Availability, Intervals

PHASES = 4  # number of the stream in round 0, after those of the properties of devices
PRESENCE = 3  # third number of the streams of rounds; dropping out has 0, and jitter 1
DRAWS = 10_000  # draws of a round after which too few clients are taken to be there in all


class Presence:
    """The clients that are ``there`` (m,) bool, and the times (m,) at which that ``changes``.

    This one draws them anew in each round, with the probabilities p (m,); in a round nobody comes or leaves.
    """

    def __init__(self, p: Array, seed: int) -> None:
        self.p, self.seed = p, seed
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
    in this way alone, so that who is there depends on the time and not on the moments asked for before.
    """

    def __init__(self, intervals: Intervals, m: int) -> None:
        order = np.lexsort((intervals.begin, intervals.client))
        client, begin, end = (np.asarray(column)[order] for column in intervals[:3])
        self.period = intervals.period
        check_intervals(client, begin, end, self.period, m)
        client, self.begin, self.end = join_intervals(client, begin, end, self.period)
        self.first = np.searchsorted(client, np.arange(m + 1))  # of client i: first[i] <= k < first[i + 1]
        counts = np.diff(self.first)
        self.there = np.zeros(m, bool)
        self.changes = np.where(counts, -np.inf, np.inf)
        self.last_begun = self.first[:-1] - 1  # interval that began last, or none in period
        self.cycle = np.zeros(m)

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
        ids = np.flatnonzero(self.changes <= seconds)
        if not len(ids):
            return
        P, begin = self.period, self.begin
        first, last = self.first[ids], self.first[ids + 1] - 1
        cycle = np.floor(seconds / P)
        cycle += (cycle + 1) * P <= seconds
        # the interval that began last, found by steps of 1, 2, 4 … from the one before, and then of …, 2, 1
        k = np.where(self.cycle[ids] == cycle, self.last_begun[ids], first - 1)
        step, grows = 1, True
        while step:
            ahead = np.minimum(k + step, last)
            begun = cycle * P + begin[ahead] <= seconds
            grows = grows and bool((begun & (ahead > k)).any())
            k = np.where(begun, ahead, k)
            step = 2 * step if grows else step // 2
        self.last_begun[ids], self.cycle[ids] = k, cycle
        is_earlier = k < first  # it began in the period before
        k = np.where(is_earlier, last, k)
        cycles = cycle - is_earlier
        leaves = cycles * P + self.end[k]
        comes = np.where(k < last, cycles * P + begin[np.minimum(k + 1, last)], (cycles + 1) * P + begin[first])
        self.there[ids] = seconds < leaves
        self.changes[ids] = np.where(seconds < leaves, leaves, comes)


def check_intervals(client: Array, begin: Array, end: Array, period: float, m: int) -> None:
    """Raise ValueError for the first of these intervals, sorted by client and time, that cannot be."""
    if not len(client):
        raise ValueError("it has no intervals")
    is_next = client[1:] == client[:-1]
    overlaps = np.append(False, is_next & (begin[1:] < end[:-1]))
    heads, tails = np.flatnonzero(np.append(True, ~is_next)), np.flatnonzero(np.append(~is_next, True))
    overlaps[tails] |= end[tails] > begin[heads] + period
    rules = {
        f"clients are whole numbers from 0 to {m - 1}": ~((client >= 0) & (client < m) & (client % 1 == 0)),
        "times must be finite and not negative": ~(np.isfinite(begin) & np.isfinite(end) & (begin >= 0)),
        "until must be after from": end <= begin,
        f"it must begin before the period of {period:g} seconds is over": begin >= period,
        "that overlaps another interval of this client": overlaps,
    }
    for rule, is_wrong in rules.items():
        if is_wrong.any():
            k = int(np.argmax(is_wrong))
            raise ValueError(f"client {client[k]:g} is there from {begin[k]:g} until {end[k]:g} seconds: {rule}")


def join_intervals(client: Array, begin: Array, end: Array, period: float) -> tuple[Array, Array, Array]:
    """Return sorted intervals, joined where one ends when the next one of its client begins, also after a period."""
    is_next = client[1:] == client[:-1]
    joins = is_next & (begin[1:] == end[:-1])
    opens, closes = np.append(True, ~joins), np.append(~joins, True)
    client, begin, end = client[opens], begin[opens], end[closes]
    is_next = client[1:] == client[:-1]
    heads, tails = np.flatnonzero(np.append(True, ~is_next)), np.flatnonzero(np.append(~is_next, True))
    wraps = end[tails] == begin[heads] + period
    end[tails[wraps]] = period + end[heads[wraps]]
    end[tails[wraps & (heads == tails)]] = np.inf  # always there
    stays = np.ones(len(client), bool)
    stays[heads[wraps & (heads < tails)]] = False
    return client[stays], begin[stays], end[stays]


def make_presence(availability: Availability, seed: int, m: int) -> Presence:
    """Return the presence of m clients; raise UserError for probabilities or intervals that cannot be."""
    try:
        drawn = availability.draw(stream(seed, "system", 0, PHASES), m)
        if isinstance(drawn, Intervals):
            return TimedPresence(drawn, m)
        if np.shape(drawn) != (m,):
            raise ValueError(f"it has {np.size(drawn)} numbers, and there are {m} clients")
        is_valid = (drawn > 0) & (drawn <= 1)
        if not is_valid.all():
            first = int(np.argmin(is_valid))
            raise ValueError(f"it must be above 0 and at most 1, and client {first} has {drawn[first]:g}")
        return Presence(drawn, seed)
    except ValueError as error:
        value = shorten_value(msgspec.to_builtins(availability))
        raise UserError(f"system.availability = {value} is wrong: {error}") from None
