"""The sample gradients that client methods ask f for, counted for each client."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.typing import Array
from mpifed.federation.host import ClientMethod
from mpifed.federation.local import Local
from mpifed.federation.request import SCORES
from mpifed.federation.view import Key, View
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Solve


class Tally:
    """The sample gradients of m clients since ``clear``: ``gradients`` (m,), and the methods that have no such count.

    A value of f counts as a gradient. ``second``: the second derivatives that were asked for, which are neither.
    """

    def __init__(self, m: int) -> None:
        self.gradients = np.zeros(m, np.int64)
        self.second: dict[str, None] = {}

    def wrap(self, name: str, method: ClientMethod) -> ClientMethod:
        """The client method with an f that counts; scores of a selection have a time of their own."""
        if name in SCORES:
            return method
        return lambda f, *args: method(Counted.of(f, self), *args)

    def clear(self) -> Array:
        """The counts so far (m,), which begin anew."""
        found = self.gradients
        self.gradients = np.zeros_like(found)
        return found


class Counted(Local):
    """f_i of c clients that notes in a tally what it is asked for."""

    tally: Tally

    @classmethod
    def of(cls, f: Local, tally: Tally) -> Counted:
        """The clients of a call, counted from now on."""
        found = cls(f.block, f._study, f.ids, f.key)
        found.views = f.views
        found.tally = tally
        return found

    def like(self, block: Block, ids: Array, key: Key, views: Sequence[View] = ()) -> Counted:
        found = Counted(block, self._study, ids, key, views)
        found.tally = self.tally
        return found

    def count(self) -> None:
        """Count one gradient of each sample, or of each in the mini-batch."""
        self.tally.gradients[self.ids] += (to_numpy(self.block.w) > 0).sum(axis=1)

    def value(self, X: Array) -> Array:
        self.count()
        return super().value(X)

    def grad(self, X: Array) -> Array:
        self.count()
        return super().grad(X)

    def value_grad(self, X: Array) -> tuple[Array, Array]:
        self.count()
        return super().value_grad(X)

    def clipped_grad(self, X: Array, bound: float) -> Array:
        self.count()
        return super().clipped_grad(X, bound)

    def evaluate(self, X: Array) -> tuple[Array, ...]:
        self.count()
        return super().evaluate(X)

    def hessian(self, X: Array) -> Solve:
        self.tally.second["hessian"] = None
        return super().hessian(X)

    def hess(self, X: Array) -> Array:
        self.tally.second["hess"] = None
        return super().hess(X)

    def packed_hess(self, X: Array) -> Array:
        self.tally.second["packed_hess"] = None
        return super().packed_hess(X)
