"""/selection of a result file: which clients were selected in which round."""

import math
from collections.abc import Sequence

import numpy as np

from mpifed.core.typing import Array
from mpifed.results.columns import ALL, ALL_LISTED, SELECTION
from mpifed.results.netcdf import Dataset, Group, dataset, dimension, pieces

CHUNK_IDS = 1 << 12  # ids that are stored together, where a row is not longer
WIDEST = 1 << 16  # most ids of a row that are stored together


class SelectionLog:
    """The dataset (rounds, slots) of client ids, padded with -1.

    It is created with the first round in which a client is selected, because its width is known only then.
    """

    def __init__(self, file: Group, rounds: Dataset, clients: int) -> None:
        self.file = file
        self.rounds = rounds
        self.stored: Dataset | None = None
        self.dtype = np.dtype(np.int32 if clients < 2**31 else np.int64)
        self.all_clients = np.arange(clients) if clients <= ALL_LISTED else np.array([ALL])

    def rows(self, selected: Sequence[Array | None], first: int) -> list[Array]:
        """The ids to store for the rounds from ``first`` on (None: all clients); none for round 0."""
        ids = [self.all_clients if some is None else some for some in selected]
        return [self.all_clients[:0], *ids[1:]] if first == 0 else ids

    def width(self) -> int:
        """Most ids that a row of the dataset has room for."""
        return 0 if self.stored is None else int(self.stored.shape[1])

    def growth(self, ids: Sequence[Array], first: int) -> int:
        """Bytes by which the file grows when ``ids`` are appended."""
        width = widest(ids)
        shape = (0, 1) if self.stored is None else self.stored.shape
        chunks = chunk(width) if self.stored is None else self.stored.chunks
        grown = pieces((first + len(ids), max(width, shape[1])), chunks) - pieces(shape, chunks)
        return grown * (math.prod(chunks) * self.dtype.itemsize + 64)  # and an entry in the tree of chunks for each

    def append(self, ids: Sequence[Array], first: int, last_time: bool = False) -> None:
        """Store the ids of the rounds from ``first`` on; ``last_time``: even if no client was ever selected."""
        width = widest(ids)
        if self.stored is None:
            if not width and not last_time:
                return
            axes = (self.rounds, dimension(self.file, "slot", 0))
            layout = {"chunks": chunk(width), "fillvalue": -1}
            self.stored = dataset(self.file, "selection", (0, 1), self.dtype, axes, SELECTION, **layout)
        wide = max(width, self.stored.shape[1])
        block = np.full((len(ids), wide), -1, self.dtype)
        for row, some in zip(block, ids, strict=True):
            row[: len(some)] = some
        self.file["slot"].resize((wide,))
        self.stored.resize((first + len(ids), wide))
        self.stored[first:] = block


def widest(ids: Sequence[Array]) -> int:
    return max(map(len, ids), default=0)


def chunk(width: int) -> tuple[int, int]:
    """Rounds and slots that are stored together, where at most ``width`` clients are selected in a round."""
    slots = min(max(1, width), WIDEST)
    return max(1, CHUNK_IDS // slots), slots
