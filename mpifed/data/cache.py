"""A cache of data sets, for runs that follow one another in one process."""

from __future__ import annotations

from typing import Any

import msgspec

from mpifed.core.typing import Array, Matrix
from mpifed.data.dataset import Data, Dataset, Wrapped
from mpifed.data.pool import WhenRead

MOST = 1 << 27  # bytes of samples that a rank caches


class CachedDataset(Wrapped):
    """The data set ``whole``; rows that were read before come from memory if the cache had room for them."""

    def __init__(self, whole: Dataset, cache: Cache) -> None:
        super().__init__(whole)
        self.cache = cache
        self.pieces: dict[tuple[int, int, bool], tuple[Matrix, Array]] = {}
        self.bytes = size_in_bytes(whole)

    def part(self, lo: int, hi: int, test: bool) -> tuple[Matrix, Array]:
        piece = self.pieces.get((lo, hi, test))
        if piece is None:
            piece = super().part(lo, hi, test)
            size = size_in_bytes(piece)
            # One that the cache does not have, or has dropped, would grow beyond its bound unseen.
            if self in self.cache.sets.values() and self.cache.make_room(self, size):
                self.pieces[lo, hi, test] = piece
                self.bytes += size
        return piece


class Cache:
    """The data sets used last, by table, seed and dtype; together at most ``most`` bytes."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.sets: dict[bytes, CachedDataset] = {}

    def load(self, data: Data, seed: int, dtype: str) -> Dataset:
        # Data with a seed of their own are the same for all seeds of runs.
        key = msgspec.json.encode((data, seed if data.seed is None else None, dtype))
        # Taken out and put in again behind the others: the first of a dict is then what was unused for longest.
        dataset = self.sets.pop(key, None) or CachedDataset(data.load(seed, dtype), self)
        if self.make_room(dataset, dataset.bytes):
            self.sets[key] = dataset
        return dataset

    def make_room(self, own: CachedDataset, more: int) -> bool:
        """Drop the data sets unused for longest, except ``own``, to fit ``more`` bytes; whether these fit now."""
        others = [key for key, dataset in self.sets.items() if dataset is not own]
        # What is too large even for an empty cache drops nothing.
        while more <= self.most < more + self._bytes() and others:
            del self.sets[others.pop(0)]
        return more + self._bytes() <= self.most

    def _bytes(self) -> int:
        return sum(dataset.bytes for dataset in self.sets.values())


def size_in_bytes(value: Any) -> int:
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if hasattr(value, "indptr"):
        return size_in_bytes((value.data, value.indices, value.indptr))
    if isinstance(value, Dataset | WhenRead):
        value = tuple(vars(value).values())
    return sum(map(size_in_bytes, value)) if isinstance(value, tuple) else 0
