"""Clients whose gradients in local steps have normal noise, each client's from its own stream."""

import numpy as np

from mpifed.core.streams import streams
from mpifed.core.typing import Array
from mpifed.federation.view import Clients, F, Gradient, Steps, View
from mpifed.kernels.blocks import Block


class Noisy(View):
    """∇f_i + ξ, ξ ~ N(0, σ²I), in place of ∇f_i: new in each gradient of a call. f and what is evaluated are exact.

    ``draws`` are the clients' streams of a round and a call, which go on from one gradient to the next.
    """

    def __init__(self, run: int, sigma: float, draws: list[np.random.Generator] | None = None) -> None:
        self.run, self.sigma = run, sigma
        self.draws = draws

    def of(self, f: Clients, rows: Array | None = None) -> View:
        if rows is None or self.draws is None:
            return Noisy(self.run, self.sigma)
        return Noisy(self.run, self.sigma, [self.draws[row] for row in rows])

    def gradient(self, f: Clients, before: Gradient) -> Gradient:
        self.begin(f)

        def noisy(block: Block, X: Array) -> Array:
            g = before(block, X)
            assert self.draws is not None
            drawn = np.stack([draw.standard_normal(g.shape[1]) for draw in self.draws])
            return g + f.xp.asarray((self.sigma * drawn).astype(block.b.dtype))

        return noisy

    def steps(self, f: F, steps: Steps[F]) -> Steps[F]:
        self.begin(f)
        place = f.views.index(self)
        for j, batch, has in steps:
            # a mini-batch is a new f of the same clients, whose streams would begin anew
            batch.views[place] = self
            yield j, batch, has

    def begin(self, f: Clients) -> None:
        """Begin the streams of these clients, unless they have begun."""
        if self.draws is None:
            self.draws = streams(self.run, "gradient noise", f.ids, *f.key)
