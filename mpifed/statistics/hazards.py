"""The weights with which samples at risk count at each event of a survival model, from their scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block


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


WIDE = 0.4  # of the least exponent: where scores of a client differ by more, sums of e^z are computed from logarithms


class Hazards:
    """p_kj = e^{z_j}(1 − s_kj)/D_k for the E events k of a block and the samples j at risk, at scores z (c, D).

    D_k = Σ_j e^{z_j}(1 − s_kj). With ``efron`` s_kj is 0, 1/e … (e − 1)/e for the e events k at the time of an event j,
    else 0. No p is formed: all sums over j or k are cumulative sums along time, in units of the largest e^z.
    """

    def __init__(self, block: Block, Z: Array, efron: bool) -> None:
        self.sets: RiskSets = block.note("risk sets", risk_sets)
        self.Z = Z
        self.wide, self.far = None, None
        # in units of the largest e^z of each client: none overflows, and those that vanish are of no weight. But a risk
        # set late in time may have small ones alone, whose sum would be 0: such clients are computed from logarithms
        top = Z.max(axis=1, keepdims=True)
        far = top[:, 0] - Z.min(axis=1) > -WIDE * np.log(np.finfo(Z.dtype).tiny)
        if far.any():
            self.far = np.flatnonzero(far)
            self.wide = WideHazards(risk_sets(block.take(self.far)), Z[self.far], efron)
            self.of_far = far[self.sets.owner]
            # their place in the arrays stays, with harmless numbers that are overwritten by those of WideHazards
            Z = np.where(far[:, None], top, Z)
        self.top = top
        self.E = np.exp(Z - top)
        self.sorted = self.E.take(self.sets.order)
        self.D = np.cumsum(self.sorted, axis=1).take(self.sets.risk)
        self.ties = self.sets.ties if efron and len(self.sets.ties.events) else None
        if self.ties is not None:
            self.own = self.sorted.take(self.sets.events[self.ties.events])
            self.D[self.ties.events] -= self.ties.share * self.ties.total(self.own)

    def ln_d(self) -> Array:
        """ln D_k: (E,)."""
        found = np.log(self.D) + self.top[self.sets.owner, 0]
        if self.wide is not None:
            found[self.of_far] = self.wide.ln_d
        return found

    def expected(self) -> Array:
        """Σ_k p_kj, the events that the model expects of each sample: (c, D)."""
        found = self._spread(1 / self.D)
        if self.wide is not None:
            found[self.far] = self.wide.expected()
        # the difference of two sums that Efron's ties take may be −1e-17, and its root is taken for the Hessian
        return np.maximum(found, 0, out=found)

    def mean(self, values: Array) -> Array:
        """Σ_j p_kj v_j for v (c, D) or (c, D, n), by falling time: (E,) or (E, n)."""
        extra = values.shape[2:]
        own, D = (part.reshape(*part.shape, *(1,) * len(extra)) for part in (self.sorted, self.D))
        found = np.cumsum(own * values, axis=1).reshape(-1, *extra)[self.sets.risk]
        if self.ties is not None:
            places = self.sets.events[self.ties.events]
            parts = own.reshape(-1, *own.shape[2:])[places] * values.reshape(-1, *extra)[places]
            share = self.ties.share.reshape(-1, *(1,) * len(extra))
            found[self.ties.events] -= share * self.ties.total(parts)
        found /= D
        if self.wide is not None:
            found[self.of_far] = self.wide.mean(values[self.far])
        return found

    def spread(self, values: Array) -> Array:
        """Σ_k p_kj v_k for v (E,): (c, D)."""
        found = self._spread(values / self.D)
        if self.wide is not None:
            found[self.far] = self.wide.spread(values[self.of_far])
        return found

    def _spread(self, values: Array) -> Array:
        """Σ_k e^{z_j}(1 − s_kj) v_k for v (E,): (c, D)."""
        level = np.zeros_like(self.E)
        level.reshape(-1)[self.sets.back] = values
        found = np.cumsum(level, axis=1).take(self.sets.upto)
        found *= self.E
        if self.ties is not None:
            tied = self.ties.events
            part = self.own * self.ties.total(self.ties.share * values[tied])
            found.reshape(-1)[self.sets.samples[tied]] -= part
        return found


class WideHazards:
    """What ``Hazards`` are, from logarithms, for scores z (c, D) of any size; it takes much longer."""

    def __init__(self, sets: RiskSets, Z: Array, efron: bool) -> None:
        self.sets = sets
        self.Z = Z
        self.logs = Z.take(sets.order)
        self.ln_d = np.logaddexp.accumulate(self.logs, axis=1).take(sets.risk)
        self.tied = sets.ties.events if efron else sets.ties.events[:0]
        self.share = sets.ties.share[: len(self.tied)]
        if len(self.tied):
            self.own = np.exp(self.logs.take(sets.events[self.tied]) - self.ln_d[self.tied])
            self.left = 1 - self.share * sets.ties.total(self.own)  # D_k : the sum of all e^z
            self.ln_d[self.tied] += np.log(self.left)
        self.back = np.full_like(Z, -np.inf)
        self.back.reshape(-1)[sets.back] = -self.ln_d
        self.reached = np.exp(Z + np.logaddexp.accumulate(self.back, axis=1).take(sets.upto))

    def expected(self) -> Array:
        return self._without_ties(self.reached.copy(), np.ones_like(self.ln_d))

    def mean(self, values: Array) -> Array:
        flat = values.reshape(-1, *values.shape[2:])
        found = running(self.logs, values).reshape(flat.shape)[self.sets.risk]
        if len(self.tied):
            own, left, share = (part.reshape(-1, *(1,) * (flat.ndim - 1)) for part in (self.own, self.left, self.share))
            at = flat[self.sets.events[self.tied]]
            found[self.tied] = (found[self.tied] - share * self.sets.ties.total(own * at)) / left
        return found

    def spread(self, values: Array) -> Array:
        level = np.zeros_like(self.back)
        level.reshape(-1)[self.sets.back] = values
        return self._without_ties(self.reached * running(self.back, level).take(self.sets.upto), values)

    def _without_ties(self, found: Array, values: Array) -> Array:
        """``found`` (c, D) without what the events at the time of an event have too much of it, in place."""
        if len(self.tied):
            part = self.own * self.sets.ties.total(self.share * values[self.tied] / self.left)
            found.reshape(-1)[self.sets.samples[self.tied]] -= part
        return found


def running(logs: Array, values: Array) -> Array:
    """Σ_{q <= p} e^{z_q} v_q / Σ_{q <= p} e^{z_q} for z (c, D) and v (c, D) or (c, D, n); 0 where all z_q are −∞.

    Each mean is computed from the one before.
    """
    totals = np.logaddexp.accumulate(logs, axis=1)
    shares = np.exp(logs - np.where(totals > -np.inf, totals, 0))
    shares = shares.reshape(*shares.shape, *(1,) * (values.ndim - 2))
    found = np.empty_like(values)
    # a loop over samples, for a cumulative sum of e^z v would overflow or lose all digits: that is why it is slow
    mean = np.zeros_like(values[:, 0])
    for p in range(logs.shape[1]):
        mean = mean + shares[:, p] * (values[:, p] - mean)
        found[:, p] = mean
    return found
