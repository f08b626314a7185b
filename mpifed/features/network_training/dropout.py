"""Clients whose gradients are random in local steps, as with dropout: a number for each, from which masks follow."""

from functools import partial

import numpy as np

from mpifed.core.streams import hashed, own_number, wrapped
from mpifed.core.typing import Array
from mpifed.federation.view import Clients, F, Gradient, Steps, View


class Dropout(View):
    """Gradients with the problem's random numbers.

    They follow from the seed of the ``run``, the client, the round and the call, and in ``steps`` from the number of
    the local step. At two points of one step they are the same.
    """

    def __init__(self, run: int, seeds: Array | None = None, loops: int = 0) -> None:
        self.run = run
        self.seeds = seeds
        self.loops = loops  # how often ``steps`` was called

    def of(self, f: Clients, rows: Array | None = None) -> View:
        if rows is None:
            return Dropout(self.run)
        # some of the clients in the midst of a step: they go on with its numbers, and their next loop is the next one
        return Dropout(self.run, None if self.seeds is None else self.seeds[rows], self.loops)

    def drawn(self, f: Clients) -> Array:
        """A whole number of 64 bits for each client: (c,)."""
        # not when it is made: most calls need none, such as evaluations
        if self.seeds is None:
            run = np.full(len(f), wrapped(self.run))
            self.seeds = hashed(run, wrapped(own_number("dropout")), f.ids, *f.key)
        return self.seeds

    def gradient(self, f: Clients, before: Gradient) -> Gradient:
        return partial(f.problem.seeded_grad, seeds=self.drawn(f))

    def steps(self, f: F, steps: Steps[F]) -> Steps[F]:
        self.loops += 1
        # noted now: a loop that begins before this one has ended counts on
        loop = self.loops
        place = f.views.index(self)
        epoch = -1
        k = 0  # mini-batches are counted in each epoch anew: other clients may have more of them
        for j, batch, has in steps:
            k = k + 1 if j == epoch else 0
            epoch = j
            # of all samples every step has the same f, which goes on with its own numbers after the loop
            own = f.keyed(f.key) if batch is f else batch
            own.views[place] = Dropout(self.run, hashed(self.drawn(f), loop, j, k))
            yield j, own, has
