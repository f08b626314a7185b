"""What clients run on, and how long they take: computed, never measured."""

from typing import Any

import numpy as np

from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.setup import Setup
from mpifed.federation.timing.system import KEYS, System
from mpifed.federation.wire.compressed import traffic

JITTER = 1  # the stream of a round; that of dropping out is 0, and those of the clients are in round 0


class Devices:
    """The devices of m clients with ``sizes`` samples.

    ``work`` (m,) sample gradients between two selections, ``bytes`` down and up of one client for each selection.
    """

    def __init__(self, system: System, setup: Setup, sizes: Array) -> None:
        self.system = system
        self.seed = setup.seed
        self.sizes = sizes
        self.speed, self.down, self.up, self.latency = (system.drawn(setup.seed, key, len(sizes)) for key in KEYS)
        self.work = system.worked(setup.algorithm, sizes)
        self.model, self.bytes = setup.start.nbytes, traffic(setup)

    def factor(self, ids: Array, round: int, again: int) -> Any:
        """By how much the computing of the clients ``ids`` differs in a selection: (c,), or one number."""
        if not self.system.jitter:
            return 1.0
        normal = stream(self.seed, "system", round, again, JITTER).standard_normal(len(self.sizes))
        return np.exp(self.system.jitter * normal[ids])

    def times(self, ids: Array, factor: Any, work: Array, down: float, up: float) -> Array:
        """T of the clients ``ids`` for ``work`` (m,) sample gradients, times ``factor``, and these bytes: (c,)."""
        latency = self.latency[ids]
        return latency + down / self.down[ids] + work[ids] / self.speed[ids] * factor + latency + up / self.up[ids]

    def usual(self, ids: Array, factor: Any) -> Array:
        """T of the clients ``ids`` for the method's own work and bytes: (c,)."""
        return self.times(ids, factor, self.work, *self.bytes)
