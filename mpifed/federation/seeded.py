"""Clients whose gradients are random in local steps, as with dropout: a number for each, from which masks follow."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np

from mpifed.core.arrays import to_numpy
from mpifed.core.streams import hashed, own_number, wrapped
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.scaled_local import ScaledLocal


class Seeded(Local):
    """The same as Local, but ``grad`` has the problem's random numbers.

    They follow from the seed of the run, the client, the round and the call, and in ``steps`` from the number of the
    local step. At two points of one step they are the same.
    """

    loops = 0  # how often ``steps`` was called

    @cached_property
    def seeds(self) -> Array:
        """A whole number of 64 bits for each client: (c,)."""
        run = np.full(len(self), wrapped(self._study.seed))
        return hashed(run, wrapped(own_number("dropout")), self.ids, *self._key)

    def grad(self, X: Array) -> Array:
        return self.problem.seeded_grad(self.block, X, self.seeds)

    def take(self, rows: Array) -> Local:
        found = super().take(rows)
        if isinstance(found, Seeded) and found is not self:
            found.seeds = self.seeds[to_numpy(rows)]
            found.loops = self.loops
        return found

    def _steps(self, k0: int, epochs: int, size: int) -> Iterator[tuple[int, Local, Array | int]]:
        self.loops += 1
        loop = self.loops
        epoch, k = -1, 0  # mini-batches are counted in each epoch anew: other clients may have more of them
        for j, batch, has in super()._steps(k0, epochs, size):
            k = k + 1 if j == epoch else 0
            epoch = j
            own = self.keyed(self._key) if batch is self else batch
            assert isinstance(own, Seeded)
            own.seeds = hashed(self.seeds, loop, j, k)
            yield j, own, has


class SeededScaled(ScaledLocal, Seeded):
    """The same where clients have weights."""
