"""Clients whose mini-batches a problem augments: random changes of samples, each client's from its own stream."""

from collections.abc import Callable, Iterator
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.data.blocks import Block
from mpifed.federation.local import Key, Local

Blocks = Iterator[tuple[Any, Local]]  # clients and where they are in block order


class Augmented(Local):
    """The same as Local, but the samples of its mini-batches are changed; full batches and evaluations are not."""

    @classmethod
    def of(cls, f: Local) -> Local:
        """The clients of ``f``."""
        return cls(f.block, f._study, f.ids, f._key)

    def take(self, rows: Array) -> Local:
        return self.of(super().take(rows))

    def keyed(self, key: Key) -> Local:
        return self.of(super().keyed(key))

    @cached_property
    def changes(self) -> list[np.random.Generator]:
        """One random stream a client for the changes of a round and call."""
        return self.streams(self._study.seed, "augment")

    def _steps(self, k0: int, epochs: int, size: int) -> Iterator[tuple[int, Local, Array | int]]:
        for j, batch, has in super()._steps(k0, epochs, size):
            if batch is not self:  # of all samples
                batch.block = self._changed(batch.block)
            yield j, batch, has

    def _changed(self, block: Block) -> Block:
        """A mini-batch with other samples. What is drawn for a client depends on its own number of them alone."""
        made = copy(block)
        counts = (block.w > 0).sum(axis=1).tolist()
        made.A = self.problem.augmented(block.A, counts, self.changes)
        return made


def augmenting(blocks_of: Callable[..., Blocks]) -> Callable[..., Blocks]:
    """``blocks_of`` of a host, with clients whose mini-batches are augmented."""

    def blocks(slots: Array | None, key: tuple[int, int]) -> Blocks:
        for picks, f in blocks_of(slots, key):
            yield picks, Augmented.of(f)

    return blocks
