"""Requests of every kind."""

import msgspec
import numpy as np

from mpifed.features.masks.feature import MaskedSums
from mpifed.federation.request import EVALUATE, EVALUATE_SUMS, MASKED, Request


def kept(k, step, first, to, key):
    """A sum of what two clients keep, with arguments of all types."""
    rest = np.array([first, not first])
    return Request("update", (np.arange(7.0), k, step, None, first), np.array(to), rest, "sum", "z", None, key)


REQUESTS = [
    kept(3, 0.1, True, [1, 5], (4, 2)),
    Request("update", (np.arange(20_000.0), np.arange(7, dtype=np.float32), -2), reduce="plain sum", key=(1, 0)),
    Request("bound"),
    kept(4, 0.2, False, [2, 8], (5, 0)),
    Request(EVALUATE_SUMS, (np.ones(7),), reduce="max", request_type=EVALUATE),
    Request(
        "update",
        (np.ones(7),),
        np.array([2, 8]),
        reduce=MASKED,
        key=(6, 1),
        transforms={MaskedSums.name: np.array([1, 2, 8])},
    ),
]


def equal(one, other):
    """Of two requests, or of parts of them."""
    if isinstance(one, Request):
        return isinstance(other, Request) and equal(msgspec.structs.astuple(one), msgspec.structs.astuple(other))
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(equal, one, other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(equal(one[name], other[name]) for name in one)
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and np.array_equal(one, other)
    return type(one) is type(other) and one == other
