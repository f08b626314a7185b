"""Harrell's c-index: of two samples, how often the one with the higher score has its event first."""

from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array
from mpifed.kernels.blocks import Block


class Pairs(NamedTuple):
    """The samples of each client by rising time, events before those censored at that time, and padding up to 2^k.

    ``order`` (c, P): positions in the (c, D) samples, row by row; ``real``: which are no padding; ``events``: which are
    events. ``turn`` (c, P): rising numbers, equal for events at one time: an event and a later turn make a pair.
    ``tied``: whether some are equal. ``number`` (c,): how many pairs there are.
    """

    order: Array
    real: Array
    events: Array
    turn: Array
    tied: bool
    number: Array


def concordance(block: Block, Z: Array) -> Array:
    """The c-index at scores z (c, D), for each client alone: (c,); 1/2 where there is no pair.

    A pair is an event and a sample with a later time, or censored at the same time. Equal scores count 1/2.
    Source: F. E. Harrell et al., "Evaluating the yield of medical tests", doi:10.1001/jama.1982.03320430047030 (1982).
    """
    pairs: Pairs = block.note("pairs", pairs_of)
    scores = np.where(pairs.real, Z.take(pairs.order), np.inf)
    # events at one time are no pair: by rising score they are in no inversion
    if pairs.tied:
        scores = np.take_along_axis(scores, np.lexsort((scores, pairs.turn), axis=-1), axis=1)
    rising = np.argsort(scores, axis=1, kind="stable")
    higher = as_high = inversions(rising, pairs.events)
    ranked = np.take_along_axis(scores, rising, axis=1)
    # equal scores count a half: once they are sorted as no inversions and once as inversions, and the mean is taken.
    # Only padding is infinite, and it is in no pair
    if ((ranked[:, 1:] == ranked[:, :-1]) & (ranked[:, 1:] < np.inf)).any():
        as_high = inversions(np.lexsort((-pairs.turn, scores), axis=-1), pairs.events)
    return np.where(pairs.number, (higher + as_high) / (2 * np.maximum(pairs.number, 1)), 0.5)


def comparable(block: Block) -> Array:
    """Which clients have a pair: (c,) bool."""
    pairs: Pairs = block.note("pairs", pairs_of)
    return pairs.number > 0


def pairs_of(block: Block) -> Pairs:
    c, D = block.b.shape
    real = block.w > 0
    times = np.where(real, np.abs(block.b), np.inf)
    order = np.lexsort((block.b < 0, times), axis=-1)
    # a power of two, so that ``inversions`` can halve its groups down to single elements, all rows at once
    P = 1 << max(D - 1, 0).bit_length()
    order = np.pad(order, ((0, 0), (0, P - D))) + np.arange(0, c * D, D)[:, None]
    real = real.take(order) & (np.arange(P) < D)
    events = real & (block.b.take(order) > 0)
    times = times.take(order)
    same = events[:, 1:] & events[:, :-1] & (times[:, 1:] == times[:, :-1])
    turn = np.pad(np.cumsum(~same, axis=1), ((0, 0), (1, 0)))
    last = np.where(np.pad(~same, ((0, 0), (0, 1)), constant_values=True), np.arange(P), P)
    last = np.minimum.accumulate(last[:, ::-1], axis=1)[:, ::-1]
    number = np.where(events, real.sum(axis=1, keepdims=True) - 1 - last, 0).sum(axis=1)
    return Pairs(order, real, events, turn, bool(same.any()), number)


def inversions(sorting: Array, marked: Array) -> Array:
    """How many later elements are smaller than a marked one, for each row: (c,).

    ``sorting`` (c, 2^k): the elements' places by rising size; no two have the same size. Two elements differ first in
    some binary digit of their ranks: with the digits above it in common they are in one group, of which half has a 1.
    """
    c, P = sorting.shape
    ranks = np.empty_like(sorting)
    np.put_along_axis(ranks, sorting, np.arange(P)[None], axis=1)
    words = (2 * ranks + marked).reshape(c, 1, P)
    found = np.zeros(c, np.int64)
    while P > 1:
        high = (words & P).astype(bool)  # the digit of P/2 in the rank
        before = np.cumsum(high & (words & 1).astype(bool), axis=2)
        found += np.where(high, 0, before).sum(axis=(1, 2))
        P //= 2
        low, up = (words[part].reshape(c, -1, P) for part in (~high, high))
        words = np.concatenate([low, up], axis=2).reshape(c, -1, P)
    return found
