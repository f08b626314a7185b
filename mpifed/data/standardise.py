"""Features with mean 0 and standard deviation 1 over the training samples of all clients or of each."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

import numpy as np

from mpifed.core.arrays import row_offsets
from mpifed.core.errors import UserError
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import Dataset, DatasetWrapper, Units, iter_client_ranges
from mpifed.data.labels import abridge

StandardiseMethod = Literal["pooled", "own", "federated"]
READ = 1 << 22  # numbers of X read at a time
TINY = 1e-13  # of Σa²/d: a variance that is rounding


class StandardisedDataset(DatasetWrapper):
    """A data set with features (a − mean)/sd, where sd² is the mean of (a − mean)²; constant ones are 0.

    "pooled": mean and sd of all training samples. "federated": the same from the sums Σa and Σa² of each client, which
    travel. "own": mean and sd of each client. Test samples are scaled as the training samples are. Columns of 0 and 1
    that stand for levels are scaled only with ``levels``.
    """

    def __init__(self, dataset: Dataset, how: StandardiseMethod, levels: bool) -> None:
        if dataset.sparse:
            raise UserError(
                f'data.standardise = "{how}" would make a sparse matrix dense, because it takes means off: leave it out'
            )
        super().__init__(dataset)
        self.how = how
        scaled = np.ones(dataset.n, bool)
        for feature in () if levels else dataset.table:
            if feature.levels:
                scaled[feature.first : feature.first + feature.width] = False
        self.scaled = np.flatnonzero(scaled)
        note = self.prepare()
        self.notes = (*dataset.notes, *([note] if note else []))
        if how == "federated":  # Σa, Σa² and d_i, then mean and sd
            k = len(self.scaled)
            self.exchanged = (self.m, 8 * self.m * (2 * k + 1), 8 * self.m * 2 * k)
            up = f"standardising takes an exchange before round 1, {self.exchanged[1]:,} bytes up"
            self.notes += (f"{up} (Σa and Σa² of {k} features) and {self.exchanged[2]:,} down, which is charged",)

    def prepare(self) -> str:
        """Compute mean and sd (k,) of all clients; return a note on constant features."""
        if self.how == "own":
            count = sum(int(np.any(moments_of(X)[1] == 0)) for X in self.clients(0, self.m))
            return f"{count} of {self.m} clients have features that are constant there: they are 0" if count else ""
        self.mean, self.sd = self.moments_of_sums() if self.how == "federated" else self.pooled_moments()
        self.units = Units(np.zeros(self.n), np.ones(self.n))
        self.units.mean[self.scaled] = self.mean
        self.units.deviation[self.scaled] = self.sd
        constant = self.scaled[self.sd == 0]
        names = abridge([self.features[j] if self.features else f"{j}" for j in constant])
        return f"constant features are 0 when they are standardised: {', '.join(names)}" if names else ""

    def read_clients(self, lo: int, hi: int, role: str) -> tuple[SampleMatrix, Array]:
        X, y = super().read_clients(lo, hi, role)
        if self.how != "own":
            return self.scale(X, self.mean, self.sd), y
        sizes = self.sizes_of(role)
        assert sizes is not None
        scaled = np.empty_like(X)
        for (a, b), rows in zip(pairwise(row_offsets(sizes[lo:hi]).tolist()), self.clients(lo, hi), strict=True):
            scaled[a:b] = self.scale(X[a:b], *moments_of(rows))
        return scaled, y

    def scale(self, X: Array, mean: Array, sd: Array) -> Array:
        scaled = X.copy()
        scaled[:, self.scaled] = np.where(sd > 0, (X[:, self.scaled] - mean) / np.where(sd > 0, sd, 1), 0)
        return scaled

    def clients(self, lo: int, hi: int) -> Iterator[Array]:
        """Yield the columns to scale (d_i, k) of the training samples of one client after the other."""
        first = lo
        for X, last in self.groups(lo, hi):
            for a, b in pairwise(row_offsets(self.sizes[first:last]).tolist()):
                yield X[a:b]
            first = last

    def groups(self, lo: int, hi: int) -> Iterator[tuple[Array, int]]:
        """Yield the columns to scale (rows, k) of some clients at a time, and the client after these."""
        for a, b in iter_client_ranges(self.sizes[lo:hi], self.n, READ):
            yield self.inner.rows(lo + a, lo + b)[0][:, self.scaled].astype(np.float64), lo + b

    def pooled_moments(self) -> tuple[Array, Array]:
        """Return mean and standard deviation (k,) of all training samples, from those of groups of clients.

        Source: T. F. Chan, G. H. Golub, R. J. LeVeque, Updating formulae and a pairwise algorithm for computing sample
        variances, 1979.
        """
        mean, square = np.zeros(len(self.scaled)), np.zeros(len(self.scaled))
        low, high = np.full(len(self.scaled), np.inf), np.full(len(self.scaled), -np.inf)
        d = 0
        for X, _ in self.groups(0, self.m):
            group_mean = X.mean(axis=0)
            step = group_mean - mean
            square += ((X - group_mean) ** 2).sum(axis=0) + step**2 * (d * len(X) / (d + len(X)))
            d += len(X)
            mean += step * (len(X) / d)
            low, high = np.minimum(low, X.min(axis=0)), np.maximum(high, X.max(axis=0))
        return mean, np.where(low == high, 0, np.sqrt(square / d))

    def moments_of_sums(self) -> tuple[Array, Array]:
        """Return mean and sd (k,) from Σa and Σa² of each client; sd² = Σa²/d − mean² is inexact for a large mean²."""
        d = int(self.sizes.sum())
        first, second = np.zeros(len(self.scaled)), np.zeros(len(self.scaled))
        for X in self.clients(0, self.m):
            first += X.sum(axis=0)
            second += (X**2).sum(axis=0)
        variance = second / d - (first / d) ** 2
        return first / d, np.sqrt(np.where(variance > TINY * (second / d), variance, 0))


def moments_of(X: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation (k,) of the rows of one client; a deviation is 0 where rows are the same."""
    sd = X.std(axis=0)
    return X.mean(axis=0), np.where(X.min(axis=0) == X.max(axis=0), 0, sd)
