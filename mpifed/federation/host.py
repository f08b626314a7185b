"""Where clients live: one host a rank, with the samples and the state of a run of clients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import sealed
from mpifed.core import signals
from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.data.blocks import most, plan
from mpifed.data.fill import Layout, add_tests, fill
from mpifed.federation import sums
from mpifed.federation.local import Local
from mpifed.federation.request import SPENT, Collected, Reply, Request
from mpifed.problems.base import Problem


class Known(NamedTuple):
    """The gradients at a point where all clients were measured."""

    x: Array  # (n,)
    G: Array  # (clients, n), in block order
    seconds: Array  # (clients,) that they took


class Host:
    """The clients lo <= i < hi of the data set, in blocks of like size, and the state of each."""

    def __init__(
        self, data: Dataset, problem: Problem, algorithm: Any, lo: int, hi: int, start: Array, dtype: str, seed: int
    ) -> None:
        self.problem, self.algorithm, self.m, self.seed = problem, algorithm, data.m, seed
        self.lo, self.hi, self.dtype = lo, hi, np.dtype(dtype)
        self.start = start.astype(self.dtype)
        self.tree = sums.nodes(lo, hi, data.m)
        sizes = np.asarray(data.sizes[lo:hi])
        groups = list(plan(sizes, data.n, self.dtype.itemsize))
        self.order = np.concatenate(groups)  # block order -> client, counted from lo
        self.ids = lo + self.order
        self.slot = np.argsort(self.order)  # client, counted from lo -> block order
        self.sorted = bool((np.diff(self.order) > 0).all())
        self.starts = np.cumsum([0, *map(len, groups)])
        layout = Layout(lo, sizes, groups, self.dtype)
        self.blocks = fill(data, data.rows, layout, problem.checked_labels)
        if data.sizes_test is not None and problem.has("predict"):
            add_tests(self.blocks, data, layout, problem.checked_labels)
        self.state: Any = None
        self.opening = algorithm.opening() if problem.shared else ""
        self.known: Known | None = None
        self.seconds = np.zeros(hi - lo)  # computing, by client in block order
        self.spent = np.zeros(SPENT)  # of the last request: see handle
        self.checkpoint: Callable[[int], Path] | None = None  # serial number of a checkpoint -> the file of this host
        self.computed = self.evaluated = 0.0  # seconds computing and measuring of all requests

    def join(self) -> None:
        """The first state of every client."""
        for picks, f in self._blocks_of(None, (0, 0)):
            client = self.algorithm.join(f)
            if self.state is None:
                self.state = type(client)(
                    *(
                        np.empty((len(self.order), *v.shape[1:]), self.dtype if v.dtype.kind == "f" else v.dtype)
                        for v in client
                    )
                )
            for field, value in zip(self.state, client, strict=True):
                field[picks] = value

    def handle(self, request: Request) -> Reply:
        """Run a client method on every client called and give back rows or reduced rows.

        ``spent`` then has the seconds of computing, of measuring, and of gradients: those that measuring leaves to the next
        request and that are not counted as measuring, or those that this request knew from measuring; the number of the
        signal that asked this rank to end, or 0; and 1 + the first client who replied with a number that is not finite, or 0.
        """
        if request.method == "save":
            return self.save(int(request.args[0]))
        started = time.perf_counter()
        found, ids, shared = self._replies(request)
        rows, layout = found.rows, found.layout
        if request.last is not None:
            field = getattr(self.state, request.last)
            field = field if self.sorted else field[self.slot]
            rows, layout, ids = field.reshape(len(field), -1), (field.shape[1:],), None
        each = rows
        if request.reduce == "sum":
            rows = sums.subtotals(rows, ids, self.lo, self.tree)
        elif request.reduce == "plain sum":
            rows = rows.sum(axis=0, keepdims=True)
        elif request.reduce == "max":
            rows = rows.max(axis=0, keepdims=True, initial=-np.inf)
        spent = time.perf_counter() - started
        self.spent[:3] = (0.0, spent - shared, shared) if request.evaluation else (spent, 0.0, shared)
        fine = request.reduce == "max" or np.isfinite(rows).all()
        self.spent[3:] = signals.number(), 0 if fine else self._faulty(each, ids)
        self.computed += 0.0 if request.evaluation else spent + shared
        self.evaluated += spent - shared if request.evaluation else 0.0
        return Reply(rows, layout)

    def save(self, serial: int) -> Reply:
        """Write the state of all clients into checkpoint ``serial``; the reply is the system's error number, or 0."""
        code, self.spent[:] = 0, 0.0
        state = {name: field[self.slot] for name, field in zip(self.state._fields, self.state, strict=True)}
        try:
            seconds = {"compute seconds": self.seconds[self.slot]}
            assert self.checkpoint is not None
            sealed.write(self.checkpoint(serial), state | seconds)
        except OSError as error:
            code = error.errno or 1
        return Reply(np.full((1, 1), code, self.dtype), ((),))

    def excuse(self, request: Request) -> Reply:
        """A reply in the place of one that failed; ``spent`` says so."""
        self.spent[:] = 0, 0, 0, 0, -1
        ids = np.arange(self.lo, self.hi) if request.to is None or request.last else request.to
        rows = {"sum": len(self.tree), "rows": int(((self.lo <= ids) & (ids < self.hi)).sum())}.get(request.reduce, 1)
        return Reply(np.zeros((rows, 0), self.dtype), None)

    def restore(self, arrays: dict[str, Array]) -> None:
        """Give the clients the state that a checkpoint has of them: name -> (hi − lo, …)."""
        self.seconds = arrays.pop("compute seconds")[self.order]
        self.state = type(self.state)(**{name: rows[self.order] for name, rows in arrays.items()})

    def _faulty(self, rows: Array, ids: Array | None) -> int:
        """1 + the first client whose row is not finite; the first of all where it is their sum that overflows."""
        bad = int(np.argmin(np.isfinite(rows).all(axis=1)))
        return 1 + (self.lo + bad if ids is None else int(ids[bad]))

    def measure(self, f: Local, client: Any, x: Array) -> tuple[Array, ...]:
        """What the record wants of every client at the server's model x; read by experiment.measure."""
        value, grad, *accuracy = f.evaluate(x)
        own: tuple[Array, ...] = ()
        if self.algorithm.personal:
            theta = self.algorithm.personalised(f, client)
            own = (f.value(theta), *(f.accuracy(theta)[:1] if accuracy else ()))
        return value, f.d * value, grad, *accuracy, *own, *self.algorithm.watch(f, client)

    def _replies(self, request: Request) -> tuple[Collected, Array | None, float]:
        """The replies, the clients called (None: all), and the seconds of gradients that are kept or were known."""
        to, slots, place, ids = request.to, None, self.order, None  # place, in block order: whose row of the reply
        if to is not None:
            ids = to[slice(*to.searchsorted([self.lo, self.hi]))]
            slots = self.slot[ids - self.lo]
            place = slots.argsort()
            slots = slots[place]
        known, keep = self._known(request)
        method = getattr(self if request.method == "measure" else self.algorithm, request.method)
        found = Collected(len(place), self.dtype, request.reduce != "rows")
        at, shared = 0, 0.0
        for picks, f in self._blocks_of(slots, request.place):
            begun = time.perf_counter()
            rows = slice(at, at + len(f)) if ids is None and self.sorted else place[at : at + len(f)]
            at += len(f)
            if known is not None:
                f.known = request.args[0], known.G[picks]
                shared += float(known.seconds[picks].sum())
            client = type(self.state)(*[field[picks] for field in self.state])
            args = request.args if request.each is None else (*request.args, request.each[rows])
            new, reply = (client, method(f, client, *args)) if request.evaluation else method(f, client, *args)
            if new is not client:
                for field, old, value in zip(self.state, client, new, strict=True):
                    if value is not old:
                        field[picks] = value
            if reply is not None and request.last is None:
                found.put(rows, reply if isinstance(reply, tuple) else (reply,))
            if keep is not None:
                keep.G[picks], keep.seconds[picks] = reply[2], f.graded / len(f)
                shared += f.graded
            elif not request.evaluation:
                self.seconds[picks] += (time.perf_counter() - begun) / len(f)
        return found, ids, shared

    def _known(self, request: Request) -> tuple[Known | None, Known | None]:
        """Gradients known from measuring, where this request begins with them; and room for those that it will leave."""
        if self.opening and request.method == "measure":
            x = request.args[0].copy()
            self.known = Known(x, np.empty((len(self.order), len(x)), self.dtype), np.zeros(len(self.order)))
            return None, self.known
        if self.known is None or request.method != self.opening:
            return None, None
        known, self.known = self.known, None
        return (known if np.array_equal(known.x, request.args[0]) else None), None

    def _blocks_of(self, slots: Array | None, place: tuple[int, int]) -> Iterator[tuple[slice | Array, Local]]:
        """The clients at ``slots`` (rising, in block order; None: all), a block of them at a time, and where these are."""
        if slots is None:
            for block, a, b in zip(self.blocks, self.starts, self.starts[1:], strict=False):
                yield slice(a, b), self._local(block, slice(a, b), place)
            return
        edges = np.searchsorted(slots, self.starts)
        parts: list[tuple[Any, Array]] = []
        first = 0
        for k in np.flatnonzero(np.diff(edges)):
            block, a, b = self.blocks[k], int(self.starts[k]), int(self.starts[k + 1])
            rows = slots[edges[k] : edges[k + 1]] - a
            room = most(block.b.shape[1], block.n, self.dtype.itemsize)
            if parts and (edges[k + 1] - first > room or parts[0][0].b.shape[1] != block.b.shape[1]):
                yield slots[first : edges[k]], self._gathered(parts, slots[first : edges[k]], place)
                parts, first = [], int(edges[k])
            parts.append((block, rows))
            if len(rows) == b - a and len(parts) == 1:
                yield slice(a, b), self._local(block, slice(a, b), place)
                parts, first = [], int(edges[k + 1])
        if parts:
            yield slots[first:], self._gathered(parts, slots[first:], place)

    def _gathered(self, parts: list[tuple[Any, Array]], picks: Array, place: tuple[int, int]) -> Local:
        block, rows = parts[0]
        if len(parts) > 1 or len(rows) < len(block):
            block = type(block).gather(parts)
        return self._local(block, picks, place)

    def _local(self, block: Any, picks: slice | Array, place: tuple[int, int]) -> Local:
        return Local(block, self.problem, self.start, self.m, self.ids[picks], self.seed, place)
