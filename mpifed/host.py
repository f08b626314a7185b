"""Where clients live: one host a rank, with the samples and the state of a run of clients."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from mpifed import sums
from mpifed.component import UserError
from mpifed.data.blocks import Block, dense_block, most, plan, sparse_block
from mpifed.data.clients import Array, Dataset
from mpifed.local import Local
from mpifed.problems.base import Problem

Rows = Callable[[int, int], tuple[Any, Array]]
CHUNK_BYTES = 1 << 26  # samples are fetched in pieces of about this size


class Request(NamedTuple):
    """What the server asks of the clients ``to`` (None: all)."""

    method: str                          # a client method of the algorithm, or "measure"
    args: tuple[Any, ...] = ()           # the same for everyone: numbers and arrays
    to: Array | None = None              # client numbers, rising
    each: Array | None = None            # row i for client to[i] alone
    reduce: str = "rows"                 # rows: a row a client; sum, plain sum, max: over the clients
    last: str | None = None              # reduce this field of every client's state instead of the replies
    place: tuple[int, int] = (0, 0)      # round and call, for the random streams
    evaluation: bool = False             # measuring is charged to nobody


class Reply(NamedTuple):
    """``rows`` (k, N): a row a client called, or a row a subtree (sum), or one row (plain sum, max); ``layout`` their columns."""

    rows: Array
    layout: tuple[tuple[int, ...], ...] | None  # shapes of what a client replied; None where nobody was called


class Host:
    """The clients lo <= i < hi of the data set, in blocks of like size, and the state of each."""

    def __init__(self, data: Dataset, problem: Problem, algorithm: Any, lo: int, hi: int, start: Array, dtype: str,
                 seed: int) -> None:
        self.problem, self.algorithm, self.m, self.seed = problem, algorithm, data.m, seed
        self.lo, self.hi, self.dtype = lo, hi, np.dtype(dtype)
        self.start = start.astype(self.dtype)
        self.tree = sums.nodes(lo, hi, data.m)
        sizes = np.asarray(data.sizes[lo:hi])
        groups = list(plan(sizes, data.n, self.dtype.itemsize))
        self.order = np.concatenate(groups)          # block order -> client, counted from lo
        self.slot = np.argsort(self.order)           # client, counted from lo -> block order
        self.starts = np.cumsum([0, *map(len, groups)])
        self.blocks = fill(data, data.rows, sizes, problem, groups, lo, self.dtype)
        if data.sizes_test is not None and hasattr(problem, "predict"):
            add_tests(self.blocks, data, problem, groups, lo, self.dtype)
        self.state: Any = None
        self.seconds = np.zeros(hi - lo)             # computing, by client in block order
        self.compute = self.evaluate = 0.0           # seconds computing and measuring, of the last request
        self.computed = self.evaluated = 0.0         # the same of all requests

    def join(self) -> None:
        """The first state of every client."""
        for picks, f in self._blocks_of(np.arange(len(self.order)), (0, 0)):
            client = self.algorithm.join(f)
            if self.state is None:
                self.state = type(client)(*(
                    np.empty((len(self.order), *v.shape[1:]), self.dtype if v.dtype.kind == "f" else v.dtype) for v in client))
            for field, value in zip(self.state, client, strict=True):
                field[picks] = value

    def handle(self, request: Request) -> Reply:
        """Run a client method on every client called and give back rows or reduced rows."""
        started = time.perf_counter()
        rows, layout, ids = self._replies(request)
        if request.last is not None:
            field = getattr(self.state, request.last)
            rows, layout, ids = field[self.slot].reshape(len(field), -1), (field.shape[1:],), None
        if request.reduce == "sum":
            rows = sums.subtotals(rows, ids, self.lo, self.tree)
        elif request.reduce == "plain sum":
            rows = rows.sum(axis=0, keepdims=True)
        elif request.reduce == "max":
            rows = rows.max(axis=0, keepdims=True, initial=-np.inf)
        spent = time.perf_counter() - started
        self.compute, self.evaluate = (0.0, spent) if request.evaluation else (spent, 0.0)
        self.computed += self.compute
        self.evaluated += self.evaluate
        return Reply(rows, layout)

    def measure(self, f: Local, client: Any, x: Array) -> tuple[Array, ...]:
        """What the record wants of every client at the server's model x; read by experiment.measure."""
        value, grad, *accuracy = f.measure(x)
        own: tuple[Array, ...] = ()
        if self.algorithm.personal:
            theta = self.algorithm.personalised(f, client)
            own = (f.value(theta), *(f.accuracy(theta)[:1] if accuracy else ()))
        return value, f.d * value, grad, *accuracy, *own, *self.algorithm.watch(f, client)

    def _replies(self, request: Request) -> tuple[Array, Any, Array | None]:
        """The replies as rows (k, N) in client order, their layout and the clients (None: all)."""
        to, lo, hi = request.to, self.lo, self.hi
        ids = None if to is None else to[np.searchsorted(to, lo) : np.searchsorted(to, hi)]
        slots = self.slot if ids is None else self.slot[ids - lo]
        place = np.argsort(slots) if ids is not None else self.order   # in block order: whose row of the reply
        slots = slots[place]
        method = getattr(self if request.method == "measure" else self.algorithm, request.method)
        out, layout = np.zeros((len(slots), 0), self.dtype), None
        at = 0
        for picks, f in self._blocks_of(slots, request.place):
            begun = time.perf_counter()
            rows = place[at : at + len(f)]
            at += len(f)
            client = type(self.state)(*(field[picks] for field in self.state))
            args = request.args if request.each is None else (*request.args, request.each[rows])
            new, reply = (client, method(f, client, *args)) if request.evaluation else method(f, client, *args)
            if new is not client:
                for field, old, value in zip(self.state, client, new, strict=True):
                    if value is not old:
                        field[picks] = value
            if reply is not None:
                parts = reply if isinstance(reply, tuple) else (reply,)
                if layout is None:
                    layout = tuple(part.shape[1:] for part in parts)
                    out = np.empty((len(slots), sum(width(shape) for shape in layout)), self.dtype)
                column = 0
                for part in parts:
                    flat = part.reshape(len(f), -1)
                    out[rows, column : column + flat.shape[1]] = flat
                    column += flat.shape[1]
            if not request.evaluation:
                self.seconds[picks] += (time.perf_counter() - begun) / len(f)
        if layout is None and len(slots):
            layout = ()
        return out, layout, ids

    def _blocks_of(self, slots: Array, place: tuple[int, int]) -> Iterator[tuple[slice | Array, Local]]:
        """The clients at ``slots`` (rising, in block order), a block of them at a time, and where these are."""
        edges = np.searchsorted(slots, self.starts)
        parts: list[tuple[Any, Array]] = []
        first = 0
        for k in np.flatnonzero(np.diff(edges)):
            block, a, b = self.blocks[k], int(self.starts[k]), int(self.starts[k + 1])
            rows = slots[edges[k] : edges[k + 1]] - a
            room = most(block.b.shape[1], block.n, self.dtype.itemsize)
            if parts and (edges[k + 1] - first > room or parts[0][0].b.shape[1] != block.b.shape[1]):
                yield self._local(parts, slots[first : edges[k]], place)
                parts, first = [], int(edges[k])
            parts.append((block, rows))
            if len(rows) == b - a and len(parts) == 1:
                yield slice(a, b), self._local([(block, rows)], slots[first : edges[k + 1]], place)[1]
                parts, first = [], int(edges[k + 1])
        if parts:
            yield self._local(parts, slots[first:], place)

    def _local(self, parts: list[tuple[Any, Array]], picks: Array, place: tuple[int, int]) -> tuple[Array, Local]:
        block, rows = parts[0]
        if len(parts) > 1 or len(rows) < len(block):
            block = type(block).gather(parts)
        ids = self.lo + self.order[picks]
        return picks, Local(block, self.problem, self.start, self.m, ids, self.seed, place)


def width(shape: tuple[int, ...]) -> int:
    """The number of entries of an array of this shape."""
    return int(np.prod(shape, dtype=np.int64))


def fill(data: Dataset, rows: Rows, sizes: Array, problem: Problem, groups: list[Array], lo: int, dtype: Any) -> list[Block]:
    """The blocks of clients from ``lo`` on, grouped as ``groups`` says, fetched by ``rows`` piece by piece and checked."""
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
