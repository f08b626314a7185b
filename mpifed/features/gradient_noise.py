"""Feature of problems whose gradients in local steps have normal noise, drawn from the stream of each client."""

import numpy as np

from mpifed.core.promises import Supports
from mpifed.core.streams import streams
from mpifed.core.typing import Array
from mpifed.features.feature import Plugin
from mpifed.federation.local_transform import F, Gradient, LocalClients, LocalTransform, Steps
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.kernels.blocks import Block


class NoisyGradients(LocalTransform):
    """Local transform: ∇f_i + ξ, ξ ~ N(0, σ²I), in place of ∇f_i, new in each gradient of a call; f stays exact.

    ``draws`` are the clients' streams of a round and a call, which go on from one gradient to the next.
    """

    def __init__(self, run: int, sigma: float, draws: list[np.random.Generator] | None = None) -> None:
        self.run, self.sigma = run, sigma
        self.draws = draws

    def of(self, f: LocalClients, rows: Array | None = None) -> LocalTransform:
        if rows is None or self.draws is None:
            return NoisyGradients(self.run, self.sigma)
        return NoisyGradients(self.run, self.sigma, [self.draws[row] for row in rows])

    def gradient(self, f: LocalClients, before: Gradient) -> Gradient:
        self.begin(f)

        def noisy(block: Block, X: Array) -> Array:
            g = before(block, X)
            assert self.draws is not None
            normal = np.stack([draw.standard_normal(g.shape[1]) for draw in self.draws])
            return g + f.xp.asarray((self.sigma * normal).astype(block.b.dtype))

        return noisy

    def steps(self, f: F, steps: Steps[F]) -> Steps[F]:
        self.begin(f)
        position = f.transforms.index(self)
        for j, batch, has in steps:
            # a mini-batch is a new f of the same clients: without this its streams would begin anew
            batch.transforms[position] = self
            yield j, batch, has

    def begin(self, f: LocalClients) -> None:
        """Create the streams of these clients, unless they exist."""
        if self.draws is None:
            self.draws = streams(self.run, "gradient noise", f.ids, *f.key)


class GradientNoise(Plugin):
    """Normal noise in the gradients of local steps."""

    # Noise follows from seed, client, round and call, and is added where the client lives.
    supports = Supports.EVERYTHING

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[NoisyGradients]:
        return [NoisyGradients(self.config.seed, getattr(self.config.problem, "noise", 0.0))]
