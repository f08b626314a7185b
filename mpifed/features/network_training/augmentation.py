"""Clients whose mini-batches a problem augments: random changes of samples, each client's from its own stream."""

from copy import copy

import numpy as np

from mpifed.core.streams import streams
from mpifed.core.typing import Array
from mpifed.federation.view import Clients, F, Steps, View
from mpifed.kernels.blocks import Block


class Augmentation(View):
    """The samples of mini-batches are changed; those of full batches and evaluations are not."""

    def __init__(self, run: int) -> None:
        self.run = run
        self.changes: list[np.random.Generator] = []  # one random stream a client for those of a round and call

    def of(self, f: Clients, rows: Array | None = None) -> View:
        # streams begin anew for some of the clients too, as those do from which their mini-batches are drawn
        return Augmentation(self.run)

    def steps(self, f: F, steps: Steps[F]) -> Steps[F]:
        for j, batch, has in steps:
            if batch.block is not f.block:  # of all samples
                batch.block = self.changed(f, batch.block)
            yield j, batch, has

    def changed(self, f: Clients, block: Block) -> Block:
        """A mini-batch with other samples. What is drawn for a client depends on its own number of them alone."""
        # one loop after the other goes on in the same streams
        self.changes = self.changes or streams(self.run, "augment", f.ids, *f.key)
        made = copy(block)
        counts = (block.w > 0).sum(axis=1).tolist()
        made.A = f.problem.augmented(block.A, counts, self.changes)
        return made
