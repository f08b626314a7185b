"""The host of a rank: the samples and the state of consecutive clients, and the client methods run on them."""

import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from mpifed.core import signals
from mpifed.core.arrays import as_slice
from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory
from mpifed.core.processor import BlockSize
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.federation import sums
from mpifed.federation.evaluation import Evaluation
from mpifed.federation.local import Local
from mpifed.federation.local_transform import LocalTransform
from mpifed.federation.method import ClientMethod, MethodFinder, find_method
from mpifed.federation.request import (
    CALL,
    EVALUATE,
    FOR_THE_RECORD,
    SAVE,
    SERVICE,
    HostReport,
    Reply,
    ReplyLayout,
    Request,
    RowBuffer,
    refuse_writing,
    split_reply,
)
from mpifed.federation.setup import RunSpec
from mpifed.federation.sums import TreeSum
from mpifed.federation.traits import required_methods
from mpifed.federation.transform import (
    WEIGHTED,
    AnyTransform,
    ClientBatch,
    Transform,
    UploadWeighting,
    export_states,
    restore_states,
)
from mpifed.kernels.fill import BlockLayout as Filling
from mpifed.kernels.fill import add_held_out, fill_blocks, group_by_padded_size
from mpifed.kernels.plan import SPARSE_FACTOR, plan_blocks

ClientCall = Callable[..., tuple[Any, Any]]  # (client batch, arguments of the request) -> new state, reply


class Host:
    """The clients lo <= i < hi of a run: their samples in blocks of similar size, and their state."""

    def __init__(self, setup: RunSpec, data: Dataset, lo: int, hi: int) -> None:
        self.setup = setup
        self.find_method: MethodFinder = partial(find_method, setup.algorithm)
        self.dtype = setup.start.dtype
        self.lo, self.hi = lo, hi
        self.tree = sums.find_subtrees(lo, hi, setup.m)
        self.evaluation = Evaluation(setup)
        sizes = np.asarray(data.sizes[lo:hi])
        self.block_size = BlockSize(setup.block_bytes, "it was set up so")
        block_bytes = setup.block_bytes * (SPARSE_FACTOR if data.sparse else 1)
        matrix = setup.start.size**2 if "hess" in required_methods(setup.algorithm) else 0
        together = setup.problem.group(setup.start.size)
        groups = list(plan_blocks(sizes, data.n, self.dtype.itemsize, block_bytes, matrix, together))
        self.order = np.concatenate(groups)  # block order -> client, counted from lo
        self.sorted = bool((self.order[1:] > self.order[:-1]).all())
        # with a million clients in order, one array saves memory
        self.ids = lo + self.order if lo else self.order
        self.slot = self.order if self.sorted else np.argsort(self.order)  # client, counted from lo -> block order
        filling = Filling(lo, sizes, groups, self.dtype, block_bytes, setup.kernels, together)
        labels = setup.problem.check_labels
        self.same_size = group_by_padded_size(fill_blocks(data, filling, labels))
        self.edges = np.cumsum([0, *map(len, self.same_size)])  # block order: where each size begins
        self.index_blocks()
        for role in self.evaluation.held_out(data):
            add_held_out(self.blocks, data, filling, labels, role)
        self.state: Any = None
        self.local_transforms: list[LocalTransform] = []  # of the f of client methods
        self.reductions = sums.ROW_REDUCTIONS | {
            "sum": lambda request, rows, ids: sums.sum_subtrees(rows, ids, lo, self.tree)
        }
        self.transforms: dict[str, Transform] = {WEIGHTED: UploadWeighting()}  # of messages, by name
        self.request_handlers: dict[str, Callable[[Request], ClientCall]] = {
            CALL[0]: self._method,
            EVALUATE[0]: self._evaluation,
        }
        self.services: dict[str, Callable[[Request], tuple[Reply, HostReport]]] = {}  # requests to the host itself
        self.seconds = np.zeros(hi - lo)  # computing, by client in block order
        self.computed = self.evaluated = 0.0  # seconds of all requests so far

    def index_blocks(self) -> None:
        """Record which clients each block has, once samples have been cut into blocks."""
        self.blocks = [block for group in self.same_size for block in group.blocks]
        self.starts = np.cumsum([0, *map(len, self.blocks)])
        edges = pairwise(self.starts.tolist())
        self.full_blocks = [
            (slice(a, b), block, self.ids[a:b]) for (a, b), block in zip(edges, self.blocks, strict=True)
        ]

    def add_transform(self, transform: AnyTransform) -> None:
        """Add a transform of messages, which requests name, or one of the clients' f; others are for the server."""
        match transform:
            case LocalTransform():
                changed = self.evaluation if transform.evaluation_only else self
                changed.local_transforms.append(transform)
            case Transform():
                if transform.name in self.transforms:
                    raise UserError(f"two transforms have the name {transform.name}: give one of them another name")
                self.transforms[transform.name] = transform
                transform.client_state.count = self.hi - self.lo
                self.reductions |= transform.reductions(np.arange(self.lo, self.hi))

    def find_transform(self, name: str) -> Transform:
        """Return the clients' end of a transform; raise UserError where a plug-in has returned the server's alone."""
        if name not in self.transforms:
            raise UserError(
                f"the transform {name} changes messages at the server, and clients do not have it: ``transforms`` of "
                "its plug-in must return it for hosts too, where fed is None"
            )
        return self.transforms[name]

    def export_state(self) -> dict[str, Array]:
        """Return the state of the clients for a checkpoint, in client order: name -> (hi − lo, …)."""
        arrays = dict(zip(self.state._fields, self.state, strict=True)) | {"compute seconds": self.seconds}
        arrays |= export_states([*self.transforms.values()], "client")
        return {name: rows[self.slot] for name, rows in arrays.items()}

    def client_method(self, name: str, for_record: bool = False) -> ClientMethod:
        """Return a client method as clients here run it, or with ``for_record`` a method that evaluates."""
        if for_record:
            return self.evaluation.evaluators.get(name) or getattr(self.setup.algorithm, name)
        method = self.find_method(name)
        assert method is not None
        return method

    def then(self, request: Request, name: str) -> Callable[..., Array]:
        """Return the server's function of rows with this name, of a transform of the request or of the method."""
        functions = (self.find_transform(name).then(request) for name in request.transforms)
        return next(filter(None, functions), None) or getattr(self.setup.algorithm, name)

    def join(self) -> None:
        """Make the first state of every client."""
        init_client = self.client_method("init_client")
        for picks, f in self.blocks_of(None, (0, 0)):
            client = init_client(f)
            if self.state is None:
                numbers = sum(math.prod(field.shape[1:]) for field in client) * len(self.order)
                check_memory(numbers * self.dtype.itemsize, f"what clients {self.lo} to {self.hi - 1} keep")
                dtypes = [self.dtype if field.dtype.kind == "f" else field.dtype for field in client]
                arrays = [np.empty((len(self.order), *a.shape[1:]), t) for a, t in zip(client, dtypes, strict=True)]
                self.state = type(client)(*arrays)
            for field, value in zip(self.state, client, strict=True):
                field[picks] = value

    def handle(self, request: Request) -> tuple[Reply, HostReport]:
        """Run a client method on every client of a request, and return the replies, as rows or reduced."""
        if request.request_type in (SAVE, SERVICE):
            return self.services[request.method](request)
        started = time.perf_counter()
        try:
            replies, ids = self._run(request, self.request_handlers[request.request_type[0]](request))
        except ValueError as error:
            refuse_writing(error, request.method)
            raise
        reply, fault = self._reduce_replies(request, replies, ids)
        spent = time.perf_counter() - started
        signal = signals.signal_number() if signals.stop_signal else 0
        if request.request_type in FOR_THE_RECORD:
            self.evaluated += spent
            return reply, HostReport(evaluating=spent, signal=signal, fault=fault)
        self.computed += spent
        return reply, HostReport(computing=spent, slowest=spent, signal=signal, fault=fault)

    def error_reply(self, request: Request) -> tuple[Reply, HostReport]:
        """Return an empty reply in place of one that failed, with a report that says so."""
        ids = np.arange(self.lo, self.hi) if request.to is None or request.last else request.to
        count = ((self.lo <= ids) & (ids < self.hi)).sum()
        rows = {"sum": len(self.tree), "rows": int(count)}.get(request.reduce, 1)
        return Reply(np.zeros((rows, 0), self.dtype), None), HostReport(failed=1)

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore the state of the clients from the arrays of a checkpoint: name -> (hi − lo, …)."""
        arrays = {name: rows[self.order] for name, rows in arrays.items()}
        self.seconds = arrays.pop("compute seconds")
        restore_states([*self.transforms.values()], "client", arrays)
        self.state = type(self.state)(**arrays)

    def locate_clients(self, to: Array | None) -> tuple[Array | None, Array | None, Array]:
        """Return (ids, slots, order) of the clients ``to`` on this host; ``order`` maps slots to rows of ``ids``."""
        if to is None:
            return None, None, self.order
        ids = to[slice(*to.searchsorted([self.lo, self.hi]))]
        slots = self.slot[ids - self.lo]
        order = slots.argsort()
        return ids, slots[order], order

    def _method(self, request: Request) -> ClientCall:
        """Return a function that runs a client method of the algorithm."""
        method = self.client_method(request.method)
        return lambda batch, *args: method(batch.f, batch.state, *args)

    def _evaluation(self, request: Request) -> ClientCall:
        """Return a function that evaluates for the record and leaves the clients' state as it is."""
        method = self.client_method(request.method, for_record=True)
        return lambda batch, *args: (batch.state, method(batch.f, batch.state, *args))

    def _run(self, request: Request, answer: ClientCall) -> tuple[RowBuffer, Array | None]:
        """Run a request on its clients; return the replies in client order, and the clients (None: all)."""
        ids, slots, order = self.locate_clients(request.to)
        replies = self.make_buffer(request, self.ids if ids is None else ids, len(order))
        first = 0
        for picks, f in self.blocks_of(slots, request.key):
            begun = time.perf_counter()
            count = len(f)
            last = first + count
            rows = slice(first, last) if ids is None and self.sorted else order[first:last]
            first = last
            batch = ClientBatch(f, picks, type(self.state)(*[field[picks] for field in self.state]))
            args = request.args
            for name in request.transforms:
                args = self.find_transform(name).receive(request, batch, args)
            args = args if request.each is None else (*args, request.each[rows])
            new, reply = answer(batch, *args)
            for name in request.transforms:
                new, reply = self.find_transform(name).encode(request, batch, new, reply)
            if new is not batch.state:
                for field, before, after in zip(self.state, batch.state, new, strict=True):
                    if after is not before:
                        field[picks] = after
            if reply is not None and request.last is None:
                replies.put(rows, *split_reply(reply))
            if request.request_type not in FOR_THE_RECORD:
                self.seconds[picks] += (time.perf_counter() - begun) / count
        return replies, ids

    def make_buffer(self, request: Request, ids: Array, count: int) -> RowBuffer:
        """Make the buffer for the replies of ``count`` clients ``ids``: one that adds them up as they come, or rows."""
        if request.reduce == "sum" and request.last is None and self.sorted:
            return TreeSum(ids, self.dtype, self.tree)
        return RowBuffer(count, self.dtype, request.reduce != "rows")

    def _reduce_replies(self, request: Request, replies: RowBuffer, ids: Array | None) -> tuple[Reply, int]:
        """Reduce the replies of the clients ``ids`` (None: all) on this host; return them and the fault or 0."""
        if isinstance(replies, TreeSum) and not replies.keeps_rows:
            total = replies.close()
            return Reply(total, replies.layout), 0 if sums.all_finite(total) else self._fault(
                replies.first_bad or 0, ids
            )
        rows, layout = replies.rows, replies.layout
        if request.last is not None:
            field = getattr(self.state, request.last)
            field = field if self.sorted else field[self.slot]
            rows = field.reshape(len(field), -1)
            layout = ReplyLayout((field.shape[1:],))
            ids = None
        reduced = self.reductions[request.reduce](request, rows, ids)
        if request.reduce == "max" or sums.all_finite(reduced):
            return Reply(reduced, layout), 0
        bad = int(np.argmin(np.isfinite(rows).all(axis=1)))  # 0, the first client, if only the sum overflows
        return Reply(reduced, layout), self._fault(bad, ids)

    def _fault(self, position: int, ids: Array | None) -> int:
        """Return m minus the number of the client at a position in ``ids`` (None: all): the fault of a report."""
        return self.setup.m - (self.lo + position if ids is None else int(ids[position]))

    def blocks_of(self, slots: Array | None, key: tuple[int, int]) -> Iterator[tuple[slice | Array, Local]]:
        """Yield (slots, f) block by block for the clients at ``slots`` (rising, in block order; None: all)."""
        if slots is None:
            for part, block, ids in self.full_blocks:
                yield part, Local(block, self.setup, ids, key, self.local_transforms)
            return
        edges = slots.searchsorted(self.edges)
        for k in np.flatnonzero(np.diff(edges)).tolist():
            some = slots[edges[k] : edges[k + 1]]
            for begin, end, block in self.same_size[k].pieces(some - self.edges[k]):
                picks = as_slice(some[begin:end])
                yield picks, Local(block, self.setup, self.ids[picks], key, self.local_transforms)
