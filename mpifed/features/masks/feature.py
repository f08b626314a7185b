"""Feature of secure aggregation, the table [masks]: sums of uploads in fixed point under pairwise masks."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.feature import Plugin
from mpifed.features.masks.masks import FixedPoint, Masks, WholeNumbers
from mpifed.features.message_conflicts import MESSAGES
from mpifed.federation.request import FOR_THE_RECORD, MASKED, Reply, Request
from mpifed.federation.schedule import Schedule
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.sums import Reduction, all_finite
from mpifed.federation.transform import MessageCost, Transform

ROOM = 1 << 16  # numbers that are encoded at a time
DrawMask = Callable[[int, int], Array]  # clients i < j -> their common mask (N,), uint64


def make_draw(setup: RunSpec, key: tuple[int, int], numbers: int) -> DrawMask:
    """Return a function that draws the masks of a request: a stream per pair, round and call; none is used twice."""

    def draw(i: int, j: int) -> Array:
        raw: Any = stream(setup.seed, "masks", i * setup.m + j, *key).bit_generator
        return np.asarray(raw.random_raw(numbers), np.uint64)

    return draw


def add_masks(uploads: Array, ids: Array, peers: Array, draw: DrawMask) -> None:
    """Mask the uploads (c, N) of the clients ``ids`` in place, with the masks that they share with ``peers``.

    The client with the smaller number adds the mask of a pair, the other one subtracts it.
    """
    row = {client: k for k, client in enumerate(ids.tolist())}
    for i, k in row.items():
        for j in peers.tolist():
            # a pair with both clients on this host is drawn once, by the smaller number, and used twice
            if j < i and j not in row:
                uploads[k] -= draw(j, i)
            elif i < j:
                mask = draw(i, j)
                uploads[k] += mask
                if j in row:
                    uploads[row[j]] -= mask


class MaskedSums(Transform):
    """Transform of sums: uploads are added up in fixed point, under masks where the run computes them.

    All selected clients have agreed on masks, those that are absent later included.
    """

    # It comes last, so that uploads have their noise; masks come from seed, round and pair, and hide nothing.
    supports = Supports.EVERYTHING
    name = "masked"

    def __init__(self, setup: RunSpec, masks: Masks, schedule: Schedule | None = None, whole: bool = False) -> None:
        self.setup = setup
        self.masks = masks
        # with ``whole`` clients send whole numbers
        self.fixed_point = WholeNumbers(masks.bits, 0) if whole else masks.fixed_point
        self.schedule = schedule  # of the server

    def begin(self, request: Request, cost: MessageCost) -> None:
        """Mark a sum of uploads as masked, and name the clients that agreed on masks."""
        if request.request_type in FOR_THE_RECORD or request.reduce not in ("sum", "plain sum"):
            return
        if cost.charge is False:
            raise self.make_error(request)
        if self.masks.sums != "float":
            request.reduce = MASKED
        peers = None
        schedule = self.schedule
        assert schedule is not None
        if request.to is schedule.selected and schedule.requested_clients is not request.to:
            peers = np.arange(self.setup.m) if schedule.requested_clients is None else schedule.requested_clients
        self.mark(request, peers)

    def charge(self, request: Request, reply: Reply, count: int, cost: MessageCost) -> None:
        """Set the bytes up and down of ``count`` replies under masks."""
        numbers = reply.rows.shape[-1]
        if not numbers:
            return
        if request.reduce in ("rows", "max"):
            raise self.make_error(request)
        if cost.bits is not None:
            raise UserError(f"masks cannot be used with {self.setup.algorithm.label()}: it compresses its uploads")
        peers = request.transforms.get(self.name)
        cost.masked_bytes = self.masks.message_bytes(count if peers is None else len(peers), count, numbers)

    def decode(self, request: Request, reply: Reply) -> None:
        """Replace a masked sum by its real numbers."""
        if request.reduce == MASKED:
            total = unmask(self, request, reply.rows)
            reply.rows = total.astype(self.setup.start.dtype, copy=False)

    def make_error(self, request: Request) -> UserError:
        """Return the error of a request that needs uploads one by one."""
        return UserError(
            f"masks cannot be used with {self.setup.algorithm.label()}: its server needs the uploads of "
            f"{request.method} one by one, and masks hide single uploads"
        )

    def reductions(self, ids: Array) -> dict[str, Reduction]:
        """Return the sum in fixed point; it is not finite where a row is not."""
        own = ids

        def reduce(request: Request, rows: Array, ids: Array | None) -> Array:
            if not all_finite(rows):
                # integers have no NaN: the host returns NaN in place of a sum, and the server names the client
                return np.full((1, rows.shape[1]), np.nan)
            called = own if request.to is None else request.to
            return sum_rows(self, request, rows, own if ids is None else ids, called)

        return {MASKED: reduce}


def sum_rows(sums: MaskedSums, request: Request, rows: Array, ids: Array, called: Array) -> Array:
    """Return the sum (1, N) of the rows (c, N) of the clients ``ids`` of a host, in fixed point.

    Clients of ``called`` among them upload now, under masks where the run computes them. Raises UserError where a row
    does not fit into fixed point.
    """
    fixed = sums.fixed_point
    count = sums.setup.m if request.last is not None or request.to is None else len(request.to)
    largest = np.maximum(rows.max(axis=1, initial=0.0), -rows.min(axis=1, initial=0.0))
    if (largest > fixed.limit(count)).any():
        value = float(largest.max())
        maximum = fixed.maximum_fraction(value, count)
        raise UserError(
            f"masks.fraction = {fixed.fraction} is wrong: the upload of client {ids[largest.argmax()]} has an entry of "
            f"size {value:.3g}, and a sum of {count} clients in {fixed.bits} bits takes entries up to "
            f"{fixed.limit(count):.3g}; "
            + (f"it must be at most {maximum}" if maximum >= 0 else "the iterates diverge, or masks.bits is too small")
        )
    if sums.masks.sums == "fixed-point":
        return sum_in_chunks(fixed, rows)
    uploads = fixed.encode(rows)
    if rows.shape[1]:
        uploading = np.flatnonzero(np.isin(ids, called))
        hidden = uploads[uploading]
        sent = request.transforms.get(MaskedSums.name)
        peers = request.to if sent is None else sent
        agreed = np.arange(sums.setup.m) if peers is None else peers  # also those that did not reply
        add_masks(hidden, ids[uploading], agreed, make_draw(sums.setup, request.key, rows.shape[1]))
        uploads[uploading] = fixed.wrap(hidden)
    return uploads.sum(axis=0, keepdims=True, dtype=np.uint64)


def sum_in_chunks(fixed: FixedPoint, rows: Array) -> Array:
    """Return the sum (1, N) of rows (c, N) in fixed point, a few at a time: arrays that fit into a cache are quick."""
    total = np.zeros((1, rows.shape[1]), np.uint64)
    some = max(ROOM // max(rows.shape[1], 1), 1)
    for first in range(0, len(rows), some):
        total += fixed.encode(rows[first : first + some]).sum(axis=0, dtype=np.uint64)
    return total


def unmask(sums: MaskedSums, request: Request, total: Array) -> Array:
    """Return the sum (N,) of all uploads as real numbers, without the masks of clients that did not reply."""
    peers = request.transforms.get(MaskedSums.name)
    if sums.masks.sums == "masked" and peers is not None and request.to is not None:
        # clients that dropped out had agreed on masks that are never subtracted: the server rebuilds and removes these
        left = np.zeros((1, len(total)), np.uint64)
        gone = np.setdiff1d(peers, request.to)
        draw = make_draw(sums.setup, request.key, len(total))
        for client in request.to if len(gone) else ():
            add_masks(left, np.array([client]), gone, draw)
        total = total - left[0]
    return sums.fixed_point.decode(total)


class SecureAggregation(Plugin):
    """Uploads under masks that cancel in their sum."""

    # Its transform speaks for itself.
    supports = Supports.EVERYTHING
    conflicts = MESSAGES["masks"]

    @property
    def table(self) -> Masks:
        assert self.config.masks is not None
        return self.config.masks

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[MaskedSums]:
        # after compression: masks hide what is left of an upload
        privacy = self.config.privacy
        whole = privacy is not None and privacy.mechanism.under_masks
        return [MaskedSums(setup, self.table, None if fed is None else fed.schedule, whole)]
