"""Samples into blocks: fetched piece by piece, checked, and put beside others of like size."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.memory import check_memory
from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.data.blocks import Block, dense_block, plan, sparse_block

Rows = Callable[[int, int], tuple[Any, Array]]
Labels = Callable[[Array], Array]  # the labels as a problem wants them; UserError where they cannot be
CHUNK_BYTES = 1 << 26  # samples are fetched in pieces of about this size


class Layout(NamedTuple):
    """Which of the clients from ``lo`` on, with ``sizes`` (clients,) samples, form which block: ``groups`` of positions."""

    lo: int
    sizes: Array
    groups: list[Array]
    dtype: np.dtype[Any]


def fill(data: Dataset, rows: Rows, layout: Layout, labels: Labels) -> list[Block]:
    """The blocks of a layout, with samples fetched by ``rows`` piece by piece."""
    lo, sizes, groups, dtype = layout
    if not data.sparse:
        what = f"the {int(sizes.sum()):,} samples of {data.n:,} features of clients {lo} to {lo + len(sizes) - 1}"
        check_memory(int(sizes.sum()) * data.n * dtype.itemsize, what)
    blocks = [None if data.sparse else dense_block(sizes[group], data.n, dtype) for group in groups]
    home = np.empty((len(sizes), 2), np.int64)
    for k, group in enumerate(groups):
        home[group] = np.column_stack([np.full(len(group), k), np.arange(len(group))])
    parts: dict[int, Any] = {}
    step = max(1, CHUNK_BYTES // max(1, int(sizes.mean()) * data.n * 8))
    for first in range(0, len(sizes), step):
        last = min(first + step, len(sizes))
        X, y = rows(lo + first, lo + last)
        y = labels(y)
        ends = np.cumsum(sizes[first:last])
        for i, begin, end in zip(range(first, last), [0, *ends[:-1]], ends, strict=True):
            if data.sparse:
                parts[i] = (X[begin:end], y[begin:end])
            elif end > begin:
                k, j = home[i]
                blocks[k].A[j, : end - begin] = X[begin:end]
                blocks[k].b[j, : end - begin] = y[begin:end]
    if data.sparse:
        return [sparse_block([parts[i] for i in group], sizes[group], data.n, dtype) for group in groups]
    return [block for block in blocks if block is not None]


def add_tests(blocks: list[Block], data: Dataset, layout: Layout, labels: Labels) -> None:
    """Give every block the test samples of its clients, again in blocks of like size."""
    lo, _, groups, dtype = layout
    sizes = np.asarray(data.sizes_test)[lo : lo + sum(map(len, groups))]
    split = [
        (k, rows)
        for k, group in enumerate(groups)
        for rows in plan(sizes[group], data.n, dtype.itemsize)
        if sizes[group[rows[0]]]
    ]
    tests = fill(data, data.rows_test, Layout(lo, sizes, [groups[k][rows] for k, rows in split], dtype), labels)
    for (k, rows), block in zip(split, tests, strict=True):
        blocks[k].tests.append((rows, block))
