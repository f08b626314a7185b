"""One pass over the training samples of a data set: how many numbers are not 0, and which labels each client has."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sparse as sp
from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.data.blocks import starts_of
from mpifed.data.labels import whole

BLOCK = 1 << 22  # numbers of X read at a time
CLASSES = 1000  # more different whole numbers are taken as numbers, not as classes


class Survey(NamedTuple):
    """What is in the training samples of m clients. Where labels are not classes, levels has no entries."""

    nonzeros: int
    levels: Array  # (C,) the labels that occur, in rising order, where they are classes
    counts: Any  # (m, C) samples of each client and class, CSR
    mean: Array  # (m,) of the labels of each client, as the next three
    deviation: Array
    low: Array
    high: Array


def survey(dataset: Dataset) -> Survey:
    """Read all training samples, a few clients at a time."""
    levels = levels_of(dataset)
    nonzeros = 0
    counts = []
    moments = []
    for lo, hi in groups(dataset):
        X, y = dataset.rows(lo, hi)
        nonzeros += X.count_nonzero() if sp.issparse(X) else int(np.count_nonzero(X))
        sizes = dataset.sizes[lo:hi]
        starts = np.cumsum(sizes) - sizes
        y = y.astype(np.float64)
        mean = np.add.reduceat(y, starts) / sizes
        client = np.repeat(np.arange(hi - lo), sizes)
        square = np.add.reduceat((y - mean[client]) ** 2, starts) / sizes
        moments.append((mean, np.sqrt(square), np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)))
        if len(levels):
            column = np.searchsorted(levels, y)
            counts.append(sp.coo_array((np.ones(len(y), np.int64), (client, column)), (hi - lo, len(levels))).tocsr())
    whole_counts = sp.vstack(counts, format="csr") if counts else sp.csr_array((dataset.m, 0), dtype=np.int64)
    return Survey(nonzeros, levels, whole_counts, *map(np.concatenate, zip(*moments, strict=True)))


def levels_of(dataset: Dataset) -> Array:
    """The labels that occur, in rising order, where they are classes; else no entries."""
    values = dataset.values()
    if values is None:
        return np.arange(float(dataset.classes))
    few = bool(dataset.names) or len(values) <= CLASSES
    return values.astype(np.float64) if few and whole(values) else np.zeros(0)


def groups(dataset: Dataset) -> Iterator[tuple[int, int]]:
    """Ranges lo <= i < hi of clients with about BLOCK numbers, but at least one client."""
    starts = starts_of(dataset.sizes) * dataset.n
    lo = 0
    while lo < dataset.m:
        hi = max(lo + 1, int(np.searchsorted(starts, starts[lo] + BLOCK, side="right")) - 1)
        yield lo, hi
        lo = hi


def level_names(dataset: Dataset, levels: Array) -> list[str]:
    """What the labels are called: their text, or the number."""
    if dataset.names:
        return [dataset.names[int(level)] for level in levels]
    return [f"{level:g}" for level in levels]
