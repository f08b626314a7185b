"""Many clients of few samples, which are in memory without their padding: a block gets it when it is computed with.

Five samples are padded to eight rows: 1.6 times the memory. A gradient of softmax takes 3 % longer where blocks
get their padding anew, one of logistic loss up to half as long again: so only large sets of samples leave it out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mpifed.core.typing import Array

LARGE = 1 << 28  # bytes of samples with their padding, from which on memory counts more than time, and it is left out …
SHARE = 8  # … if it is more than one in so many rows


def left_out(rows: int, shape: tuple[int, int, int], itemsize: int) -> bool:
    """Whether clients of at most so many samples, padded to ``shape`` (c, D, n), are stored without the padding."""
    return math.prod(shape) * itemsize > LARGE and SHARE * (shape[1] - rows) > shape[1]


class Unpadded:
    """Samples A (c, d, n) of clients whose blocks have D rows, those from d on 0, and ``rows``: the clients of a block.

    ``last`` has the samples with padding that were asked for last, one block's of all that are parts of the same A.
    """

    def __init__(self, A: Array, D: int, rows: slice | Array, last: dict[str, Any]) -> None:
        self.A = A
        self.D = D
        self.rows = rows
        self.last = last

    def part(self, rows: slice | Array) -> Unpadded:
        """The clients at positions ``rows`` of these."""
        own = self.rows
        if not isinstance(own, slice):
            own = own[rows]
        elif isinstance(rows, slice):
            span = range(len(self.A))[own][rows]
            own = slice(span.start, span.stop)
        else:
            own = np.arange(len(self.A))[own][rows]
        return Unpadded(self.A, self.D, own, self.last)

    def padded(self) -> Array:
        """The samples with padding: (c, D, n)."""
        # a block is asked several times before the next one, which takes its place
        if self.last.get("rows") is not self.rows:
            own = self.A[self.rows]
            d = own.shape[1]
            A = np.empty((len(own), self.D, own.shape[2]), own.dtype)
            A[:, :d] = own
            A[:, d:] = 0
            self.last.update(rows=self.rows, A=A)
        found: Array = self.last["A"]
        return found
