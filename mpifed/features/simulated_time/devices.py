"""What clients run on, and how long they take: computed, never measured."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mpifed.compressors.compressor import Compressor
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.simulated_time.system import KEYS, System
from mpifed.federation.setup import Setup

JITTER = 1  # the stream of a round; that of dropping out is 0, and those of the clients are in round 0


class Devices:
    """The devices of m clients with ``sizes`` samples.

    ``work`` (m,) sample gradients between two selections, ``bytes`` down and up of one client for each selection, which
    ``compressors`` make fewer: up, down.
    """

    def __init__(
        self, system: System, setup: Setup, sizes: Array, compressors: Mapping[str, Compressor] | None = None
    ) -> None:
        self.system = system
        self.seed = setup.seed
        self.sizes = sizes
        self.speed, self.down, self.up, self.latency = (system.drawn(setup.seed, key, len(sizes)) for key in KEYS)
        self.work = system.worked(setup.algorithm, sizes) if setup.counted is None else setup.counted.work
        self.model, self.bytes = setup.start.nbytes, traffic(setup, compressors or {})

    def factor(self, ids: Array, round: int, again: int) -> Any:
        """By how much the computing of the clients ``ids`` differs in a selection: (c,), or one number."""
        if not self.system.jitter:
            return 1.0
        # drawn for all m clients and then indexed: what a client gets does not depend on who else is selected
        normal = stream(self.seed, "system", round, again, JITTER).standard_normal(len(self.sizes))
        return np.exp(self.system.jitter * normal[ids])

    def times(self, ids: Array, factor: Any, work: Array, down: float, up: float) -> Array:
        """T of the clients ``ids`` for ``work`` (m,) sample gradients, times ``factor``, and these bytes: (c,)."""
        latency = self.latency[ids]
        return latency + down / self.down[ids] + work[ids] / self.speed[ids] * factor + latency + up / self.up[ids]

    def usual(self, ids: Array, factor: Any) -> Array:
        """T of the clients ``ids`` for the method's own work and bytes: (c,)."""
        return self.times(ids, factor, self.work, *self.bytes)


def traffic(setup: Setup, compressors: Mapping[str, Compressor]) -> list[float]:
    """The bytes that a selected client downloads and uploads for each selection."""
    n = setup.start.size
    size = setup.start.itemsize
    found = []
    for count, way in zip(setup.algorithm.traffic(n), ("down", "up"), strict=True):
        C = compressors.get(way)
        # a compressed message has whole bytes, and there are count/n of them
        found.append(count * size if C is None else count / n * -(-C.bits(n, size) // 8))
    return found
