"""Sums of uploads in fixed point, under pairwise masks: what clients send and what the server makes of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.request import Request
from mpifed.federation.setup import Setup

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
            if j < i and j not in row:
                uploads[k] -= draw(j, i)
            elif i < j:
                mask = draw(i, j)
                uploads[k] += mask
                if j in row:
                    uploads[row[j]] -= mask


def subtotal(setup: Setup, request: Request, rows: Array, ids: Array, called: Array) -> Array:
    """The sum (1, N) of the rows (c, N) of the clients ``ids`` of a host, in fixed point.

    Those of ``called`` among them upload now, under masks where the run computes them. Raises UserError where a row
    does not fit into fixed point.
    """
    masks = setup.masks
    assert masks is not None
    fixed, count = masks.fixed, summed(setup, request)
    largest = np.abs(rows).max(axis=1, initial=0.0)
    if (largest > fixed.limit(count)).any():
        refuse(setup, int(ids[largest.argmax()]), float(largest.max()), count)
    uploads = fixed.encode(rows)
    if masks.sums == "masked" and rows.shape[1]:
        own = np.flatnonzero(np.isin(ids, called))
        hidden = uploads[own]
        add_masks(hidden, ids[own], agreed(setup, request), draws(setup, request.key, rows.shape[1]))
        uploads[own] = fixed.reduced(hidden)
    return uploads.sum(axis=0, keepdims=True, dtype=np.uint64)


def opened(setup: Setup, request: Request, total: Array) -> Array:
    """The sum (N,) of all uploads as real numbers: the server removes the masks of clients that did not reply."""
    masks = setup.masks
    assert masks is not None
    if masks.sums == "masked" and request.peers is not None and request.to is not None:
        left = np.zeros((1, len(total)), np.uint64)
        gone, draw = np.setdiff1d(request.peers, request.to), draws(setup, request.key, len(total))
        for client in request.to if len(gone) else ():
            add_masks(left, np.array([client]), gone, draw)
        total = total - left[0]
    return masks.fixed.decode(total)


def summed(setup: Setup, request: Request) -> int:
    """Over how many clients a request adds up."""
    return setup.m if request.last is not None or request.to is None else len(request.to)


def agreed(setup: Setup, request: Request) -> Array:
    """The clients that agreed on masks for a request, also those that did not reply to it."""
    peers = request.to if request.peers is None else request.peers
    return np.arange(setup.m) if peers is None else peers


def refuse(setup: Setup, client: int, value: float, count: int) -> None:
    """UserError for an entry that is too large."""
    assert setup.masks is not None
    fixed = setup.masks.fixed
    most = fixed.room(value, count)
    raise UserError(
        f"masks.fraction = {fixed.fraction} is wrong: the upload of client {client} has an entry of size {value:.3g}, "
        f"and a sum of {count} clients in {fixed.bits} bits takes entries up to {fixed.limit(count):.3g}; "
        + (f"it must be at most {most}" if most >= 0 else "the iterates diverge, or masks.bits is too small")
    )
