"""Sums over clients that have the same bits however the clients are spread over ranks.

The sum is taken along the binary tree over client numbers 0 … m-1: always the same additions in the same order. A rank
hosts a run of clients, so it finishes whole subtrees by itself, a handful of vectors, and the server adds the rest.
Absent clients are skipped; adding +0 to the sum of a subtree makes a sum of zeros +0.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mpifed.core.arrays import namespace
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.request import ANY_ORDER, Request

Reduction = Callable[[Request, Array, Array | None], Array]  # of the rows of the clients (None: all) of a host
Node = tuple[int, int]  # level l, index j: the clients j 2^l … (j+1) 2^l - 1


def cuts(sizes: Array, ranks: int) -> list[int]:
    """Where the runs of clients of ``ranks`` hosts begin and the last one ends: (ranks + 1,).

    Runs have about equal numbers of samples. Within a sixteenth of a run a cut goes where the tree has its own cut,
    so that a rank has few subtrees. Every rank has at least one client.
    """
    m = len(sizes)
    end = np.cumsum(sizes, dtype=np.float64)
    run, mean = end[-1] / ranks, sizes.mean()
    result = [0] * ranks + [m]
    for r in range(1, ranks):
        # a cut that is also one of the tree leaves fewer subtrees on each side of it: a run of equal length would cut
        # most subtrees of a rank in two, and each of them travels as a vector of its own
        first, last = np.searchsorted(end, [r * run - run / 16, r * run + run / 16]) + 1
        near = int(np.clip(np.searchsorted(end, r * run - mean / 2) + 1, first, last))
        cut = roundest(int(first), int(last), near)
        result[r] = min(max(cut, result[r - 1] + 1), m - (ranks - r))
    return result


def roundest(first: int, last: int, near: int) -> int:
    """The number first <= p <= last that is divisible by the highest power of 2, of those the nearest to ``near``."""
    grain = 1
    # multiples of a large power of 2 are where subtrees begin: 96 = 3·32 closes one of 32 clients, 97 closes none
    while -(-first // (2 * grain)) * 2 * grain <= last:
        grain *= 2
    low = -(-first // grain) * grain
    return min(range(low, last + 1, grain), key=lambda p: abs(p - near))


def depth(m: int) -> int:
    """The level of the root of the tree over m clients."""
    return max(m - 1, 0).bit_length()


def nodes(lo: int, hi: int, m: int) -> list[Node]:
    """The largest subtrees within the clients lo <= i < hi, in order."""
    found = []
    # the last rank closes the tree: clients that do not exist add nothing, and fewer vectors travel
    end = 1 << depth(m) if hi == m else hi
    while lo < end:
        level = min((lo & -lo).bit_length() - 1 if lo else depth(m), (end - lo).bit_length() - 1)
        found.append((level, lo >> level))
        lo += 1 << level
    return found


def subtotals(rows: Array, ids: Array | None, lo: int, tree: list[Node]) -> Array:
    """The sums (k, N) of the k subtrees over ``rows`` (c, N) of the clients ``ids``, rising; None: lo, lo+1 …"""
    if len(tree) == 1:
        if ids is not None and not len(ids):
            return np.zeros((1, rows.shape[1]), rows.dtype)
        one = dense(rows) if ids is None else scattered(rows, ids - (tree[0][1] << tree[0][0]))
        return (one + 0.0)[None]
    total = np.zeros((len(tree), rows.shape[1]), rows.dtype)
    for k, (level, index) in enumerate(tree):
        start, stop = index << level, (index + 1) << level
        if ids is None:
            part = rows[start - lo : stop - lo]
            if len(part):
                # adding +0 in the end makes −0 and +0 the same, whether a subtree was empty, skipped or summed to zero
                total[k] = dense(part)
        else:
            a, b = np.searchsorted(ids, [start, stop])
            if a < b:
                total[k] = scattered(rows[a:b], ids[a:b] - start)
    total += 0.0
    return total


def dense(rows: Array) -> Array:
    """The tree sum of rows 0, 1, 2 …"""
    while len(rows) > 1:
        half = np.empty(((len(rows) + 1) // 2, rows.shape[1]), rows.dtype)
        pairs = len(rows) // 2
        np.add(rows[0 : 2 * pairs : 2], rows[1 : 2 * pairs : 2], out=half[:pairs])
        half[pairs:] = rows[2 * pairs :]
        rows = half
    return rows[0]


def scattered(rows: Any, indices: Array) -> Any:
    """The tree sum of rows that stand at ``indices``, rising, with gaps; rows may be on a device."""
    if len(rows) == 1:
        return rows[0]
    rows = namespace(rows).asarray(rows, copy=True)
    # two neighbours i < j meet at the level of the highest bit in which they differ: 5 = 101 and 6 = 110 differ from
    # bit 1 on, so they meet at level 2. frexp gives the number of bits without a loop
    level = np.frexp((indices[1:] ^ indices[:-1]).astype(float))[1]  # at which neighbours meet
    left = indices.searchsorted(indices[:-1] >> level << level)  # the first row of the subtree where they do
    # rows 1, 2, 5, 6 stand at levels 2 (1|2), 3 (2|5), 2 (5|6): first 1+2 and 5+6 at once, then (1+2) + (5+6), which is
    # how the full tree adds them when the other clients are absent
    order = level.argsort(kind="stable")
    ends = np.flatnonzero(np.diff(level[order])) + 1
    for gaps in np.split(order, ends):  # no row twice, so that no two additions meet
        rows[left[gaps]] += rows[gaps + 1]
    return rows[0]


def total(parts: Array, tree: Sequence[Node]) -> Array:
    """The sum (N,) at the root from the ``parts`` (k, N) of subtrees that together make the whole tree, in order.

    Of a single part it is that part itself.
    """
    stack: list[tuple[int, int, Array]] = []
    for (level, index), vector in zip(tree, parts, strict=True):
        # a right child whose left sibling is complete is added to it at once, in this order: left + right.
        # Floating-point addition commutes, but the order says which of two NaNs or zeros stays
        while stack and index & 1 and stack[-1][:2] == (level, index - 1):
            vector = stack.pop()[2] + vector
            level, index = level + 1, index >> 1
        stack.append((level, index, vector))
    return stack[0][2]


def merge(held: dict[Node, int], arrived: dict[Node, int]) -> list[tuple[int, int]]:
    """Put the vectors of further subtrees beside those ``held``, subtree -> number of its vector, and add up siblings.

    Returns the additions in order, each as the numbers of a left and a right vector. Their sum takes the number of the
    one that arrived: where both did, of the one that did so last.
    """
    additions = []
    for (level, index), number in arrived.items():
        while (level, index ^ 1) in held:
            other = held.pop((level, index ^ 1))
            additions.append((other, number) if index & 1 else (number, other))
            level, index = level + 1, index >> 1
        held[level, index] = number
    return additions


def finish(request: Request, rows: Array, tree: Sequence[Node]) -> Array:
    """The last step of a reduction, over the rows of all hosts in order, or over some columns of them."""
    if request.reduce == "sum":
        return total(rows, tree)
    if request.reduce in ANY_ORDER:
        return np.sum(rows, axis=0)
    if request.reduce == "max":
        return np.max(rows, axis=0)
    return rows if request.then is None else request.then(rows, *request.args)


def divided(total: Array, count: int) -> Array:
    """total / count, in place where that saves memory."""
    if total is None or isinstance(total, dict):
        raise UserError(
            f"fed.mean gets {'nothing' if total is None else 'a dict'}: the client method must upload an array or a "
            "tuple of arrays, and at least one client must be called"
        )
    # the sum belongs to this call alone, and a model of many parameters would be copied
    return np.divide(total, count, out=total) if total.ndim else total / count


def finite(rows: Array) -> bool:
    """Whether all numbers are finite; then mostly their sum of squares is too, which is found in half the time."""
    flat = rows.reshape(-1)
    # a sum of squares is infinite or NaN where a number is; it may also overflow by itself, so then all are looked at
    return math.isfinite(flat.dot(flat)) or bool(np.isfinite(flat).all())


AT_ONCE: dict[str, Reduction] = {  # reductions of a host that take no tree
    "rows": lambda request, rows, ids: rows,
    "plain sum": lambda request, rows, ids: rows.sum(axis=0, keepdims=True),
    "max": lambda request, rows, ids: rows.max(axis=0, keepdims=True, initial=-np.inf),
}
