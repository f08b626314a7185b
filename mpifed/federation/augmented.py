"""Clients whose mini-batches a problem augments: random changes of samples, each client's from its own stream."""

from collections.abc import Iterator
from copy import copy
from functools import cached_property

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.scaled_local import ScaledLocal
from mpifed.federation.seeded import Seeded
from mpifed.kernels.blocks import Block


class Augmented(Seeded):
    """The same as Seeded, but the samples of its mini-batches are changed; full batches and evaluations are not."""

    @cached_property
    def changes(self) -> list[np.random.Generator]:
        """One random stream a client for the changes of a round and call."""
        return self.streams(self._study.seed, "augment")

    def _steps(self, k0: int, epochs: int, size: int) -> Iterator[tuple[int, Local, Array | int]]:
        for j, batch, has in super()._steps(k0, epochs, size):
            if batch.block is not self.block:  # of all samples
                batch.block = self._changed(batch.block)
            yield j, batch, has

    def _changed(self, block: Block) -> Block:
        """A mini-batch with other samples. What is drawn for a client depends on its own number of them alone."""
        made = copy(block)
        counts = (block.w > 0).sum(axis=1).tolist()
        made.A = self.problem.augmented(block.A, counts, self.changes)
        return made


class AugmentedScaled(ScaledLocal, Augmented):
    """The same where clients have weights."""
