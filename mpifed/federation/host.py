"""Where clients live: one host a rank, with the samples and the state of a run of clients."""

import math
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from mpifed.core import signals
from mpifed.core.arrays import between
from mpifed.core.memory import check_memory
from mpifed.core.processor import BlockSize
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.federation import sums
from mpifed.federation.evaluation import Evaluation
from mpifed.federation.local import Local
from mpifed.federation.method import Joining
from mpifed.federation.request import (
    CALL,
    EVALUATE,
    FOR_THE_RECORD,
    SAVE,
    SERVICE,
    Collected,
    HostReport,
    Layout,
    Reply,
    Request,
    parts_of,
    refuse_writing,
)
from mpifed.federation.running_sums import Running
from mpifed.federation.setup import Setup
from mpifed.federation.stage import WEIGHTED, HostStage, Keeper, Visit, Weighted
from mpifed.federation.traits import needs
from mpifed.federation.view import View
from mpifed.kernels.fill import Layout as Filling
from mpifed.kernels.fill import add_tests, by_padded_size, fill
from mpifed.kernels.plan import SPARSE, plan

ClientMethod = Callable[..., Any]
Wrap = Callable[[str, Any], ClientMethod]  # name of a client method, the method or None -> the method in its place
Answer = Callable[..., tuple[Any, Any]]  # a visit and the arguments of a request -> new state and reply


class Host:
    """The clients lo <= i < hi of the data set, in blocks of like size, and the state of each."""

    running: Any = Running  # the replies to be added up as they come …
    collected: Any = Collected  # … and others

    def __init__(self, setup: Setup, data: Dataset, lo: int, hi: int) -> None:
        self.setup = setup
        self.algorithm: Joining = setup.algorithm  # whose methods clients run
        self.wraps: list[Wrap] = []  # what is put around a client method where it is called
        self.dtype = setup.start.dtype
        self.lo, self.hi = lo, hi
        self.tree = sums.nodes(lo, hi, setup.m)
        self.evaluation = Evaluation(setup)
        sizes = np.asarray(data.sizes[lo:hi])
        self.block_size = BlockSize(setup.block_bytes, "it was set up so")
        block_bytes = setup.block_bytes * (SPARSE if data.sparse else 1)
        matrix = setup.start.size**2 if "hess" in needs(setup.algorithm) else 0
        together = setup.problem.group(setup.start.size)
        groups = list(plan(sizes, data.n, self.dtype.itemsize, block_bytes, matrix, together))
        self.order = np.concatenate(groups)  # block order -> client, counted from lo
        self.sorted = bool((self.order[1:] > self.order[:-1]).all())
        # of a million clients in order one array is enough
        self.ids = lo + self.order if lo else self.order
        self.slot = self.order if self.sorted else np.argsort(self.order)  # client, counted from lo -> block order
        filling = Filling(lo, sizes, groups, self.dtype, block_bytes, setup.kernels, together)
        labels = setup.problem.checked_labels
        self.same_size = by_padded_size(fill(data, data.rows, filling, labels))
        self.edges = np.cumsum([0, *map(len, self.same_size)])  # block order: where they begin
        self.lay()
        if data.sizes_test is not None and (self.evaluation.over_samples() or setup.problem.of_clients()):
            add_tests(self.blocks, data, filling, labels)
        self.state: Any = None
        self.views: list[View] = []  # what client methods see that is not the problem's
        self.stages: dict[str, HostStage] = {WEIGHTED: Weighted()}
        self.keepers: list[Keeper] = []  # of more than the clients' state
        self.reductions = sums.AT_ONCE | {"sum": lambda request, rows, ids: sums.subtotals(rows, ids, lo, self.tree)}
        self.verbs: dict[str, Callable[[Request], Answer]] = {CALL[0]: self._method, EVALUATE[0]: self._evaluation}
        self.services: dict[str, Callable[[Request], tuple[Reply, HostReport]]] = {}  # beside what clients do
        self.seconds = np.zeros(hi - lo)  # computing, by client in block order
        self.computed = self.evaluated = 0.0  # seconds of all requests

    def lay(self) -> None:
        """Note which clients each block has, once samples have been cut into blocks."""
        self.blocks = [block for group in self.same_size for block in group.blocks]
        self.starts = np.cumsum([0, *map(len, self.blocks)])
        edges = pairwise(self.starts.tolist())
        self.whole = [(slice(a, b), own, self.ids[a:b]) for (a, b), own in zip(edges, self.blocks, strict=True)]

    def add_stage(self, name: str, stage: HostStage) -> None:
        """Let requests that name it, and their replies, pass a stage."""
        self.stages[name] = stage
        self.keepers.append(stage)
        self.reductions |= stage.reductions(np.arange(self.lo, self.hi))

    def client_method(self, name: str, for_record: bool = False) -> ClientMethod:
        """A client method of the algorithm as clients here run it, or one that returns numbers for the record."""
        if for_record:
            return self.evaluation.looks.get(name) or getattr(self.setup.algorithm, name)
        found: Any = getattr(self.algorithm, name, None)
        for wrap in self.wraps:
            found = wrap(name, found)
        return found

    def then(self, request: Request, name: str) -> Callable[..., Array]:
        """The server's function of rows of this name: that of a stage which the request passes, or of the method."""
        found = (self.stages[stage].then(request) for stage in request.stages)
        return next(filter(None, found), None) or getattr(self.algorithm, name)

    def join(self) -> None:
        """The first state of every client."""
        join = self.client_method("join")
        for picks, f in self.blocks_of(None, (0, 0)):
            client = join(f)
            if self.state is None:
                numbers = sum(math.prod(field.shape[1:]) for field in client) * len(self.order)
                check_memory(numbers * self.dtype.itemsize, f"what clients {self.lo} to {self.hi - 1} keep")
                kinds = [self.dtype if field.dtype.kind == "f" else field.dtype for field in client]
                rooms = [np.empty((len(self.order), *a.shape[1:]), kind) for a, kind in zip(client, kinds, strict=True)]
                self.state = type(client)(*rooms)
            for field, value in zip(self.state, client, strict=True):
                field[picks] = value

    def handle(self, request: Request) -> tuple[Reply, HostReport]:
        """Run a client method on every client called; its replies, as rows or reduced."""
        if request.verb in (SAVE, SERVICE):
            return self.services[request.method](request)
        started = time.perf_counter()
        try:
            found, ids = self._run(request, self.verbs[request.verb[0]](request))
        except ValueError as error:
            refuse_writing(error, request.method)
            raise
        reply, fault = self._closed(request, found, ids)
        spent = time.perf_counter() - started
        signal = signals.number() if signals.stop_signal else 0
        if request.verb in FOR_THE_RECORD:
            self.evaluated += spent
            return reply, HostReport(evaluating=spent, signal=signal, fault=fault)
        self.computed += spent
        return reply, HostReport(computing=spent, slowest=spent, signal=signal, fault=fault)

    def excuse(self, request: Request) -> tuple[Reply, HostReport]:
        """A reply in the place of one that failed; the report says so."""
        ids = np.arange(self.lo, self.hi) if request.to is None or request.last else request.to
        own = ((self.lo <= ids) & (ids < self.hi)).sum()
        rows = {"sum": len(self.tree), "rows": int(own)}.get(request.reduce, 1)
        return Reply(np.zeros((rows, 0), self.dtype), None), HostReport(failed=1)

    def restore(self, arrays: dict[str, Array]) -> None:
        """Give the clients the state that a checkpoint has of them: name -> (hi − lo, …)."""
        arrays = {name: rows[self.order] for name, rows in arrays.items()}
        self.seconds = arrays.pop("compute seconds")
        for keeper in self.keepers:
            keeper.restore(arrays)
        self.state = type(self.state)(**arrays)

    def called(self, to: Array | None) -> tuple[Array | None, Array | None, Array]:
        """Of the clients called (None: all) those here, their places in block order, and whose row each of these is."""
        if to is None:
            return None, None, self.order
        ids = to[slice(*to.searchsorted([self.lo, self.hi]))]
        slots = self.slot[ids - self.lo]
        index = slots.argsort()
        return ids, slots[index], index

    def _method(self, request: Request) -> Answer:
        """A client method of the algorithm."""
        method = self.client_method(request.method)
        return lambda visit, *args: method(visit.f, visit.state, *args)

    def _evaluation(self, request: Request) -> Answer:
        """A method that returns numbers for the record and leaves the clients' state as it is."""
        method = self.client_method(request.method, for_record=True)
        return lambda visit, *args: (visit.state, method(visit.f, visit.state, *args))

    def _run(self, request: Request, answer: Answer) -> tuple[Collected, Array | None]:
        """The replies in client order, and the clients called (None: all)."""
        ids, slots, index = self.called(request.to)
        found: Collected
        if request.reduce == "sum" and request.last is None and self.sorted:
            found = self.running(self.ids if ids is None else ids, self.dtype, self.tree)
        else:
            found = self.collected(len(index), self.dtype, request.reduce != "rows")
        first = 0
        for picks, f in self.blocks_of(slots, request.key):
            begun = time.perf_counter()
            count = len(f)
            last = first + count
            rows = slice(first, last) if ids is None and self.sorted else index[first:last]
            first = last
            visit = Visit(f, picks, type(self.state)(*[field[picks] for field in self.state]))
            args = request.args if request.each is None else (*request.args, request.each[rows])
            new, reply = answer(visit, *args)
            for name in request.stages:
                new, reply = self.stages[name].up(request, visit, new, reply)
            if new is not visit.state:
                for field, before, after in zip(self.state, visit.state, new, strict=True):
                    if after is not before:
                        field[picks] = after
            if reply is not None and request.last is None:
                found.put(rows, *parts_of(reply))
            if request.verb not in FOR_THE_RECORD:
                self.seconds[picks] += (time.perf_counter() - begun) / count
        return found, ids

    def _closed(self, request: Request, found: Collected, ids: Array | None) -> tuple[Reply, int]:
        """The replies of the clients ``ids`` (None: all), reduced as far as this host can, and the fault or 0."""
        if isinstance(found, Running) and not found.kept:
            total = found.close()
            return Reply(total, found.layout), 0 if sums.finite(total) else self._first(found.bad or 0, ids)
        rows, layout = found.rows, found.layout
        if request.last is not None:
            field = getattr(self.state, request.last)
            field = field if self.sorted else field[self.slot]
            rows = field.reshape(len(field), -1)
            layout = Layout((field.shape[1:],))
            ids = None
        reduced = self.reductions[request.reduce](request, rows, ids)
        if request.reduce == "max" or sums.finite(reduced):
            return Reply(reduced, layout), 0
        bad = int(np.argmin(np.isfinite(rows).all(axis=1)))  # the first of all where it is their sum that overflows
        return Reply(reduced, layout), self._first(bad, ids)

    def _first(self, position: int, ids: Array | None) -> int:
        """m - the client at a position in ``ids`` (None: all)."""
        return self.setup.m - (self.lo + position if ids is None else int(ids[position]))

    def blocks_of(self, slots: Array | None, key: tuple[int, int]) -> Iterator[tuple[slice | Array, Local]]:
        """The clients at ``slots`` (rising, in block order; None: all), one block after the other, and their slots."""
        if slots is None:
            for part, block, ids in self.whole:
                yield part, Local(block, self.setup, ids, key, self.views)
            return
        edges = slots.searchsorted(self.edges)
        for k in np.flatnonzero(np.diff(edges)).tolist():
            own = slots[edges[k] : edges[k + 1]]
            for begin, end, block in self.same_size[k].pieces(own - self.edges[k]):
                picks = between(own[begin:end])
                yield picks, Local(block, self.setup, self.ids[picks], key, self.views)
