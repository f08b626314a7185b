"""The weights with which samples at risk count at each event of a survival model, from their scores."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block


class RiskSets(NamedTuple):
    """The samples at risk at each event, for the c clients of a block; positions count all (c, D) numbers, row by row.

    ``order`` (c, D): samples by falling time, padding last, so that those at risk at an event come first. For each of
    the E events: ``owner`` its client, ``events`` its position in the order, ``back`` its position in the reversed
    order, ``risk`` the position of the last sample at risk, ``samples`` the sample itself. ``upto`` (c, D): for each
    sample the position, in the reversed order, of the last one of its time.
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
    """The events that share their time with other events of their client.

    ``events``: which of the E events; ``starts``: where in these each time begins, ``counts``: how many events each
    has. ``fraction``: 0, 1/k … (k − 1)/k for the k events of a time.
    """

    events: Array
    starts: Array
    counts: Array
    fraction: Array

    def total(self, values: Array) -> Array:
        """Return sums over the events of each time, repeated for each of these events: (e, …)."""
        return np.repeat(np.add.reduceat(values, self.starts, axis=0), self.counts, axis=0)


def find_risk_sets(block: Block) -> RiskSets:
    """Return the risk sets of a block whose labels are times, + for an event and − for a censored sample."""
    places = block.once("order of times", order_by_falling_time)
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
        ties=find_ties((rows + first).reshape(-1)[events], block.b.dtype),
    )


def order_by_falling_time(block: Block) -> Array:
    """Return the order of each client's samples by falling time, padding last: (c, D)."""
    return np.argsort(np.where(block.w > 0, -np.abs(block.b), 1), axis=1, kind="stable")


def find_ties(times: Array, dtype: np.dtype[Any]) -> Ties:
    """Return the ties among events with these ``times``: (E,) numbers that are equal if the times are."""
    starts = np.flatnonzero(np.diff(times, prepend=-1))
    counts = np.diff(starts, append=len(times))
    tied = np.flatnonzero(np.repeat(counts > 1, counts))
    counts = counts[counts > 1]
    starts = np.cumsum(counts) - counts
    rank = np.arange(len(tied)) - np.repeat(starts, counts)
    return Ties(tied, starts, counts, (rank / np.repeat(counts, counts)).astype(dtype))


WIDE = 0.4  # of the smallest exponent: if scores of a client differ by more, sums of e^z are computed from logarithms


class Hazards:
    """The weights p_kj = e^{z_j}(1 − s_kj)/D_k of samples j at risk at the E events k, at scores z (c, D).

    D_k = Σ_j e^{z_j}(1 − s_kj). With ``efron`` s_kj is 0, 1/e … (e − 1)/e for the e events k at the time of an event j,
    else 0. No p is formed: all sums over j or k are cumulative sums along time, in units of the largest e^z.
    """

    def __init__(self, block: Block, Z: Array, efron: bool) -> None:
        self.sets: RiskSets = block.note("risk sets", find_risk_sets)
        self.Z = Z
        self.wide, self.far = None, None
        # in units of the largest e^z of each client: none overflows, and underflows do not matter. But a late risk
        # set may hold small ones only, whose sum would be 0: such clients are computed from logarithms
        top = Z.max(axis=1, keepdims=True)
        far = top[:, 0] - Z.min(axis=1) > -WIDE * np.log(np.finfo(Z.dtype).tiny)
        if far.any():
            self.far = np.flatnonzero(far)
            self.wide = WideHazards(find_risk_sets(block.take(self.far)), Z[self.far], efron)
            self.far_events = far[self.sets.owner]
            # their rows stay in the arrays, with harmless numbers that those of WideHazards overwrite
            Z = np.where(far[:, None], top, Z)
        self.top = top
        self.E = np.exp(Z - top)
        self.sorted = self.E.take(self.sets.order)
        self.D = np.cumsum(self.sorted, axis=1).take(self.sets.risk)
        self.ties = self.sets.ties if efron and len(self.sets.ties.events) else None
        if self.ties is not None:
            self.tied_weights = self.sorted.take(self.sets.events[self.ties.events])
            self.D[self.ties.events] -= self.ties.fraction * self.ties.total(self.tied_weights)

    def ln_d(self) -> Array:
        """Return ln D_k: (E,)."""
        ln_d = np.log(self.D) + self.top[self.sets.owner, 0]
        if self.wide is not None:
            ln_d[self.far_events] = self.wide.ln_d
        return ln_d

    def expected(self) -> Array:
        """Return Σ_k p_kj, the number of events that the model expects of each sample: (c, D)."""
        expected = self._spread(1 / self.D)
        if self.wide is not None:
            expected[self.far] = self.wide.expected()
        # with Efron's ties a difference of two sums may be −1e-17, and the Hessian takes its root
        return np.maximum(expected, 0, out=expected)

    def mean(self, values: Array) -> Array:
        """Return Σ_j p_kj v_j for v (c, D) or (c, D, n), by falling time: (E,) or (E, n)."""
        extra = values.shape[2:]
        weights, D = (part.reshape(*part.shape, *(1,) * len(extra)) for part in (self.sorted, self.D))
        means = np.cumsum(weights * values, axis=1).reshape(-1, *extra)[self.sets.risk]
        if self.ties is not None:
            positions = self.sets.events[self.ties.events]
            parts = weights.reshape(-1, *weights.shape[2:])[positions] * values.reshape(-1, *extra)[positions]
            fraction = self.ties.fraction.reshape(-1, *(1,) * len(extra))
            means[self.ties.events] -= fraction * self.ties.total(parts)
        means /= D
        if self.wide is not None:
            means[self.far_events] = self.wide.mean(values[self.far])
        return means

    def spread(self, values: Array) -> Array:
        """Return Σ_k p_kj v_k for v (E,): (c, D)."""
        sums = self._spread(values / self.D)
        if self.wide is not None:
            sums[self.far] = self.wide.spread(values[self.far_events])
        return sums

    def _spread(self, values: Array) -> Array:
        """Return Σ_k e^{z_j}(1 − s_kj) v_k for v (E,): (c, D)."""
        level = np.zeros_like(self.E)
        level.reshape(-1)[self.sets.back] = values
        sums = np.cumsum(level, axis=1).take(self.sets.upto)
        sums *= self.E
        if self.ties is not None:
            tied = self.ties.events
            part = self.tied_weights * self.ties.total(self.ties.fraction * values[tied])
            sums.reshape(-1)[self.sets.samples[tied]] -= part
        return sums


class WideHazards:
    """Weights as in ``Hazards``, computed from logarithms for scores z (c, D) of any size, but much slower."""

    def __init__(self, sets: RiskSets, Z: Array, efron: bool) -> None:
        self.sets = sets
        self.Z = Z
        self.logs = Z.take(sets.order)
        self.ln_d = np.logaddexp.accumulate(self.logs, axis=1).take(sets.risk)
        self.tied = sets.ties.events if efron else sets.ties.events[:0]
        self.fraction = sets.ties.fraction[: len(self.tied)]
        if len(self.tied):
            self.tied_weights = np.exp(self.logs.take(sets.events[self.tied]) - self.ln_d[self.tied])
            self.remaining = 1 - self.fraction * sets.ties.total(self.tied_weights)  # D_k over the sum of all e^z
            self.ln_d[self.tied] += np.log(self.remaining)
        self.back = np.full_like(Z, -np.inf)
        self.back.reshape(-1)[sets.back] = -self.ln_d
        self.reached = np.exp(Z + np.logaddexp.accumulate(self.back, axis=1).take(sets.upto))

    def expected(self) -> Array:
        return self._without_ties(self.reached.copy(), np.ones_like(self.ln_d))

    def mean(self, values: Array) -> Array:
        flat = values.reshape(-1, *values.shape[2:])
        means = running_means(self.logs, values).reshape(flat.shape)[self.sets.risk]
        if len(self.tied):
            weights, remaining, fraction = (
                part.reshape(-1, *(1,) * (flat.ndim - 1)) for part in (self.tied_weights, self.remaining, self.fraction)
            )
            tied_values = flat[self.sets.events[self.tied]]
            means[self.tied] = (means[self.tied] - fraction * self.sets.ties.total(weights * tied_values)) / remaining
        return means

    def spread(self, values: Array) -> Array:
        level = np.zeros_like(self.back)
        level.reshape(-1)[self.sets.back] = values
        return self._without_ties(self.reached * running_means(self.back, level).take(self.sets.upto), values)

    def _without_ties(self, sums: Array, values: Array) -> Array:
        """Subtract from ``sums`` (c, D), in place, the parts that tied events count too much."""
        if len(self.tied):
            part = self.tied_weights * self.sets.ties.total(self.fraction * values[self.tied] / self.remaining)
            sums.reshape(-1)[self.sets.samples[self.tied]] -= part
        return sums


def running_means(logs: Array, values: Array) -> Array:
    """Return Σ_{q <= p} e^{z_q} v_q / Σ_{q <= p} e^{z_q} for z (c, D) and v (c, D) or (c, D, n); 0 if all z_q are −∞.

    Each mean is computed from the one before.
    """
    totals = np.logaddexp.accumulate(logs, axis=1)
    weights = np.exp(logs - np.where(totals > -np.inf, totals, 0))
    weights = weights.reshape(*weights.shape, *(1,) * (values.ndim - 2))
    means = np.empty_like(values)
    # a slow loop over samples, because a cumulative sum of e^z v would overflow or lose all digits
    mean = np.zeros_like(values[:, 0])
    for p in range(logs.shape[1]):
        mean = mean + weights[:, p] * (values[:, p] - mean)
        means[:, p] = mean
    return means
