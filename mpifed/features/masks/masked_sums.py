"""Sums of uploads in fixed point, under pairwise masks: what clients send and what the server makes of it."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.masks.masks import Masks
from mpifed.federation.request import FOR_THE_RECORD, MASKED, Reply, Request
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import Setup
from mpifed.federation.stage import HostStage, Postage, ServerStage
from mpifed.federation.sums import Reduction, finite

MASKS = "masked"

Draw = Callable[[int, int], Array]  # clients i < j -> the mask (N,) that they have in common, uint64


def draws(setup: Setup, key: tuple[int, int], numbers: int) -> Draw:
    """The masks of a request: one stream for each pair of clients, round and call, so that none is used twice."""

    def draw(i: int, j: int) -> Array:
        raw: Any = stream(setup.seed, "masks", i * setup.m + j, *key).bit_generator
        return np.asarray(raw.random_raw(numbers), np.uint64)

    return draw


def add_masks(uploads: Array, ids: Array, peers: Array, draw: Draw) -> None:
    """Put the uploads (c, N) of the clients ``ids`` under the masks that they have with ``peers``, in place.

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


class ServerMasks(ServerStage):
    """The server's side of the stage [masks]: clients that were selected have agreed on masks, also the absent."""

    # It says which sums are masked and decodes them: uploads have their noise before. Masks of a seed hide nothing.
    keeps = Keeps.EVERYTHING

    def __init__(self, setup: Setup, masks: Masks, schedule: Schedule) -> None:
        self.setup = setup
        self.masks = masks
        self.schedule = schedule

    def down(self, request: Request, postage: Postage) -> None:
        """Have a sum of uploads made under masks, and name the clients that agreed on them."""
        if request.verb in FOR_THE_RECORD or request.reduce not in ("sum", "plain sum"):
            return
        if postage.charge is False:
            raise self.single(request)
        if self.masks.sums != "float":
            request.reduce = MASKED
        peers = None
        schedule = self.schedule
        if request.to is schedule.selected and schedule.asked is not request.to:
            peers = np.arange(self.setup.m) if schedule.asked is None else schedule.asked
        request.stages = {**request.stages, MASKS: peers}

    def cost(self, request: Request, reply: Reply, count: int, postage: Postage) -> None:
        """The bytes up and down of ``count`` replies under masks."""
        numbers = reply.rows.shape[-1]
        if not numbers:
            return
        if request.reduce in ("rows", "max"):
            raise self.single(request)
        if postage.bits is not None:
            raise UserError(f"masks cannot be used with {self.setup.algorithm.label()}: it compresses its uploads")
        peers = request.stages.get(MASKS)
        postage.masked = self.masks.charged(count if peers is None else len(peers), count, numbers)

    def open(self, request: Request, reply: Reply) -> None:
        """Sums as real numbers."""
        if request.reduce == MASKED:
            total = opened(self.setup, self.masks, request, reply.rows)
            reply.rows = total.astype(self.setup.start.dtype, copy=False)

    def single(self, request: Request) -> UserError:
        """The error of a request that needs uploads one by one."""
        return UserError(
            f"masks cannot be used with {self.setup.algorithm.label()}: its server needs the uploads of "
            f"{request.method} one by one, and masks hide single uploads"
        )


class HostMasks(HostStage):
    """The side of a host: uploads are added up in fixed point, under masks where the run computes them."""

    # It comes last, so that uploads have their noise; masks come from seed, round and pair.
    keeps = Keeps.EVERYTHING

    def __init__(self, setup: Setup, masks: Masks) -> None:
        self.setup, self.masks = setup, masks

    def reductions(self, own: Array) -> dict[str, Reduction]:
        """The sum in fixed point; where a row is not finite, it is not either."""

        def reduced(request: Request, rows: Array, ids: Array | None) -> Array:
            if not finite(rows):
                # integers have no NaN: the host says so in the place of a sum, and the server names the client
                return np.full((1, rows.shape[1]), np.nan)
            called = own if request.to is None else request.to
            return subtotal(self.setup, self.masks, request, rows, own if ids is None else ids, called)

        return {MASKED: reduced}


def subtotal(setup: Setup, masks: Masks, request: Request, rows: Array, ids: Array, called: Array) -> Array:
    """The sum (1, N) of the rows (c, N) of the clients ``ids`` of a host, in fixed point.

    Those of ``called`` among them upload now, under masks where the run computes them. Raises UserError where a row
    does not fit into fixed point.
    """
    fixed = masks.fixed
    count = setup.m if request.last is not None or request.to is None else len(request.to)
    largest = np.abs(rows).max(axis=1, initial=0.0)
    if (largest > fixed.limit(count)).any():
        value = float(largest.max())
        most = fixed.room(value, count)
        raise UserError(
            f"masks.fraction = {fixed.fraction} is wrong: the upload of client {ids[largest.argmax()]} has an entry of "
            f"size {value:.3g}, and a sum of {count} clients in {fixed.bits} bits takes entries up to "
            f"{fixed.limit(count):.3g}; "
            + (f"it must be at most {most}" if most >= 0 else "the iterates diverge, or masks.bits is too small")
        )
    uploads = fixed.encode(rows)
    if masks.sums == "masked" and rows.shape[1]:
        own = np.flatnonzero(np.isin(ids, called))
        hidden = uploads[own]
        sent = request.stages.get(MASKS)
        peers = request.to if sent is None else sent
        agreed = np.arange(setup.m) if peers is None else peers  # also those that did not reply
        add_masks(hidden, ids[own], agreed, draws(setup, request.key, rows.shape[1]))
        uploads[own] = fixed.reduced(hidden)
    return uploads.sum(axis=0, keepdims=True, dtype=np.uint64)


def opened(setup: Setup, masks: Masks, request: Request, total: Array) -> Array:
    """The sum (N,) of all uploads as real numbers: the server removes the masks of clients that did not reply."""
    peers = request.stages.get(MASKS)
    if masks.sums == "masked" and peers is not None and request.to is not None:
        # clients that dropped out had agreed on masks that are never subtracted: the server rebuilds and removes these
        left = np.zeros((1, len(total)), np.uint64)
        gone = np.setdiff1d(peers, request.to)
        draw = draws(setup, request.key, len(total))
        for client in request.to if len(gone) else ():
            add_masks(left, np.array([client]), gone, draw)
        total = total - left[0]
    return masks.fixed.decode(total)
