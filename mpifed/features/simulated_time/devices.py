"""Simulated devices of clients and the times that they take: computed, never measured."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from mpifed.compressors.compressor import Compressor
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.simulated_time.presence import Presence, make_presence
from mpifed.features.simulated_time.system import KEYS, System
from mpifed.federation.setup import RunSpec

JITTER = 1  # number of the stream of a round; dropping out has 0, and streams of clients are in round 0


class SimulatedDevices:
    """Simulated devices of m clients with ``sizes`` samples.

    ``work`` (m,) are sample gradients between two selections, ``bytes`` those of a client down and up per selection,
    which ``compressors`` (up, down) reduce.
    """

    def __init__(
        self, system: System, setup: RunSpec, sizes: Array, compressors: Mapping[str, Compressor] | None = None
    ) -> None:
        self.system = system
        self.seed = setup.seed
        self.sizes = sizes
        self.speed, self.down, self.up, self.latency = (
            system.draw_property(setup.seed, key, len(sizes)) for key in KEYS
        )
        self.work = system.count_work(setup.algorithm, sizes) if setup.counted is None else setup.counted.work
        self.model, self.bytes = setup.start.nbytes, message_sizes(setup, compressors or {})

    @cached_property
    def presence(self) -> Presence | None:
        """Who is there, or None where all are; rank 0 alone asks for it and reads a trace."""
        availability = self.system.availability
        return None if availability is None else make_presence(availability, self.seed, len(self.sizes))

    def factor(self, ids: Array, round: int, again: int) -> Any:
        """Return the random factor on the computing times of clients ``ids`` in a selection: (c,), or one number."""
        if not self.system.jitter:
            return 1.0
        # drawn for all m clients and then indexed: a client's factor does not depend on who else is selected
        normal = stream(self.seed, "system", round, again, JITTER).standard_normal(len(self.sizes))
        return np.exp(self.system.jitter * normal[ids])

    def times(self, ids: Array, factor: Any, work: Array, down: float, up: float) -> Array:
        """Return T of clients ``ids`` for ``work`` (m,) sample gradients times ``factor`` and these bytes: (c,)."""
        latency = self.latency[ids]
        return latency + down / self.down[ids] + work[ids] / self.speed[ids] * factor + latency + up / self.up[ids]

    def round_times(self, ids: Array, factor: Any) -> Array:
        """Return T of clients ``ids`` for the method's own work and bytes: (c,)."""
        return self.times(ids, factor, self.work, *self.bytes)


def message_sizes(setup: RunSpec, compressors: Mapping[str, Compressor]) -> list[float]:
    """Return the bytes that a selected client downloads and uploads for each selection."""
    n = setup.start.size
    size = setup.start.itemsize
    sizes = []
    for count, way in zip(setup.algorithm.message_size(n), ("down", "up"), strict=True):
        C = compressors.get(way)
        # a compressed message has whole bytes, and there are count/n of them
        sizes.append(count * size if C is None else count / n * -(-C.bits(n, size) // 8))
    return sizes
