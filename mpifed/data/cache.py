"""A cache of data sets, for successive runs in one process."""

from __future__ import annotations

from typing import Any

import msgspec

from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import Data, Dataset, DatasetWrapper
from mpifed.data.pool import LazyMatrix

MOST = 1 << 27  # bytes of samples that a rank caches


class CachedDataset(DatasetWrapper):
    """A data set that keeps the rows it has read in memory, as far as its cache has room for them."""

    def __init__(self, dataset: Dataset, cache: Cache) -> None:
        super().__init__(dataset)
        self.cache = cache
        self.pieces: dict[tuple[int, int, str], tuple[SampleMatrix, Array]] = {}
        self.bytes = size_in_bytes(dataset)

    def read_clients(self, lo: int, hi: int, role: str) -> tuple[SampleMatrix, Array]:
        piece = self.pieces.get((lo, hi, role))
        if piece is None:
            piece = super().read_clients(lo, hi, role)
            size = size_in_bytes(piece)
            # A data set that the cache has dropped must not grow, because its bytes are no longer counted.
            if self in self.cache.sets.values() and self.cache.make_room(self, size):
                self.pieces[lo, hi, role] = piece
                self.bytes += size
        return piece


class Cache:
    """The data sets used most recently, by table, seed and dtype, with at most ``max_bytes`` bytes together."""

    def __init__(self, max_bytes: int = MOST) -> None:
        self.max_bytes = max_bytes
        self.sets: dict[bytes, CachedDataset] = {}

    def load(self, data: Data, seed: int, dtype: str) -> Dataset:
        """Return the data set of a source, from the cache if it is there."""
        # Data with a seed of their own are the same for all seeds of runs.
        key = msgspec.json.encode((data, seed if data.seed is None else None, dtype))
        # Moved to the end of the dict, whose first entry is then the data set unused for longest.
        dataset = self.sets.pop(key, None) or CachedDataset(data.load(seed, dtype), self)
        if self.make_room(dataset, dataset.bytes):
            self.sets[key] = dataset
        return dataset

    def make_room(self, keep: CachedDataset, more: int) -> bool:
        """Drop the data sets unused for longest, except ``keep``, until ``more`` bytes fit; return whether they do."""
        others = [key for key, dataset in self.sets.items() if dataset is not keep]
        # A data set too large even for an empty cache drops nothing.
        while more <= self.max_bytes < more + self._bytes() and others:
            del self.sets[others.pop(0)]
        return more + self._bytes() <= self.max_bytes

    def _bytes(self) -> int:
        return sum(dataset.bytes for dataset in self.sets.values())


def size_in_bytes(value: Any) -> int:
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if hasattr(value, "indptr"):
        return size_in_bytes((value.data, value.indices, value.indptr))
    if isinstance(value, Dataset | LazyMatrix):
        value = tuple(vars(value).values())
    return sum(map(size_in_bytes, value)) if isinstance(value, tuple) else 0
