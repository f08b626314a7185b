"""Who is at risk at which event of a survival model: samples sorted by time, and events that share one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.blocks import Block


class RiskSets(NamedTuple):
    """Who is at risk at which event, for the c clients of a block; positions count all (c, D) numbers, row by row.

    ``order`` (c, D): samples by falling time, padding last, so that those at risk at an event are the first ones.
    Of each of the E events: ``owner`` its client, ``events`` its place in the order, ``back`` the same in the order
    reversed, ``risk`` the place of the last sample at risk, ``samples`` the sample itself. ``upto`` (c, D): for each
    sample the place, in the order reversed, of the last one of its time.
    """

    order: Array
    owner: Array
    events: Array
    back: Array
    risk: Array
    samples: Array
    upto: Array
    ties: Ties


class Ties(NamedTuple):
    """Events that share their time with other events of their client.

    ``events``: which of the E events; ``starts``: where in these each time begins, ``counts``: how many events each
    has. ``share``: 0, 1/k … (k − 1)/k for the k events of a time.
    """

    events: Array
    starts: Array
    counts: Array
    share: Array

    def total(self, values: Array) -> Array:
        """Sums over the events of each time, one for each of these events: (e, …)."""
        return np.repeat(np.add.reduceat(values, self.starts, axis=0), self.counts, axis=0)


def risk_sets(block: Block) -> RiskSets:
    """The risk sets of a block whose labels are times, + where the event happened and − where it did not."""
    places = block.once("order of times", falling)
    D = places.shape[1]
    columns = np.arange(D)
    rows = np.arange(0, block.b.size, D)[:, None]
    order = places + rows
    label = block.b.take(order)
    real = block.w.take(order) > 0
    times = np.where(real, np.abs(label), -1)
    begins = np.concatenate([np.ones_like(real[:, :1]), times[:, 1:] != times[:, :-1]], axis=1)
    first = np.maximum.accumulate(np.where(begins, columns, 0), axis=1)
    ends = np.concatenate([begins[:, 1:], np.ones_like(real[:, :1])], axis=1)
    last = np.minimum.accumulate(np.where(ends, columns, D)[:, ::-1], axis=1)[:, ::-1]
    events = np.flatnonzero(real & (label > 0))
    upto = np.empty_like(order)
    upto.reshape(-1)[order] = rows + D - 1 - first
    return RiskSets(
        order=order,
        owner=events // D,
        events=events,
        back=(rows + columns[::-1]).reshape(-1)[events],
        risk=(rows + last).reshape(-1)[events],
        samples=order.reshape(-1)[events],
        upto=upto,
        ties=ties_of((rows + first).reshape(-1)[events], block.b.dtype),
    )


def falling(block: Block) -> Array:
    return np.argsort(np.where(block.w > 0, -np.abs(block.b), 1), axis=1, kind="stable")


def ties_of(times: Array, dtype: np.dtype[Any]) -> Ties:
    """The ties among events with these ``times``, (E,) numbers that are equal where the times are."""
    starts = np.flatnonzero(np.diff(times, prepend=-1))
    counts = np.diff(starts, append=len(times))
    tied = np.flatnonzero(np.repeat(counts > 1, counts))
    counts = counts[counts > 1]
    starts = np.cumsum(counts) - counts
    rank = np.arange(len(tied)) - np.repeat(starts, counts)
    return Ties(tied, starts, counts, (rank / np.repeat(counts, counts)).astype(dtype))
