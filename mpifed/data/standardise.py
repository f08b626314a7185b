"""Features with mean 0 and standard deviation 1 over the training samples of all clients or of each."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import numpy as np

from mpifed.core.arrays import starts_of
from mpifed.core.errors import UserError
from mpifed.core.typing import Array, Matrix
from mpifed.data.dataset import Dataset, Units, Wrapped, ranges
from mpifed.data.labels import folded

How = Literal["pooled", "own", "federated"]
READ = 1 << 22  # numbers of X read at a time
TINY = 1e-13  # of Σa²/d: a variance that is rounding


class Standardised(Wrapped):
    """The data set ``whole`` with features (a − mean)/sd, where sd² is the mean of (a − mean)²; constant ones are 0.

    "pooled": mean and sd of all training samples. "federated": the same from the sums Σa and Σa² of each client, which
    travel. "own": each client's own. Test samples are scaled as the training samples are. Columns of 0 and 1 that stand
    for levels stay as they are, but for ``levels``.
    """

    def __init__(self, whole: Dataset, how: How, levels: bool) -> None:
        if whole.sparse:
            raise UserError(
                f'data.standardise = "{how}" would make a sparse matrix dense, because it takes means off: leave it out'
            )
        super().__init__(whole)
        self.how = how
        scaled = np.ones(whole.n, bool)
        for feature in () if levels else whole.table:
            if feature.levels:
                scaled[feature.first : feature.first + feature.width] = False
        self.scaled = np.flatnonzero(scaled)
        note = self.prepare()
        self.notes = (*whole.notes, *([note] if note else []))
        if how == "federated":  # Σa, Σa² and d_i, then mean and sd
            k = len(self.scaled)
            self.exchanged = (self.m, 8 * self.m * (2 * k + 1), 8 * self.m * 2 * k)
            told = f"standardising takes an exchange before round 1, {self.exchanged[1]:,} bytes up"
            self.notes += (f"{told} (Σa and Σa² of {k} features) and {self.exchanged[2]:,} down, which is charged",)

    def prepare(self) -> str:
        """Compute mean and sd (k,) of all clients; a note on constant features."""
        if self.how == "own":
            count = sum(int(np.any(scale_of(X)[1] == 0)) for X in self.clients(0, self.m))
            return f"{count} of {self.m} clients have features that are constant there: they are 0" if count else ""
        self.mean, self.sd = self.sums() if self.how == "federated" else self.pooled()
        self.units = Units(np.zeros(self.n), np.ones(self.n))
        self.units.mean[self.scaled] = self.mean
        self.units.deviation[self.scaled] = self.sd
        constant = self.scaled[self.sd == 0]
        names = folded([self.features[j] if self.features else f"{j}" for j in constant])
        return f"constant features are 0 when they are standardised: {', '.join(names)}" if names else ""

    def part(self, lo: int, hi: int, test: bool) -> tuple[Matrix, Array]:
        X, y = super().part(lo, hi, test)
        if self.how != "own":
            return self.scale(X, self.mean, self.sd), y
        sizes = self.sizes_test if test else self.sizes
        assert sizes is not None
        made = np.empty_like(X)
        for (a, b), own in zip(pairwise(starts_of(sizes[lo:hi]).tolist()), self.clients(lo, hi), strict=True):
            made[a:b] = self.scale(X[a:b], *scale_of(own))
        return made, y

    def scale(self, X: Array, mean: Array, sd: Array) -> Array:
        found = X.copy()
        found[:, self.scaled] = np.where(sd > 0, (X[:, self.scaled] - mean) / np.where(sd > 0, sd, 1), 0)
        return found

    def clients(self, lo: int, hi: int) -> Iterator[Array]:
        first = lo
        for X, last in self.groups(lo, hi):
            for a, b in pairwise(starts_of(self.sizes[first:last]).tolist()):
                yield X[a:b]
            first = last

    def groups(self, lo: int, hi: int) -> Iterator[tuple[Array, int]]:
        """The scaled columns (rows, k) of some clients at a time, and the client after these."""
        for a, b in ranges(self.sizes[lo:hi], self.n, READ):
            yield self.whole.rows(lo + a, lo + b)[0][:, self.scaled].astype(np.float64), lo + b

    def pooled(self) -> tuple[Array, Array]:
        """Mean and standard deviation (k,) of all training samples, from those of groups of clients.

        Source: T. F. Chan, G. H. Golub, R. J. LeVeque, Updating formulae and a pairwise algorithm for computing sample
        variances, 1979.
        """
        mean, square = np.zeros(len(self.scaled)), np.zeros(len(self.scaled))
        low, high = np.full(len(self.scaled), np.inf), np.full(len(self.scaled), -np.inf)
        d = 0
        for X, _ in self.groups(0, self.m):
            own = X.mean(axis=0)
            step = own - mean
            square += ((X - own) ** 2).sum(axis=0) + step**2 * (d * len(X) / (d + len(X)))
            d += len(X)
            mean += step * (len(X) / d)
            low, high = np.minimum(low, X.min(axis=0)), np.maximum(high, X.max(axis=0))
        return mean, np.where(low == high, 0, np.sqrt(square / d))

    def sums(self) -> tuple[Array, Array]:
        """The same from Σa and Σa² of each client: var = Σa²/d − mean², less exact where mean² is far larger."""
        d = int(self.sizes.sum())
        first, second = np.zeros(len(self.scaled)), np.zeros(len(self.scaled))
        for X in self.clients(0, self.m):
            first += X.sum(axis=0)
            second += (X**2).sum(axis=0)
        variance = second / d - (first / d) ** 2
        return first / d, np.sqrt(np.where(variance > TINY * (second / d), variance, 0))


def scale_of(X: Array) -> tuple[Array, Array]:
    """Mean and standard deviation (k,) of the rows of one client, 0 where they are the same."""
    sd = X.std(axis=0)
    return X.mean(axis=0), np.where(X.min(axis=0) == X.max(axis=0), 0, sd)
