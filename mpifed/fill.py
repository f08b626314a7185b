"""Samples into blocks: fetched piece by piece, checked, and put beside others of like size."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.component import UserError
from mpifed.data.blocks import Block, dense_block, plan, sparse_block
from mpifed.data.clients import Array, Dataset
from mpifed.data.memory import room
from mpifed.problems.base import Problem

Rows = Callable[[int, int], tuple[Any, Array]]
CHUNK_BYTES = 1 << 26  # samples are fetched in pieces of about this size


def fill(data: Dataset, rows: Rows, sizes: Array, problem: Problem, groups: list[Array], lo: int, dtype: Any) -> list[Block]:
    """The blocks of clients from ``lo`` on, grouped as ``groups`` says, fetched by ``rows`` piece by piece and checked."""
    if not data.sparse:
        what = f"the {int(sizes.sum()):,} samples of {data.n:,} features of clients {lo} to {lo + len(sizes) - 1}"
        room(int(sizes.sum()) * data.n * dtype.itemsize, what)
    blocks = [None if data.sparse else dense_block(sizes[group], data.n, dtype) for group in groups]
    home = np.empty((len(sizes), 2), np.int64)
    for k, group in enumerate(groups):
        home[group] = np.column_stack([np.full(len(group), k), np.arange(len(group))])
    parts: dict[int, Any] = {}
    step = max(1, CHUNK_BYTES // max(1, int(sizes.mean()) * data.n * 8))
    for first in range(0, len(sizes), step):
        last = min(first + step, len(sizes))
        X, y = rows(lo + first, lo + last)
        y = checked(problem, y)
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


def add_tests(blocks: list[Block], data: Dataset, problem: Problem, groups: list[Array], lo: int, dtype: Any) -> None:
    """Give every block the test samples of its clients, again in blocks of like size."""
    sizes = np.asarray(data.sizes_test)[lo : lo + sum(map(len, groups))]
    split = [(k, rows) for k, group in enumerate(groups) for rows in plan(sizes[group], data.n, dtype.itemsize)
             if sizes[group[rows[0]]]]
    tests = fill(data, data.rows_test, sizes, problem, [groups[k][rows] for k, rows in split], lo, dtype)
    for (k, rows), block in zip(split, tests, strict=True):
        blocks[k].tests.append((rows, block))


def checked(problem: Problem, y: Array) -> Array:
    """The labels as the problem wants them."""
    try:
        return problem.labels(y)
    except ValueError as error:
        raise UserError(f"problem {problem.label()!r} cannot use these data: {error}") from None
