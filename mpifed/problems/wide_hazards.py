"""The weights of samples at risk where their scores differ so much that e^z of some is 0 beside that of others."""

import numpy as np

from mpifed.core.typing import Array
from mpifed.problems.risk_sets import RiskSets


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
        """Σ_k p_kj: (c, D)."""
        return self._without_ties(self.reached.copy(), np.ones_like(self.ln_d))

    def mean(self, values: Array) -> Array:
        """Σ_j p_kj v_j for v (c, D) or (c, D, n), by falling time: (E,) or (E, n)."""
        flat = values.reshape(-1, *values.shape[2:])
        found = running(self.logs, values).reshape(flat.shape)[self.sets.risk]
        if len(self.tied):
            own, left, share = (part.reshape(-1, *(1,) * (flat.ndim - 1)) for part in (self.own, self.left, self.share))
            at = flat[self.sets.events[self.tied]]
            found[self.tied] = (found[self.tied] - share * self.sets.ties.total(own * at)) / left
        return found

    def spread(self, values: Array) -> Array:
        """Σ_k p_kj v_k for v (E,): (c, D)."""
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
    mean = np.zeros_like(values[:, 0])
    for p in range(logs.shape[1]):
        mean = mean + shares[:, p] * (values[:, p] - mean)
        found[:, p] = mean
    return found
