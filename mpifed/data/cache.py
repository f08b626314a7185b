"""The data sets of the last runs, for runs that follow one another in one process."""

from __future__ import annotations

from typing import Any

import msgspec

from mpifed.core.typing import Array, Matrix
from mpifed.data.base import Data, Dataset

MOST = 1 << 27  # bytes of samples that a rank keeps


class Kept(Dataset):
    """The data set ``whole`` with the rows it was asked for, as far as the cache it belongs to has room."""

    def __init__(self, whole: Dataset, cache: Cache) -> None:
        self.whole, self.cache = whole, cache
        self.m, self.n, self.sizes, self.sizes_test = whole.m, whole.n, whole.sizes, whole.sizes_test
        self.classes, self.sparse = whole.classes, whole.sparse
        self.pieces: dict[tuple[int, int, bool], tuple[Matrix, Array]] = {}
        self.bytes = held(whole)

    def rows(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        return self.piece(lo, hi, False)

    def rows_test(self, lo: int, hi: int) -> tuple[Matrix, Array]:
        return self.piece(lo, hi, True)

    def piece(self, lo: int, hi: int, test: bool) -> tuple[Matrix, Array]:
        """The rows, made or read only where they are not kept."""
        found = self.pieces.get((lo, hi, test))
        if found is None:
            found = (self.whole.rows_test if test else self.whole.rows)(lo, hi)
            if self.cache.room(self, held(found)):
                self.pieces[lo, hi, test] = found
                self.bytes += held(found)
        return found


class Cache:
    """Data sets by table, seed and dtype, ``most`` bytes together; those not used for the longest time give way."""

    def __init__(self, most: int = MOST) -> None:
        self.most, self.sets = most, dict[bytes, Kept]()

    def load(self, data: Data, seed: int, dtype: str) -> Dataset:
        """The same as data.load(seed, dtype)."""
        key = msgspec.json.encode((data, seed if data.seed is None else None, dtype))
        found = self.sets.pop(key, None) or Kept(data.load(seed, dtype), self)
        if self.room(found, found.bytes):
            self.sets[key] = found
        return found

    def room(self, own: Kept, more: int) -> bool:
        """Let others than ``own`` go for ``more`` bytes; whether there is room now."""
        others = [key for key, kept in self.sets.items() if kept is not own]
        while more <= self.most < more + sum(kept.bytes for kept in self.sets.values()) and others:
            del self.sets[others.pop(0)]
        return more + sum(kept.bytes for kept in self.sets.values()) <= self.most


def held(value: Any) -> int:
    """Bytes of the arrays in a data set, a tuple or a CSR matrix; what stays in its file has none."""
    if hasattr(value, "nbytes"):
        return int(value.nbytes)
    if hasattr(value, "indptr"):
        return held((value.data, value.indices, value.indptr))
    parts = vars(value).values() if isinstance(value, Dataset) else value if isinstance(value, tuple) else ()
    return sum(map(held, parts))
