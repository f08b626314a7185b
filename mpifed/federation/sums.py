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
from mpifed.federation.request import ANY_ORDER, ReplyLayout, Request, RowBuffer, entry_count

ROOM = 1 << 19  # bytes of replies that few calls of numpy add up; if all replies need no more, they are kept as rows

Reduction = Callable[[Request, Array, Array | None], Array]  # (request, rows, clients (None: all)) of a host -> rows
Subtree = tuple[int, int]  # level l, index j: the clients j 2^l … (j+1) 2^l - 1


def rank_offsets(sizes: Array, ranks: int) -> list[int]:
    """Return the first client of each of ``ranks`` hosts, and m as the last entry: (ranks + 1,).

    Hosts have about equal numbers of samples. Within a sixteenth of that, a host begins where a large subtree does, so
    that it has few subtrees. Every host has at least one client.
    """
    m = len(sizes)
    end = np.cumsum(sizes, dtype=np.float64)
    run, mean = end[-1] / ranks, sizes.mean()
    result = [0] * ranks + [m]
    for r in range(1, ranks):
        # each subtree of a host travels as a vector of its own, and hosts of exactly equal size would cut many in two
        first, last = np.searchsorted(end, [r * run - run / 16, r * run + run / 16]) + 1
        near = int(np.clip(np.searchsorted(end, r * run - mean / 2) + 1, first, last))
        cut = find_aligned_cut(int(first), int(last), near)
        result[r] = min(max(cut, result[r - 1] + 1), m - (ranks - r))
    return result


def find_aligned_cut(first: int, last: int, near: int) -> int:
    """Return the p in first <= p <= last divisible by the highest power of 2, and of these the nearest to ``near``."""
    grain = 1
    # large subtrees begin at multiples of a large power of 2: one of 32 clients ends before 96 = 3·32, none before 97
    while -(-first // (2 * grain)) * 2 * grain <= last:
        grain *= 2
    low = -(-first // grain) * grain
    return min(range(low, last + 1, grain), key=lambda p: abs(p - near))


def tree_depth(m: int) -> int:
    """Return the level of the root of the tree over m clients."""
    return max(m - 1, 0).bit_length()


def find_subtrees(lo: int, hi: int, m: int) -> list[Subtree]:
    """Return the largest subtrees within the clients lo <= i < hi of m, in order."""
    result = []
    # the last rank takes the tree to its end: clients beyond m add nothing, and fewer vectors travel
    end = 1 << tree_depth(m) if hi == m else hi
    while lo < end:
        level = min((lo & -lo).bit_length() - 1 if lo else tree_depth(m), (end - lo).bit_length() - 1)
        result.append((level, lo >> level))
        lo += 1 << level
    return result


def sum_subtrees(rows: Array, ids: Array | None, lo: int, tree: list[Subtree]) -> Array:
    """Compute the sums (k, N) of k subtrees over ``rows`` (c, N) of the clients ``ids``, rising; None: lo, lo+1 …"""
    if len(tree) == 1:
        if ids is not None and not len(ids):
            return np.zeros((1, rows.shape[1]), rows.dtype)
        subtotal = sum_dense(rows) if ids is None else sum_scattered(rows, ids - (tree[0][1] << tree[0][0]))
        return (subtotal + 0.0)[None]
    total = np.zeros((len(tree), rows.shape[1]), rows.dtype)
    for k, (level, index) in enumerate(tree):
        start, stop = index << level, (index + 1) << level
        if ids is None:
            part = rows[start - lo : stop - lo]
            if len(part):
                # adding +0 in the end makes −0 and +0 the same, whether a subtree was empty or summed to zero
                total[k] = sum_dense(part)
        else:
            a, b = np.searchsorted(ids, [start, stop])
            if a < b:
                total[k] = sum_scattered(rows[a:b], ids[a:b] - start)
    total += 0.0
    return total


def sum_dense(rows: Array) -> Array:
    """Compute the tree sum of rows 0, 1, 2 …"""
    while len(rows) > 1:
        half = np.empty(((len(rows) + 1) // 2, rows.shape[1]), rows.dtype)
        pairs = len(rows) // 2
        np.add(rows[0 : 2 * pairs : 2], rows[1 : 2 * pairs : 2], out=half[:pairs])
        half[pairs:] = rows[2 * pairs :]
        rows = half
    return rows[0]


def sum_scattered(rows: Any, indices: Array) -> Any:
    """Compute the tree sum of rows at ``indices``, rising, with gaps; rows may be on a device."""
    if len(rows) == 1:
        return rows[0]
    rows = namespace(rows).asarray(rows, copy=True)
    # two adjacent indices i < j meet at the level of the highest bit in which they differ: 5 = 101 and 6 = 110 differ
    # from bit 1 on, so they meet at level 2. frexp gives the number of bits without a loop
    level = np.frexp((indices[1:] ^ indices[:-1]).astype(float))[1]  # where adjacent indices meet
    left = indices.searchsorted(indices[:-1] >> level << level)  # the first row of the subtree where they do
    # rows 1, 2, 5, 6 stand at levels 2 (1|2), 3 (2|5), 2 (5|6): first 1+2 and 5+6 at once, then (1+2) + (5+6), which is
    # how the full tree adds them when the other clients are absent
    order = level.argsort(kind="stable")
    ends = np.flatnonzero(np.diff(level[order])) + 1
    for gaps in np.split(order, ends):  # no row occurs twice, so additions of one level are independent
        rows[left[gaps]] += rows[gaps + 1]
    return rows[0]


def sum_root(parts: Array, tree: Sequence[Subtree]) -> Array:
    """Compute the sum (N,) at the root from the sums ``parts`` (k, N) of subtrees that make up the tree, in order.

    A single part is returned itself.
    """
    stack: list[tuple[int, int, Array]] = []
    for (level, index), vector in zip(tree, parts, strict=True):
        # left + right, in this order: floating-point addition commutes, but the order decides which of two NaNs or
        # zeros stays
        while stack and index & 1 and stack[-1][:2] == (level, index - 1):
            vector = stack.pop()[2] + vector
            level, index = level + 1, index >> 1
        stack.append((level, index, vector))
    return stack[0][2]


def merge(held: dict[Subtree, int], arrived: dict[Subtree, int]) -> list[tuple[int, int]]:
    """Add arrived subtrees to those ``held`` (subtree -> number of its vector), and merge siblings.

    Return the additions in order, each as the numbers of a left and a right vector. The sum takes the number of the
    vector that arrived, or that arrived last if both did.
    """
    additions = []
    for (level, index), number in arrived.items():
        while (level, index ^ 1) in held:
            other = held.pop((level, index ^ 1))
            additions.append((other, number) if index & 1 else (number, other))
            level, index = level + 1, index >> 1
        held[level, index] = number
    return additions


def finish_reduction(request: Request, rows: Array, tree: Sequence[Subtree]) -> Array:
    """Apply the last step of a reduction to the rows of all hosts in order, or to some columns of them."""
    if request.reduce == "sum":
        return sum_root(rows, tree)
    if request.reduce in ANY_ORDER:
        return np.sum(rows, axis=0)
    if request.reduce == "max":
        return np.max(rows, axis=0)
    return rows if request.then is None else request.then(rows, *request.args)


def divide_sum(total: Array, count: int) -> Array:
    """Return total / count, computed in place if total is an array."""
    if total is None or isinstance(total, dict):
        raise UserError(
            f"fed.mean gets {'nothing' if total is None else 'a dict'}: the client method must upload an array or a "
            "tuple of arrays, and at least one client must be called"
        )
    # in place, because the sum belongs to this call alone and a copy of a large model costs time
    return np.divide(total, count, out=total) if total.ndim else total / count


def all_finite(rows: Array) -> bool:
    """Return whether all numbers are finite; the sum of squares, tried first, takes half the time."""
    flat = rows.reshape(-1)
    # the sum of squares is not finite if a number is not, but may also overflow by itself
    return math.isfinite(flat.dot(flat)) or bool(np.isfinite(flat).all())


ROW_REDUCTIONS: dict[str, Reduction] = {  # reductions on a host without a tree
    "rows": lambda request, rows, ids: rows,
    "plain sum": lambda request, rows, ids: rows.sum(axis=0, keepdims=True),
    "max": lambda request, rows, ids: rows.max(axis=0, keepdims=True, initial=-np.inf),
}


class TreeSum(RowBuffer):
    """A running sum of the replies of clients ``ids`` (rising) along ``tree``, with the bits of ``subtotals``.

    Few replies are kept as ``rows`` (``keeps_rows``). Otherwise ``subtotals`` has the sum of each subtree, and
    ``first_bad`` is the position of the first client whose reply is not finite, or None.
    """

    def __init__(self, ids: Array, dtype: Any, tree: Sequence[Subtree]) -> None:
        super().__init__(len(ids), dtype, lend=True)
        self.ids, self.tree = ids, tree
        self.keeps_rows = True
        self.first_bad: int | None = None
        self.replied = 0  # how many clients have replied
        self.node = 0  # the subtree that is being added up
        self.level = 0  # clients of a small subtree of this level are added up together …
        self.begin = self.end = 0  # … at present ``begin`` <= client < ``end``
        self.waiting: list[Array] = []  # their replies
        self.first = 0  # the first client of the last part
        self.parts: list[tuple[int, Array]] = []  # of the subtree: (level where it meets the one before, sum)

    def put(self, rows: slice | Array, parts: tuple[Array, ...], names: tuple[str, ...] = ()) -> None:
        """Add the replies of the next clients."""
        if self.layout is None or not self.layout.shapes:
            self._choose_mode(parts, names)
        if self.keeps_rows:
            super().put(rows, parts, names)
            return
        block = np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1, dtype=self.rows.dtype)
        ids = self.ids[self.replied : self.replied + len(block)]
        a = 0
        while a < len(block):
            if ids[a] >= self.end:
                self._start_subtree(int(ids[a]))
            b = int(ids.searchsorted(self.end))
            self.waiting.append(block[a:b])
            self.replied += b - a
            a = b
        # rows that stay are copied, because a view would keep its full block in memory
        self.parts = [(meets, row if row.base is None else row.copy()) for meets, row in self.parts]

    def close(self) -> Array:
        """Return the sums of the subtrees (k, N), once all replies are there."""
        self._add_waiting()
        self._finish_subtree()
        self.subtotals += 0.0
        return self.subtotals

    def _choose_mode(self, parts: tuple[Array, ...], names: tuple[str, ...]) -> None:
        """Decide from the length of the first replies whether all are kept."""
        length = sum(entry_count(part.shape[1:]) for part in parts)
        max_rows = ROOM // max(1, length * self.rows.dtype.itemsize)
        self.keeps_rows = len(self.ids) <= max(1, max_rows)
        if not self.keeps_rows:
            self.level = max(0, max_rows.bit_length() - 1)
            self.layout = ReplyLayout(tuple([part.shape[1:] for part in parts]), names)
            self.rows = np.zeros((0, length), self.rows.dtype)
            self.subtotals = np.zeros((len(self.tree), length), self.rows.dtype)

    def _start_subtree(self, client: int) -> None:
        """Add up the waiting replies, and begin with the small subtree of ``client``."""
        self._add_waiting()
        while client >= (end := self.tree[self.node][1] + 1 << self.tree[self.node][0]):
            self._finish_subtree()
            self.node += 1
        level, index = self.tree[self.node]
        self.begin = max(client >> self.level << self.level, index << level)
        self.end = min((client >> self.level) + 1 << self.level, end)

    def _add_waiting(self) -> None:
        """Add up the waiting replies, and push the sum on the stack of parts."""
        if not self.waiting:
            return
        rows = self.waiting[0] if len(self.waiting) == 1 else np.concatenate(self.waiting)
        self.waiting = []
        ids = self.ids[self.replied - len(rows) : self.replied]
        row = sum_dense(rows) if ids[-1] - self.begin < len(rows) else sum_scattered(rows, ids)
        if self.first_bad is None and not all_finite(row):
            fine = np.isfinite(rows).all(axis=1)
            # a sum of finite numbers may overflow
            self.first_bad = None if fine.all() else self.replied - len(rows) + int(np.argmin(fine))
        # clients come in rising order, so the stack of unfinished subtrees is at most as deep as the tree
        meets = (int(ids[0]) ^ self.first).bit_length() if self.parts else 0
        self.first = int(ids[0])
        # parts below the level where this one meets the one before are complete
        self._merge(meets)
        self.parts.append((meets, row))

    def _finish_subtree(self) -> None:
        """Store the sum of the current subtree."""
        if self.parts:
            self._merge(1 << 62)
            self.subtotals[self.node] = self.parts.pop()[1]

    def _merge(self, meets: int) -> None:
        """Add up the parts on the stack that meet below a level."""
        while len(self.parts) > 1 and self.parts[-1][0] < meets:
            _, right = self.parts.pop()
            self.parts[-1][1][...] += right
